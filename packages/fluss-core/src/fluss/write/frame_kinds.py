"""The kind of frame that a caller gave, for the hints of errors; loads no library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from fluss.errors import FlussError
from fluss.hints import FrameKind

_BY_LIBRARY: Final = {
    "pandas": FrameKind.PANDAS,
    "polars": FrameKind.POLARS,
    "duckdb": FrameKind.DUCKDB,
    "fluss_duckdb": FrameKind.DUCKDB,
    "pyarrow": FrameKind.ARROW,
}


def frame_kind_of(data: Any) -> FrameKind:
    """The kind of a frame, by the library of its class; dicts and lists are rows."""
    if isinstance(data, dict | list | tuple):
        first = data[0] if isinstance(data, list | tuple) and data else None
        return FrameKind.ROWS if _library_of(first) != "pyarrow" else FrameKind.ARROW
    return _BY_LIBRARY.get(_library_of(data), FrameKind.ARROW)


def _library_of(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


@contextmanager
def naming_frame(data: Any) -> Iterator[None]:
    """Add the kind of the caller's frame to errors that leave the block."""
    try:
        yield
    except FlussError as error:
        error.add_context(frame=frame_kind_of(data))
        raise
