"""How a table shows itself, as text and as HTML: schema, keys, buckets, partitions, rows.

What has to be asked for is asked for once and within moments; where a server does not answer, the
rest is shown without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from fluss.client.connection import TableCore
from fluss.connector.planning import plan_scan
from fluss.errors import FlussError
from fluss.model.column import Column
from fluss.model.scan_options import Mode, ScanOptions
from fluss.model.table_info import TableInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    name: str
    value: str


def table_text(core: TableCore) -> str:
    """A table as text."""
    info = core.info
    width = max((len(each.name) for each in info.schema.columns), default=0)
    columns = [
        f"  {each.name:<{width}}  {each.data_type}{_notes(each, info)}".rstrip()
        for each in info.schema.columns
    ]
    facts = [f"{each.name}: {each.value}" for each in _facts(core)]
    return "\n".join([f"Table {info.table_path}", *columns, *facts])


def table_html(core: TableCore) -> str:
    """A table as HTML; every name is escaped."""
    info = core.info
    rows = "".join(
        f"<tr><td>{escape(each.name)}</td><td>{escape(str(each.data_type))}</td>"
        f"<td>{escape(_notes(each, info).strip())}</td></tr>"
        for each in info.schema.columns
    )
    facts = "".join(
        f"<tr><th>{escape(each.name)}</th><td>{escape(each.value)}</td></tr>"
        for each in _facts(core)
    )
    return (
        f"<div><strong>{escape(str(info.table_path))}</strong>"
        f"<table><thead><tr><th>column</th><th>type</th><th></th></tr></thead>"
        f"<tbody>{rows}</tbody></table><table><tbody>{facts}</tbody></table></div>"
    )


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


def _facts(core: TableCore) -> list[_Fact]:
    info = core.info
    facts = []
    if info.comment:
        facts.append(_Fact(name="comment", value=info.comment))
    facts.append(_Fact(name="primary key", value=", ".join(info.primary_keys) or "none (log)"))
    each = " in each partition" if info.is_partitioned() else ""
    by = f" by {', '.join(info.bucket_keys)}" if info.bucket_keys else ""
    facts.append(_Fact(name="buckets", value=f"{info.num_buckets}{each}{by}"))
    log = ScanOptions(mode=Mode.CHANGELOG, columns=())
    try:
        plan = plan_scan(core, log)
    except FlussError as error:
        return [*facts, _Fact(name="rows", value=f"not known: {error.message}")]
    if plan.partitions is not None:
        by = ", ".join(info.partition_keys)
        facts.append(_Fact(name="partitions", value=f"{plan.partitions} by {by}"))
    what = "changes in the log" if info.has_primary_key() else "rows"
    facts.append(_Fact(name=what, value=f"at most {plan.stats.rows_max:,}"))
    return facts
