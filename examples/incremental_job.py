"""A job that runs repeatedly and reads every row once: it stores its cursor with its result.

    python examples/incremental_job.py [127.0.0.1:9123]

Prints:
    first run: 3 rows, sum 6
    second run: 2 rows, sum 9
    third run: 0 rows, sum 0
"""

import json
import sys
import tempfile
from pathlib import Path

import fluss

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9123"
TABLE = "example_job.events"


def run(session: fluss.Session, state: Path) -> str:
    """Read the rows since the last run; write the result and the cursor in one step."""
    start = json.loads(state.read_text())["cursor"] if state.exists() else "earliest"
    scan = session.table(TABLE).scan(start=start)
    values = scan.to_arrow().column("value").to_pylist()
    beside = state.with_suffix(".new")
    beside.write_text(json.dumps({"sum": sum(values), "cursor": scan.cursor().to_json()}))
    beside.rename(state)
    return f"{len(values)} rows, sum {sum(values)}"


with fluss.connect(f"fluss://{SERVERS}") as session, tempfile.TemporaryDirectory() as folder:
    session.create_database("example_job", ignore_if_exists=True)
    session.append(TABLE, {"value": [1, 2, 3]}, create=True, buckets=2)
    state = Path(folder) / "state.json"
    print("first run:", run(session, state))
    session.append(TABLE, {"value": [4, 5]})
    print("second run:", run(session, state))
    print("third run:", run(session, state))
    session.drop_database("example_job", cascade=True)
