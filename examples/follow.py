"""Follow a table: read each batch as it arrives, until ten rows were read.

    python examples/follow.py [127.0.0.1:9123]

Prints:
    seen: 10 of 10 events, from 2 writers
"""

import sys
import threading

import fluss

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9123"
TABLE = "example_follow.events"

with fluss.connect(f"fluss://{SERVERS}") as session:
    session.create_database("example_follow", ignore_if_exists=True)
    table = session.create_table(TABLE, {"writer": ["a"], "number": [0]}, buckets=2)

    def write(name: str) -> None:
        for number in range(5):
            table.append({"writer": [name], "number": [number]})

    writers = [threading.Thread(target=write, args=[name]) for name in ("a", "b")]
    seen = []
    with table.follow(start="earliest") as following:
        for writer in writers:
            writer.start()
        for batch in following:
            seen += batch.to_pylist()
            if len(seen) == 10:
                break
    names = {row["writer"] for row in seen}
    print(f"seen: {len(seen)} of 10 events, from {len(names)} writers")
    for writer in writers:
        writer.join()
    session.drop_database("example_follow", cascade=True)
