"""One table of expectations for every engine; see `expectations.engine`."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

import fluss
from tests.engines.expectations.cases import CASES, Case
from tests.engines.expectations.engine import ENGINES, engine_of, mark_of
from tests.engines.expectations.tables import Tables
from tests.support.servers.fix_cluster import IMPATIENT


@pytest.fixture(scope="module")
def tables(cluster):
    name = f"engines_{uuid.uuid4().hex[:8]}"
    with fluss.connect(f"fluss://{cluster.bootstrap}", **IMPATIENT) as session:
        session.create_database(name)
        try:
            yield Tables(session, name)
        finally:
            session.drop_database(name, cascade=True)


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    pytest.importorskip({"core": "polars", "spark": "pyspark"}.get(request.param, request.param))
    return request.param, engine_of(request.param)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_an_engine_gives_what_is_expected(case, engine, tables, cluster, request):
    name, adapter = engine
    mark = mark_of(adapter.marks, case.name)
    if mark is not None:
        reason = f"{name}, {mark.kind}: {mark.reason}"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    if case.error is not None:
        with pytest.raises(case.error) as raised:
            read(adapter, case, tables, cluster)
        assert case.text in f"{raised.value}\n{getattr(raised.value, 'hint', '')}"
        return
    got = read(adapter, case, tables, cluster)
    if case.count is not None:
        assert got.num_rows == case.count
        return
    if case.ids is not None:
        assert got.schema.names == list(case.columns or got.schema.names)
        assert sorted(got.column("id").to_pylist()) == sorted(case.ids)
        return
    check_rows(got, case, tables, nan_is_greatest=adapter.nan_is_greatest)


def test_every_mark_speaks_of_a_case(engine):
    _, adapter = engine
    for name in adapter.marks:
        assert any(mark_of({name: adapter.marks[name]}, case.name) for case in CASES), name


def test_the_names_of_cases_are_unique():
    names = [each.name for each in CASES]
    assert len(names) == len(set(names))


def read(adapter: Any, case: Case, tables: Tables, cluster: Any) -> pa.Table:
    name = tables.name(case.table)
    config: Any = {"bootstrap.servers": cluster.bootstrap}
    table: Any = name + case.query
    if case.address == "url":
        table, config = f"fluss://{cluster.bootstrap}/{name}{case.query}", None
    elif case.address == "table":
        table, config = tables.session.table(name), None
    filter_ = case.filter
    return adapter.read(
        table,
        config=config,
        columns=None if case.columns is None else list(case.columns),
        filter=filter_(tables.moment(case.table)) if callable(filter_) else filter_,
        limit=case.limit,
        options=case.options,
    )


def check_rows(got: pa.Table, case: Case, tables: Tables, *, nan_is_greatest: bool) -> None:
    """Compare rows by value, after a safe cast of the engine's types."""
    if case.exactly is not None:
        expected = pa.Table.from_pylist(list(case.exactly))
    else:
        keep = case.keep
        if nan_is_greatest and case.keep_greatest_nan is not None:
            keep = case.keep_greatest_nan
        rows = tables.rows(case.table)
        mask = [keep(row) for row in _python_rows(rows)]
        expected = rows.filter(pa.array(mask, pa.bool_()))
        names = case.columns or case.options.get("columns")
        if names is not None:
            expected = expected.select(list(names))
    assert got.schema.names == expected.schema.names
    mine, theirs = (_canonical(each, expected.schema) for each in (got, expected))
    assert (mine if case.is_ordered else sorted(mine)) == (
        theirs if case.is_ordered else sorted(theirs)
    )


def _canonical(table: pa.Table, schema: pa.Schema) -> list[str]:
    """Return rows as texts that differ where a bit of a value differs."""
    columns = [_texts(table.column(name), schema.field(name).type) for name in schema.names]
    return list(map(" | ".join, zip(*columns, strict=True))) if columns else []


def _texts(column: pa.ChunkedArray, kind: pa.DataType) -> list[str]:
    cast = column.cast(kind)
    if pa.types.is_timestamp(kind):
        cast = cast.cast(pa.timestamp(kind.unit)).cast(pa.int64())
    return [repr(value) for value in cast.to_pylist()]


def _python_rows(rows: pa.Table) -> list[dict[str, Any]]:
    # Nanoseconds are not Python's; no case looks at them.
    kept = [each.name for each in rows.schema if not _is_nanoseconds(each.type)]
    return rows.select(kept).to_pylist()


def _is_nanoseconds(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit == "ns"
