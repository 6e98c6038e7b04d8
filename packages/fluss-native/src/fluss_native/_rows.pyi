"""The compiled module; row_taker.c explains it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, final

INTERFACE: Final[int]

@final
class RowTaker:
    """The function behind `append` and `upsert`."""

    otherwise: Final[Callable[..., Any]]

    def __new__(
        cls,
        *,
        names: tuple[str, ...],
        columns: tuple[tuple[Any, ...], ...],
        sources: tuple[int, ...],
        rows: object,
        streams: tuple[list[Any], ...],
        writer: object,
        handle: type[Any],
        otherwise: Callable[..., Any],
        row_bytes: int,
        large_row_bytes: int,
    ) -> RowTaker: ...
    def __call__(self, row: Any, /) -> Any: ...

def list_column(elements: tuple[Any, ...], offsets: Any, /) -> list[list[Any]]: ...
def map_column(
    keys: tuple[Any, ...], values: tuple[Any, ...], offsets: Any, /
) -> list[list[tuple[Any, Any]]]: ...
def utc_column(microseconds: Any, /) -> list[datetime]: ...
