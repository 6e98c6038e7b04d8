"""Records what a server answers to every method of Java's client 1.0.0.

    python -m tools.record_every_method SERVER BOOTSTRAP USER PASSWORD

SERVER is a column of tools/tables/every_method.csv. It has an authorizer, the user may do
everything, and KV snapshots are made every second (`kv.snapshot.interval: 1s`). Needs a JDK and
the jar of the client, which `fluss_testkit` finds. Then run `./dev generate`, which writes the
page of the docs.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence

from tests.support.servers.every_method import (
    NEVER,
    SERVERS,
    Answer,
    call_every_method,
    read_table,
    write_table,
)


def main(arguments: Sequence[str]) -> int:
    """Run the program, and write the column."""
    if len(arguments) != 4 or arguments[0] not in SERVERS:  # noqa: PLR2004 - as the usage says
        print(f"usage: record_every_method {'|'.join(SERVERS)} BOOTSTRAP USER PASSWORD")
        return 2
    server, bootstrap, user, password = arguments
    answers = call_every_method(
        bootstrap, database=f"every_{uuid.uuid4().hex[:8]}", user=user, password=password
    )
    never = [each.methods for each in answers if each.case == NEVER]
    if never:
        print(f"never called: {', '.join(never)}")
        return 1
    write_table([_line(server, each) for each in answers])
    print(f"{len(answers)} cases, {sum(each.text.startswith('ok') for each in answers)} succeed")
    return 0


_KNOWN = {line["case"]: line for line in read_table()}


def _line(server: str, answer: Answer) -> dict[str, str]:
    known = _KNOWN.get(answer.case, {})
    line = {"case": answer.case, "methods": answer.methods}
    line |= {each: known.get(each, "") for each in SERVERS}
    return line | {server: answer.text, "difference": known.get("difference", "")}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
