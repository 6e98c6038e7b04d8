"""The commands of positions in logs: offsets, and cursors for jobs that read what is new."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fluss.cli.command_group import group_of
from fluss.cli.global_options import GlobalOptions
from fluss.cli.scan_arguments import NameArgument, bound_text
from fluss.errors import InvalidValueError

if TYPE_CHECKING:
    from fluss.scan import Cursor
    from fluss.session import Table

_CursorFile = Annotated[
    str, typer.Argument(metavar="FILE", help="The file of the cursor.", show_default=False)
]


def offsets(
    context: typer.Context,
    name: NameArgument,
    at: Annotated[
        str | None,
        typer.Option(
            help="Also the first offset at or after a time: 2026-01-31T12:00Z, or -1h (ago).",
            show_default=False,
        ),
    ] = None,
    cursor: Annotated[
        str | None,
        typer.Option(
            help="Also the offsets of the cursor in this file, and how far they lag behind.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show where the log of each bucket begins and ends, was at a time, or a cursor stands.

    The end is the offset of the next row. The lag of a cursor counts offsets; some have no rows.
    Where rows after a cursor were trimmed, it stands at the first that is left.

    Examples:
        fluss offsets shop.clicks
        fluss offsets shop.clicks --at -1h
        fluss offsets shop.clicks --cursor job.cursor
        fluss offsets shop.clicks --cursor job.cursor -o json | jq -s 'map(.lag) | add'
    """
    from fluss.cli.row_output import write_records

    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        records = table.offsets().to_pylist()
        columns = list(_OFFSETS if table.partition_by else _OFFSETS[1:])
        if at is not None:
            _add(records, "at", _starts(table, at))
            columns.append(("at", "int64"))
        if cursor is not None:
            _add(records, "cursor", _starts(table, _read(cursor).to_json()))
            columns += [("cursor", "int64"), ("lag", "int64")]
            for record in records:
                record["lag"] = (
                    None if record["cursor"] is None else record["end"] - record["cursor"]
                )
        names = [column for column, _ in columns]
        write_records(
            [{key: each[key] for key in names} for each in records], columns, cluster.output
        )
        if cursor is not None:
            lag = sum(each["lag"] or 0 for each in records)
            cluster.report(f"the cursor lags behind by {lag:,}")


def save_cursor(
    context: typer.Context,
    name: NameArgument,
    file: _CursorFile,
    at: Annotated[
        str,
        typer.Option(help="Where: latest, earliest, 2026-01-31T12:00Z, or -1h (ago)."),
    ] = "latest",
) -> None:
    """Save a position in a log, for a job that reads what is new since then.

    The examples export the rows between two cursors, and keep the second cursor only if the export
    has succeeded.

    Examples:
        fluss cursor save shop.clicks job.cursor --at earliest
        fluss cursor save shop.clicks next.cursor &&
          fluss export shop.clicks new.jsonl --start @job.cursor --end @next.cursor &&
          mv next.cursor job.cursor
    """
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        found = _cursor_at(table, at)
    _write(Path(file), found.to_json())
    cluster.report(f"saved the position of {len(found.offsets):,} buckets to {file}")


def show_cursor(
    context: typer.Context,
    file: _CursorFile,
    name: Annotated[
        str | None,
        typer.Argument(help="The table, to show the lag as well.", show_default=False),
    ] = None,
) -> None:
    """Show the offsets of a saved cursor; with its table also how far it lags behind.

    Examples:
        fluss cursor show job.cursor
        fluss cursor show job.cursor shop.clicks
    """
    from fluss.cli.row_output import write_records

    if name is not None:
        offsets(context, name, None, file)
        return
    cluster: GlobalOptions = context.obj
    cursor = _read(file)
    records = [
        {"table_id": cursor.table_id, "partition_id": partition, "bucket": bucket, "offset": offset}
        for (partition, bucket), offset in cursor.offsets
    ]
    write_records(records, _CURSOR, cluster.output)


cursor_app = group_of(
    "Save and show positions in logs, for jobs that read only what is new.",
    {"save": save_cursor, "show": show_cursor},
)

_OFFSETS: Final = (
    ("partition", "string"),
    ("bucket", "int32"),
    ("earliest", "int64"),
    ("end", "int64"),
)
_CURSOR: Final = (
    ("table_id", "int64"),
    ("partition_id", "int64"),
    ("bucket", "int32"),
    ("offset", "int64"),
)


def _add(records: list[dict[str, Any]], name: str, found: dict[tuple[Any, Any], int]) -> None:
    for record in records:
        record[name] = found.get((record["partition"], record["bucket"]))


def _starts(table: Table, bound: str) -> dict[tuple[Any, Any], int]:
    """Return where a scan from a bound begins in each bucket."""
    splits = table.scan(start=bound, on_trimmed="earliest", **_log_of(table)).splits()
    return {(each.partition_name, each.bucket.bucket_id): each.start for each in splits}


def _cursor_at(table: Table, at: str) -> Cursor:
    """Return the cursor of a scan that ends at a bound."""
    return table.scan(end=bound_text(at), **_log_of(table)).cursor()


def _log_of(table: Table) -> dict[str, Any]:
    return {"mode": "changelog" if table.primary_key else "log"}


def _read(file: str) -> Cursor:
    from fluss.scan import Cursor

    try:
        return Cursor.from_json(bound_text(f"@{file}") or "")
    except InvalidValueError as error:
        if "is not a cursor" not in error.sentence:
            raise
        raise InvalidValueError(
            f"{file} does not hold a cursor.",
            hint=f"`fluss cursor save database.table {file}` writes one",
        ) from None


def _write(path: Path, text: str) -> None:
    """Write a file as a whole, or not at all; a pipe or a device is not replaced."""
    if path.exists() and not path.is_file():
        with path.open("w") as opened:
            opened.write(f"{text}\n")
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_text(f"{text}\n")
        unfinished.replace(path)
    except OSError as error:
        if error.filename is not None:
            error.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)
