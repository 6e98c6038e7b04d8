"""Finds `fluss_native`, the optional package whose functions are written in C.

This is the only module that imports it. Where it is missing, was installed without a compiler, is
of another version, or is turned off by `FLUSS_NATIVE=off`, the Python code does the same work
(decision 0023).
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from fluss_native import RowTaker

VARIABLE: Final = "FLUSS_NATIVE"
INTERFACE: Final = 2  # of the package; other numbers are not used
_OFF: Final = frozenset({"0", "off", "false", "no", "never"})


class NativeColumns(Protocol):
    """The functions that make the values of columns; see columns.c."""

    def list_column(self, elements: tuple[Any, ...], offsets: Any, /) -> list[list[Any]]:
        """Cut the elements of a column into the lists of its rows."""

    def map_column(
        self, keys: tuple[Any, ...], values: tuple[Any, ...], offsets: Any, /
    ) -> list[list[tuple[Any, Any]]]:
        """Cut keys and values into the lists of pairs of the rows."""

    def utc_column(self, microseconds: Any, /) -> list[datetime]:
        """Make times in UTC of microseconds since 1970."""


class _Native(NativeColumns, Protocol):
    RowTaker: type[RowTaker]


def find_row_taker() -> type[RowTaker] | None:
    """Return the type of native functions that take rows; None where Python code is to do it."""
    native = _find_native()
    return None if native is None else native.RowTaker


def find_columns() -> NativeColumns | None:
    """Return the native functions of columns; None where Python code is to do it."""
    return _find_native()


def _find_native() -> _Native | None:
    if os.environ.get(VARIABLE, "").strip().lower() in _OFF:
        return None
    try:
        import fluss_native
    except ImportError:
        return None
    return fluss_native if fluss_native.INTERFACE == INTERFACE else None


def describe_native() -> str:
    """Say in a line whether native code is used, and if not, why."""
    if _find_native() is not None:
        return "used"
    if os.environ.get(VARIABLE, "").strip().lower() in _OFF:
        return f"turned off by {VARIABLE}"
    try:
        import fluss_native
    except ModuleNotFoundError as error:
        without = error.name is not None and error.name.startswith("fluss_native.")
        return "installed without its module: it was not compiled" if without else "not installed"
    except ImportError as error:
        return f"cannot be loaded: {error}"
    return f"of another version: interface {fluss_native.INTERFACE} instead of {INTERFACE}"
