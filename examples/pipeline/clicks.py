"""Writes files of clicks, one JSON object per line, with some bad lines.

    python examples/pipeline/clicks.py clicks/ --files 20 --rows 500

The same seed gives the same files. A file is renamed to its final name when it is complete, so a
reader of the folder never sees an incomplete file.
"""

from __future__ import annotations

import argparse
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

PAGES = ("/", "/search", "/cart", "/pay", "/help")
BEGIN = datetime(2026, 3, 1, 23, 40, tzinfo=UTC)
BAD_SHARE = 0.03


def click(random_: random.Random, number: int) -> dict[str, object]:
    """Make a click; about one per second."""
    at = BEGIN + timedelta(milliseconds=1_000 * number + random_.randrange(2_000))
    return {
        "id": f"c{number}",
        "user": f"u{random_.randrange(50)}",
        "page": random_.choice(PAGES),
        "at": at.isoformat(timespec="milliseconds"),
        "spent_ms": random_.randrange(60_000),
    }


def bad_line(random_: random.Random, made: dict[str, object]) -> str:
    """Make a line that is not a valid click."""
    kind = random_.randrange(6)
    if kind == 0:
        return json.dumps(made)[: random_.randrange(1, 9)]
    if kind == 1:
        return json.dumps({**made, "at": "yesterday"})
    if kind == 2:
        return json.dumps({**made, "spent_ms": -1})
    if kind == 3:
        return json.dumps({**made, "spent_ms": 2**40})
    missing = ("user", "page")[kind - 4]
    return json.dumps({key: value for key, value in made.items() if key != missing})


def write_files(
    folder: Path, *, files: int, rows: int, seed: int = 7, first: int = 0
) -> list[Path]:
    """Write files of clicks.

    Args:
        folder: The folder for the files.
        files: How many files.
        rows: How many lines in each.
        seed: The seed of the random clicks.
        first: The number of the first file; later files continue the clicks of earlier ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for file in range(first, first + files):
        random_ = random.Random(seed * 1_000_003 + file)  # noqa: S311 - the same each time
        lines = []
        for row in range(rows):
            made = click(random_, file * rows + row)
            bad = random_.random() < BAD_SHARE
            lines.append(bad_line(random_, made) if bad else json.dumps(made))
        path = folder / f"clicks-{file:05}.jsonl"
        hidden = folder / f".{path.name}"
        hidden.write_text("\n".join(lines) + "\n")
        hidden.rename(path)
        written.append(path)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes files of clicks.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    write_files(given.folder, files=given.files, rows=given.rows, first=given.first)
