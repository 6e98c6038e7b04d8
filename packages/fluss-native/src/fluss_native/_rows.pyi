"""The compiled module; row_taker.c explains it."""

from collections.abc import Callable
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
