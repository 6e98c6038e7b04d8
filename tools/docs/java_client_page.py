"""Writes docs/proofs/java-client.md: how servers respond to every method of Java's client 1.0.0.

The responses come from tools/tables/every_method.csv, which tests compare with the servers.
`./dev generate` writes the page, and a test compares it with the table.
"""

from __future__ import annotations

import csv
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "tables" / "every_method.csv"
# The server in the column `main`.
MAIN_COMMIT = "545c5539"
MAIN_DAY = "2026-08-22"
_OK = "ok"

_PAGE = """\
# Proof: java-client

Apache Fluss's own Java client 1.0.0 calls all {methods} public methods of its interfaces (`Admin`, tables,
writers, lookups, scanners, typed rows, many tables) in {cases} cases, valid and invalid. On a server of Fluss's main
line {main} cases succeed, and {both} of these succeed on the embedded server. On Fluss 0.9.1 {real} cases succeed.

- how: `tools/every_method` records the calls with proxies, and fails if no case calls a method
- main: built from commit {commit} of {day}; no server of 1.0 is published. KV snapshots were made every second
- checked: `tests/cluster/server/test_every_method.py` compares the table with the embedded server and a real 0.9.1;
  `python -m tools.record_every_method` recorded the column of main, which no test checks
- an error is shown by its code and Java's class; `local` means that the client raised it. If all three results are
  equal, one is shown

Differences between the embedded server and main, and their reasons:

{differences}

| case | Fluss 0.9.1 | main | embedded |
|---|---|---|---|
{rows}
"""


def java_client_page() -> str:
    """Return the page."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line["difference"]:
            reasons.setdefault(line["difference"], []).append(line["case"])
    return _PAGE.format(
        methods=len({method for line in lines for method in line["methods"].split(" ")}),
        cases=len(lines),
        main=_succeeding(lines, "main"),
        both=_succeeding([line for line in lines if line["main"].startswith(_OK)], "embedded"),
        real=_succeeding(lines, "0.9.1"),
        commit=MAIN_COMMIT,
        day=MAIN_DAY,
        differences="\n".join(f"- {why}: {'; '.join(cases)}" for why, cases in reasons.items()),
        rows="\n".join(map(_row, lines)),
    )


def _succeeding(lines: list[dict[str, str]], server: str) -> int:
    return sum(line[server].startswith(_OK) for line in lines)


def _row(line: dict[str, str]) -> str:
    # `[a][]` would be a link.
    answers = [
        line[server].replace("|", "\\|").replace("][", "]\\[")
        for server in ("0.9.1", "main", "embedded")
    ]
    if len(set(answers)) == 1:
        return f"| {line['case']} | {answers[0]} | | |"
    return f"| {line['case']} | {' | '.join(answers)} |"
