"""The ends of a cluster's logs, from a mark on.

A log may be large and still grow, so only a bounded number of bytes is read from its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

TAIL_BYTES_MAX = 32 * 1024

LogSizes = Mapping[Path, int]
"""The size of each log at some moment."""


def mark_logs(paths: Iterable[Path]) -> LogSizes:
    """Return the sizes of the logs now."""
    return {path: _size(path) for path in paths}


def tail_logs(
    paths: Iterable[Path], *, since: LogSizes | None = None, bytes_max: int = TAIL_BYTES_MAX
) -> str:
    """Return what was written since the mark, at most the last `bytes_max` bytes of each log."""
    parts = []
    for path in paths:
        start = (since or {}).get(path, 0)
        text = _read(path, start, bytes_max).strip("\n")
        if text:
            parts.append(f"--- {path} ---\n{text}")
    return "\n".join(parts)


def _read(path: Path, start: int, bytes_max: int) -> str:
    begin = max(start, _size(path) - bytes_max)
    try:
        with path.open("rb") as file:
            file.seek(begin)
            data = file.read(bytes_max)
    except OSError:
        return ""
    if begin > start:
        data = b"[...]\n" + data[data.find(b"\n") + 1 :]  # drop the incomplete first line
    return data.decode("utf-8", "replace")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
