"""Displays sessions, tables, scans and plans: as text, and as HTML in notebooks.

Servers are asked once and for a moment; where one does not answer, the rest is shown without its
facts. Everything that comes from a cluster is escaped. The HTML has no colours of its own, so that
it is readable wherever text is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any, TypeVar

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.errors import FlussError, RequestTimeoutError
from fluss.model.schema.column import Column
from fluss.model.tables.table_info import TableInfo
from fluss.scan import ScanStats
from fluss.scan.table_stats import table_size
from fluss.waiting import in_thread, is_done, wait_until, was_interrupted

DATABASES_SHOWN_MAX = 20
TABLES_SHOWN_MAX = 20
COLUMNS_SHOWN_MAX = 200
THOUSAND = 1_000
ANSWER_S_MAX = 2.0

T = TypeVar("T")


class Explanation(str):
    """The description of a planned scan: a text, which notebooks show line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        title, _, lines = self.partition("\n")
        return _framed(title, f'<pre style="{_PRE}">{escape(lines)}</pre>')

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002, FBT001 - IPython's
        printer.text(str(self))


def within_moments(ask: Callable[[], T]) -> T:
    """Call `ask`, and give up soon: tools that show objects (debuggers, pytest) must not wait.

    Raises:
        RequestTimeoutError: There is no answer yet, or the user has just pressed Ctrl-C.
        FlussError: The server refuses.
    """
    if was_interrupted():
        raise RequestTimeoutError("not asked, because Ctrl-C was pressed a moment ago")
    answer = in_thread(ask, "fluss-show")
    if not wait_until(partial(is_done, answer), ANSWER_S_MAX):
        raise RequestTimeoutError(f"no answer within {ANSWER_S_MAX:g} s")
    return answer.result()


# --- tables ---------------------------------------------------------------------------------------


def table_text(core: TableHandle) -> str:
    """A table as text."""
    info = core.info
    width = max((len(each.name) for each in info.schema.columns), default=0)
    columns = [
        f"  {each.name:<{width}}  {each.data_type}{_notes(each, info)}".rstrip()
        for each in info.schema.columns
    ]
    facts = [f"{name}: {value}" for name, value in _facts(core)]
    return "\n".join([f"Table {info.table_path}", *columns, *facts])


def table_html(core: TableHandle) -> str:
    """A table as HTML."""
    info = core.info
    rows = [
        (each.name, str(each.data_type), _notes(each, info).strip()) for each in info.schema.columns
    ]
    return _framed(
        f"Table {info.table_path}", _grid(("column", "type", ""), rows) + _list(_facts(core))
    )


# --- sessions -------------------------------------------------------------------------------------


def session_html(text: str, tables: Mapping[str, Sequence[str]], *, more: int = 0) -> str:
    """A session as HTML.

    Args:
        text: The session as text.
        tables: The tables of each database that is shown.
        more: How many further databases there are.
    """
    rows = [(name, str(len(each)), _some(each)) for name, each in tables.items()]
    note = _list([("and", f"{more} more databases")]) if more else ""
    return _framed(text, _grid(("database", "tables", ""), rows) + note)


def silent_html(text: str, error: FlussError | None) -> str:
    """A session that is closed, or whose servers do not answer, as HTML."""
    if error is None:
        return _framed(text, "")
    return _framed(text, _list([("databases", f"not known: {error.message}")]))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:TABLES_SHOWN_MAX])
    return shown if len(names) <= TABLES_SHOWN_MAX else f"{shown}, …"


# --- scans ----------------------------------------------------------------------------------------


def scan_html(
    name: str, schema: pa.Schema, options: Mapping[str, str], stats: ScanStats | None
) -> str:
    """A scan as HTML. No server is asked.

    Args:
        name: The table.
        schema: The columns it gives.
        options: The options that were given, as text.
        stats: Its counters; None where it is not pinned yet.
    """
    facts = [(each, value) for each, value in options.items() if each != "columns"]
    if stats is None:
        facts.append(("pinned", "when it is first read"))
    else:
        rows = f"at most {stats.rows_max:,} in {stats.splits} splits"
        facts += [
            ("pinned", rows),
            ("read so far", f"{stats.rows_returned:,} rows"),
        ]
    columns = [(each.name, str(each.type)) for each in schema][:COLUMNS_SHOWN_MAX]
    more = len(schema) - len(columns)
    if more:
        facts.insert(0, ("and", f"{more} more columns"))
    return _framed(f"Scan of {name}", _grid(("column", "type"), columns) + _list(facts))


def follow_html(name: str, schema: pa.Schema, stats: ScanStats) -> str:
    """A follower as HTML. No server is asked.

    Args:
        name: The table.
        schema: The columns it gives.
        stats: Its counters.
    """
    columns = [(each.name, str(each.type)) for each in schema][:COLUMNS_SHOWN_MAX]
    facts = [("given out so far", f"{stats.rows_returned:,} rows")]
    return _framed(f"Follow of {name}", _grid(("column", "type"), columns) + _list(facts))


def verbs_html(title: str, verbs: Mapping[str, str]) -> str:
    """An accessor of a frame as HTML: what it can be called for.

    Args:
        title: The accessor as text.
        verbs: What each of its methods does.
    """
    return _framed(title, _grid(("call", ""), verbs.items()))


# --- facts of tables ------------------------------------------------------------------------------


def _notes(column: Column, info: TableInfo) -> str:
    notes = []
    if column.name in info.primary_keys:
        notes.append("primary key")
    if column.name in info.partition_keys:
        notes.append("partition key")
    if column.name in info.bucket_keys and column.name not in info.primary_keys:
        notes.append("bucket key")
    if column.comment:
        notes.append(column.comment)
    return f"  {', '.join(notes)}" if notes else ""


def _facts(core: TableHandle) -> list[tuple[str, str]]:
    info = core.info
    facts = []
    if info.comment:
        facts.append(("comment", info.comment))
    facts.append(("primary key", ", ".join(info.primary_keys) or "none (log)"))
    each = " in each partition" if info.is_partitioned() else ""
    if info.bucket_count_epoch:
        each = " in each new partition"
    by = f" by {', '.join(info.bucket_keys)}" if info.bucket_keys else ""
    facts.append(("buckets", f"{info.num_buckets}{each}{by}"))
    try:
        amounts = within_moments(lambda: _amounts(core))
    except FlussError as error:
        amounts = [("rows", f"not known: {error.message}")]
    return [*facts, *amounts]


def _amounts(core: TableHandle) -> list[tuple[str, str]]:
    """Rows as leaders count them, changes by offsets, and bytes by the last batches.

    Offsets without rows are counted among the changes, so these are `at most`.
    """
    size = table_size(core)
    facts = []
    if size.partitions is not None:
        by = ", ".join(core.info.partition_keys)
        facts.append(("partitions", f"{size.partitions} by {by}"))
    if size.rows is not None:
        facts.append(("rows", f"{size.rows:,}"))
    name = "changes in the log" if core.info.has_primary_key() else "rows"
    facts.append((name, f"at most {size.changes_max:,}"))
    if size.log_bytes is not None:
        facts.append(("size of the log", f"about {_size(size.log_bytes)}"))
    return facts


def _size(count: float) -> str:
    units = ("bytes", "KB", "MB", "GB", "TB")
    place = 0
    while count >= THOUSAND and place < len(units) - 1:
        count, place = count / THOUSAND, place + 1
    return f"{count:,.0f} {units[place]}" if place == 0 else f"{count:,.1f} {units[place]}"


# --- HTML -----------------------------------------------------------------------------------------

# The colours are those of the notebook: lines and labels are its text, paler.
_LINE = "1px solid rgba(128, 128, 128, .35)"
_CELL = "text-align: left; padding: .15em 1.2em .15em 0; border: 0; background: none;"
_PRE = "margin: .3em 0 0; padding: 0; background: none; color: inherit; white-space: pre-wrap;"
_TABLE = "border-collapse: collapse; margin: .3em 0 0; border: 0;"


def _framed(title: str, inner: str) -> str:
    return (
        f'<div style="border-left: 3px solid rgba(128, 128, 128, .5); padding-left: .8em;">'
        f"<strong>{escape(title)}</strong>{inner}</div>"
    )


def _grid(names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(
        f'<th style="{_CELL} opacity: .65; font-weight: normal; border-bottom: {_LINE};">'
        f"{escape(each)}</th>"
        for each in names
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _list(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f'<tr><th style="{_CELL} opacity: .65; font-weight: normal;">{escape(name)}</th>'
        f"{_cell(value)}</tr>"
        for name, value in facts
    )
    return f'<table style="{_TABLE}"><tbody>{rows}</tbody></table>'


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{escape(text)}</td>'
