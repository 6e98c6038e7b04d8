"""The arguments that commands which read a table share, and the options of the scan they make.

The names and meanings are those of `Table.scan`; which rows are read is decided there. This file is
loaded by completion, so it imports no Arrow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fluss.errors import InvalidValueError

_CURSOR_BYTES_MAX: Final = 16 << 20

NameArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="database.table, or its URL.", show_default=False)
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="The columns, separated by commas; metadata columns may be among them.",
        show_default=False,
    ),
]
StartOption = Annotated[
    str | None,
    typer.Option(
        metavar="POSITION",
        help="The start: earliest, latest, an offset, 2026-01-31T12:00Z, -10m (ago), or @FILE with "
        "a cursor.",
        show_default=False,
    ),
]
EndOption = Annotated[
    str | None,
    typer.Option(
        metavar="POSITION", help="The end, exclusive; written as the start.", show_default=False
    ),
]
PartitionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        metavar="KEY=VALUE",
        help="Only this partition; may be repeated.",
        show_default=False,
    ),
]
ModeOption = Annotated[
    str | None,
    typer.Option(metavar="MODE", help="state, log, changelog or binlog.", show_default=False),
]
LakeOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        help="Of a table with a lake: union (lake and log), only (the lake), or off (the log).",
        show_default=False,
    ),
]
WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only rows that fulfil a condition in SQL: \"id > 5 AND name LIKE 'A%'\".",
        show_default=False,
    ),
]
MetadataOption = Annotated[
    bool,
    typer.Option(
        "--metadata",
        help="Add the metadata columns: change type, offset, time, bucket, partition.",
    ),
]
RowsOption = Annotated[int, typer.Option("--rows", "-n", min=0, metavar="N", help="How many rows.")]


def scan_options_of(
    columns: str | None = None,
    start: str | None = None,
    end: str | None = None,
    partitions: list[str] | None = None,
    mode: str | None = None,
    *,
    where: str | None = None,
    metadata: bool = False,
    lake: str | None = None,
) -> dict[str, Any]:
    """Return the options of a scan that were given.

    Raises:
        InvalidValueError: The file of a cursor cannot be read.
    """
    given = {
        "columns": names_of(columns),
        "start": bound_text(start),
        "end": bound_text(end),
        "partitions": partitions or None,
        "mode": mode,
        "lake": lake,
        "filter": where,
        "with_metadata": True if metadata else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def names_of(columns: str | None) -> list[str] | None:
    """Return the names in a list with commas."""
    return None if columns is None else [each.strip() for each in columns.split(",")]


def bound_text(text: str | None) -> str | None:
    """Return the text of a bound; that of `@FILE` stands in the file.

    Raises:
        InvalidValueError: The file cannot be read.
    """
    if text is None or not text.startswith("@"):
        return text
    file = Path(text[1:])
    try:
        with file.open("rb") as opened:
            return opened.read(_CURSOR_BYTES_MAX).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InvalidValueError(
            f"The cursor cannot be read from {file}: {why}.",
            hint=f"`fluss cursor save database.table {file}` writes one",
        ) from None
