"""`fluss tail` for several tables: JSON lines, each with the name of its table in `_table`.

The tables have different columns, so no single screen table or CSV file can hold their rows. Like
`tail -f` of several files, it reports a table that cannot be read any more and follows the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import typer

from fluss.cli.files.cell_texts import json_lines
from fluss.cli.files.file_formats import standard_output, text_writer
from fluss.cli.files.format_names import OutputFormat
from fluss.cli.global_options import GlobalOptions, is_url
from fluss.errors import FlussError, InvalidValueError
from fluss.hints import Door

if TYPE_CHECKING:
    from fluss.session import FollowMany, Session, Table

TABLE: Final = "_table"


def tail_tables(
    cluster: GlobalOptions,
    names: Sequence[str],
    rows: int,
    options: Mapping[str, Any],
    *,
    follow: bool,
) -> None:
    """Write the last rows of tables, table by table, and then new rows as they arrive.

    Args:
        cluster: The cluster and the output format.
        names: The tables.
        rows: How many rows of each.
        options: The options of the scans.
        follow: Whether to continue with new rows.

    Raises:
        InvalidValueError: The format cannot hold several tables, or a name is a URL.
        FlussError: A table cannot be read; with `follow`, the last one that was left.
    """
    if cluster.output not in {None, OutputFormat.JSON, OutputFormat.TABLE}:
        raise InvalidValueError(
            f"Several tables are written as JSON lines, not as {cluster.output}.",
            hint="Leave -o out, or name one table.",
        )
    url = next((each for each in names if is_url(each)), None)
    if url is not None:
        raise InvalidValueError(
            "Of several tables, each is named by database.table.",
            hint="--url names the cluster: fluss --url fluss://host:9123 tail db.a db.b",
        )
    out = standard_output()
    with cluster.session() as session:
        tables = {table.name: table for table in map(session.table, dict.fromkeys(names))}
        for name, batch in _batches(session, tables, rows, options, follow=follow):
            named = batch.add_column(0, TABLE, pa.array([name] * batch.num_rows, pa.string()))
            text_writer(out, json_lines)(named)
            out.flush()


def _batches(
    session: Session,
    tables: Mapping[str, Table],
    rows: int,
    options: Mapping[str, Any],
    *,
    follow: bool,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    chosen = {name: _options_of(table, options) for name, table in tables.items()}
    scans = {name: table.scan(tail=rows, **chosen[name]) for name, table in tables.items()}
    # Found before any row is read, so that no row is missed or written twice.
    starts: dict[Any, Any] = {name: scan.cursor() for name, scan in scans.items()} if follow else {}
    for name, scan in scans.items():
        for batch in scan.to_reader():
            yield name, batch
    if follow:
        with session.follow_many(chosen, start=starts) as reader:
            yield from _while_any_is_left(reader)


def _while_any_is_left(reader: FollowMany) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Read on without tables that fail; the failure of the last one is raised."""
    while True:
        try:
            yield from reader
        except FlussError as error:
            name = str(error.facts.get("table"))
            if error.is_retriable or name not in reader.tables or len(reader.tables) == 1:
                raise
            typer.echo(f"fluss: {error.with_context(door=Door.CLI)}", err=True)
            reader.remove(name)
        else:
            return  # it was closed


def _options_of(table: Table, options: Mapping[str, Any]) -> dict[str, Any]:
    if not table.primary_key:
        return dict(options)
    return {"with_metadata": ["_change_type"], **options, "mode": "changelog"}
