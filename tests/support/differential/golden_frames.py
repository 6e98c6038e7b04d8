"""The frames recorded in tests/unit/wire/golden_frames.json; see tools/record_frames.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "unit" / "wire" / "golden_frames.json"


def golden_frames(kind: str) -> list[dict[str, Any]]:
    """The recorded cases of one kind: request, error, failure or talk."""
    return [each for each in json.loads(FILE.read_text())["cases"] if each["kind"] == kind]


def talk(name: str) -> list[tuple[bytes, bytes]]:
    """Return the frames that were sent to a real server and its responses."""
    (found,) = [each for each in golden_frames("talk") if each["name"] == name]
    pairs = zip(found["sent"], found["got"], strict=True)
    return [(bytes.fromhex(sent), bytes.fromhex(got)) for sent, got in pairs]
