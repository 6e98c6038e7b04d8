"""The command `fluss tier`: copies tables into their lakes, and shows how far they are."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fluss.cli.command_group import FlussCommand, FlussGroup
from fluss.cli.global_options import GlobalOptions
from fluss.cli.user_folders import state_folder
from fluss.hints import Door
from fluss_lake.tiering.range_task import WriteMode
from fluss_lake.tiering.worker import ROUND_S_MAX, RoundReport

if TYPE_CHECKING:
    from fluss.connection.connection import TableHandle
    from fluss.model.paths import TablePath
    from fluss.session import Session
    from fluss_lake.tiering.round_driver import RoundOptions
    from fluss_lake.tiering.service import Tally, TieringService

_NOTES: Final = "tier"
_MB: Final = 1_000_000
_AGE: Final = re.compile(r"(\d+)([dhms])")
_UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_TEXTS: Final = (("error", "string"), ("hint", "string"))
_STATUS: Final = (
    ("table", "string"),
    ("lag", "int64"),
    ("snapshot", "int64"),
    ("committed_at", "string"),
    ("by", "string"),
    *_TEXTS,
)


class OnLost(StrEnum):
    """What is done about rows that were deleted before they were copied."""

    FAIL = "fail"
    SKIP = "skip"


_TablesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table", "-t", help="A table; can be repeated. Default: all.", show_default=False
    ),
]
_ReplaceOption = Annotated[
    bool,
    typer.Option(
        "--replace-partitions",
        help="Replace the rows that the lake has of a partition of a primary-key table that was "
        "dropped and created again.",
    ),
]
_NotesOption = Annotated[
    Path | None,
    typer.Option(
        "--notes",
        help="The folder of the workers' notes, which `status` reads; can be shared.",
        show_default=False,
    ),
]


def run(
    context: typer.Context,
    tables: _TablesOption = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Exit when no table is due; for cron.")
    ] = False,
    now: Annotated[
        bool,
        typer.Option(
            "--now",
            help="Copy all rows now and exit, without asking the coordinator. Do not use it while "
            "a job in Flink copies the same tables.",
        ),
    ] = False,
    write_mode: Annotated[
        WriteMode | None,
        typer.Option(
            help="How rows of primary-key tables are replaced. Default: the table's property "
            "tiering.write-mode, else equality-deletes.",
            show_default=False,
        ),
    ] = None,
    on_lost: Annotated[
        OnLost, typer.Option(help="What to do if rows were deleted before they were copied.")
    ] = OnLost.FAIL,
    replace_partitions: _ReplaceOption = False,
    tables_at_once: Annotated[
        int, typer.Option(min=1, max=64, help="How many tables are copied concurrently.")
    ] = 1,
    threads: Annotated[
        int, typer.Option(min=1, max=64, help="How many buckets of a table are copied in parallel.")
    ] = 2,
    max_rows: Annotated[
        int, typer.Option(min=1, help="How many rows of a bucket one round copies.")
    ] = 8_000_000,
    max_seconds: Annotated[
        float, typer.Option(min=1, help="How long a round reads; then it commits.")
    ] = ROUND_S_MAX,
    notes: _NotesOption = None,
) -> None:
    """Copy the rows of tables into their lakes, until interrupted.

    The worker asks the coordinator for tables. Other workers and Fluss's own job may run at the
    same time. Ctrl-C and SIGTERM stop the worker: it removes files that are not committed.

    Examples:
        fluss tier
        fluss tier --once
        fluss tier --now -t shop.orders
        fluss tier status
        fluss tier expire --older-than 7d
        fluss tier clean
        fluss tier compact -t shop.orders
    """
    if context.invoked_subcommand is not None:
        return
    if once and now:
        raise typer.BadParameter("--once and --now exclude each other")
    from fluss.connection.shared_connections import connection_for
    from fluss_lake.tiering.round_driver import RoundOptions
    from fluss_lake.tiering.service import TieringService
    from fluss_lake.tiering.worker import WorkerOptions

    options: GlobalOptions = context.obj
    is_skipped = on_lost is OnLost.SKIP
    rounds = RoundOptions(write_mode=write_mode, rows_max=max_rows, skips_lost=is_skipped)
    rounds = replace(rounds, replaces_partitions=replace_partitions)
    with options.session() as session:
        paths = _paths_of(session, tables)
        service = TieringService(
            connection_for(session.config),
            WorkerOptions(
                rounds=rounds,
                tables=None if paths is None else frozenset(paths),
                tables_max=tables_at_once,
                threads=threads,
                round_s_max=max_seconds,
            ),
            notes=_notes_folder(notes),
            on_round=lambda report: _report(options, report),
        )
        with _stopped_by_signals(service):
            tally = service.run(once=once, now=now)
    _report_total(options, tally, once=once)
    if tally.errors and (once or now):
        raise typer.Exit(1)


def status(
    context: typer.Context, tables: _TablesOption = None, notes: _NotesOption = None
) -> None:
    """Show the lag of each table's lake, the worker that copied it last, and the last error.

    Errors come from the folder of the workers' notes.

    Examples:
        fluss tier status
        fluss tier status -t shop.orders -o json
    """
    from fluss.cli.files.format_names import OutputFormat
    from fluss.cli.row_output import format_of_output, write_records
    from fluss_lake.tiering.status import status_of

    options: GlobalOptions = context.obj
    with options.session() as session:
        paths = _paths_of(session, tables)
        records = status_of(session.config, _notes_folder(notes), paths)
    if not records:
        options.report(
            "No table has a lake.\n  hint: create tables with --set table.datalake.enabled=true"
        )
        if options.output is None:
            return
    if format_of_output(options.output) is not OutputFormat.TABLE:
        write_records(records, _STATUS, options.output)
        return
    write_records(records, _STATUS[: -len(_TEXTS)], options.output)
    for record in records:  # a cell of a table on a screen has no room for them
        if record["error"] is not None:
            hint = "" if record["hint"] is None else f"\n  hint: {record['hint']}"
            typer.echo(f"{record['table']}: {record['error']}{hint}")


def expire(
    context: typer.Context,
    tables: _TablesOption = None,
    *,
    older_than: Annotated[
        str, typer.Option(help="The age of snapshots that expire: 7d, 12h, 30m.")
    ] = "5d",
    keep_last: Annotated[
        int, typer.Option(min=1, help="How many snapshots are kept at least.")
    ] = 1,
) -> None:
    """Remove old snapshots of lakes, and the files that only these snapshots have.

    The snapshot that the cluster knows, those of branches and tags, and the newest ones are kept.

    Examples:
        fluss tier expire
        fluss tier expire -t shop.orders --older-than 12h --keep-last 10
    """
    import time

    from fluss_lake.tiering.lake_maintenance import expire as expire_snapshots

    options: GlobalOptions = context.obj
    before_ms = time.time_ns() // 1_000_000 - _milliseconds(older_than)
    for table, rounds in _each_table(options, tables):
        done = expire_snapshots(table, rounds, before_ms=before_ms, keep_last=keep_last)
        left = f", {done.left} could not be" if done.left else ""
        options.report(
            f"{table.info.table_path}: {_counted(done.snapshots, 'snapshot')} expired, "
            f"{_counted(done.files, 'file')} removed{left}"
        )


def clean(
    context: typer.Context,
    tables: _TablesOption = None,
    *,
    older_than: Annotated[
        str, typer.Option(help="The age of files that are removed: 3d, 12h; an hour at least.")
    ] = "3d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the files.")] = False,
) -> None:
    """Remove files that a killed round has left behind: files of ours that no snapshot has.

    Files of other programs are left alone.

    Examples:
        fluss tier clean --dry-run
        fluss tier clean -t shop.orders --older-than 12h
    """
    import time

    from fluss_lake.tiering.lake_maintenance import clean as remove_orphans

    options: GlobalOptions = context.obj
    age_ms = _milliseconds(older_than)
    if age_ms < _UNITS_MS["h"]:
        raise typer.BadParameter(
            "--older-than is an hour at least: a round that is running may still commit its files"
        )
    before_ms = time.time_ns() // 1_000_000 - age_ms
    for table, rounds in _each_table(options, tables):
        done = remove_orphans(table, rounds, before_ms=before_ms, is_dry=dry_run)
        left = f", {done.left} could not be" if done.left else ""
        what = "would be removed" if dry_run else "removed"
        options.report(
            f"{table.info.table_path}: {_counted(done.files, 'file')}, "
            f"{_size(done.size_bytes)} {what}{left}"
        )


def compact(
    context: typer.Context,
    tables: _TablesOption = None,
    *,
    file_size: Annotated[int, typer.Option(min=1, help="How large files become, in MiB.")] = 256,
) -> None:
    """Rewrite small files of lakes as large ones, and apply deletes.

    Afterwards every reader of Iceberg can read a primary-key table as of this snapshot, including
    readers without support for equality deletes.

    Examples:
        fluss tier compact
        fluss tier compact -t shop.orders --file-size 512
    """
    from fluss_lake.tiering.lake_maintenance import compact as compact_table

    options: GlobalOptions = context.obj
    for table, rounds in _each_table(options, tables, file_bytes=file_size * 1024 * 1024):
        done = compact_table(table, rounds)
        options.report(
            f"{table.info.table_path}: {_counted(done.before, 'file')} became {done.after}, "
            f"{_counted(done.rows, 'row')}"
            if done.snapshot_id is not None
            else f"{table.info.table_path}: nothing to compact"
        )


def _each_table(
    options: GlobalOptions, tables: list[str] | None, **rounds: Any
) -> Iterator[tuple[TableHandle, RoundOptions]]:
    """Yield the tables of a command, one after the other."""
    from fluss.connection.shared_connections import connection_for
    from fluss_lake.tiering.lake_tables import lake_tables
    from fluss_lake.tiering.round_driver import RoundOptions

    with options.session() as session:
        connection = connection_for(session.config)
        paths = _paths_of(session, tables)
        if paths is None:
            found = connection.engine.run(lake_tables(connection))
        else:
            found = [connection.engine.run(connection.table(each)) for each in paths]
        for table in found:
            yield table, RoundOptions(**rounds)


def _paths_of(session: Session, tables: list[str] | None) -> list[TablePath] | None:
    """The paths of the named tables; a name without a database is in that of the URL."""
    return None if tables is None else [session.path_of(each) for each in tables]


def _milliseconds(text: str) -> int:
    matched = _AGE.fullmatch(text)
    if matched is None:
        raise typer.BadParameter(f"{text!r} is not an age; write a number and d, h, m or s: 5d")
    return int(matched.group(1)) * _UNITS_MS[matched.group(2)]


def _notes_folder(chosen: Path | None) -> Path:
    if chosen is None:
        return state_folder(_NOTES)
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen


def _report(options: GlobalOptions, report: RoundReport) -> None:
    name, done = report.table, report.committed
    if report.error is not None:
        error = report.error.with_context(door=Door.CLI)
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        typer.echo(f"fluss: {name}: {error.sentence}{hint}", err=True)
    elif done is not None and done.snapshot_id is not None:
        deletes = f", {_counted(done.deletes, 'key')} deleted" if done.deletes else ""
        options.report(
            f"{name}: {_counted(done.changes, 'change')} in {report.took_s:.1f} s: "
            f"{_counted(done.rows, 'row')}{deletes}, {_counted(done.files, 'file')}, "
            f"{_size(done.size_bytes)}, snapshot {done.snapshot_id}"
        )


def _report_total(options: GlobalOptions, tally: Tally, *, once: bool) -> None:
    rounds, changes = _counted(tally.rounds, "round"), _counted(tally.changes, "change")
    options.report(f"{rounds}, {changes} copied")
    if once and not tally.rounds and not tally.errors:
        options.report(
            "No table is due: the coordinator assigns a table when its table.datalake.freshness "
            "has passed.\n  hint: `fluss tier --now` copies all rows now"
        )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _size(size_bytes: int) -> str:
    if size_bytes < _MB / 10:
        return f"{size_bytes / 1_000:,.1f} KB"
    return f"{size_bytes / _MB:,.1f} MB"


@contextmanager
def _stopped_by_signals(service: TieringService) -> Iterator[None]:
    """Stop the service on Ctrl-C or SIGTERM; a second signal ends the process."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.getsignal(each) for each in signals}

    def stop(_number: int, _frame: Any) -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        service.stop()

    for number in signals:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


app = typer.Typer(
    cls=FlussGroup,
    help=run.__doc__,
    add_completion=False,
    rich_markup_mode=None,
    invoke_without_command=True,
)
app.callback()(run)
for _each in (status, expire, clean, compact):
    app.command(_each.__name__, cls=FlussCommand)(_each)
