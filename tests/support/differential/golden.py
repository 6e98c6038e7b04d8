"""Reads the golden files of tests/java/golden, and checks that they match the current cases."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.generators.golden_cases import RowCase

FOLDER = Path(__file__).resolve().parents[2] / "java" / "golden"
REMEDY = "run `python -m tools.record_golden` where there is Java"


@cache
def golden(name: str) -> dict[str, dict[str, Any]]:
    """The entries of a golden file by their names."""
    entries = json.loads((FOLDER / f"{name}.json").read_text())["cases"]
    found = {each["name"]: each for each in entries}
    assert len(found) == len(entries), f"{name}.json has a name twice"
    return found


def answers(name: str, case: RowCase, field: str = "bytes") -> list[Any]:
    """What Java answered for each row of a case; bytes where the file holds their hexadecimals."""
    entry = golden(name)[case.name]
    assert entry["types"] == [str(each) for each in case.types], f"the case changed; {REMEDY}"
    assert entry["rows"] == [repr(row) for row in case.rows], f"the case changed; {REMEDY}"
    found: list[Any] = entry[field]
    assert len(found) == len(case.rows)
    return [bytes.fromhex(each) for each in found] if field == "bytes" else found
