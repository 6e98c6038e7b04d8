"""Filters in fetches: batches are skipped by their statistics, and no matching row is lost."""

from __future__ import annotations

import datetime as dt
import math
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import fluss
from fluss import col
from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import LogFormat
from fluss.model.types.factory import DataTypes
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.records.log.statistics import (
    BatchStatistics,
    collect_statistics,
    read_statistics,
    write_statistics,
)
from fluss.wire import messages as pb
from fluss_server.log import filtered_read as filtered
from fluss_server.log.statistics_filter import batch_test
from fluss_server.table_schemas import TableSchemas
from tests.support.servers.bucket_logs import PLAIN, SCHEMA, batch_bytes, rows_of
from tests.support.servers.embedded import running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.raw_client import RawConnection, RefusedError

INT, STRING, DOUBLE = 3, 8, 6
EQUAL, NOT_EQUAL, LESS, GREATER, STARTS, IS_NULL, NOT_NULL, IN, NOT_IN = 0, 1, 2, 4, 8, 6, 7, 11, 12
LAYOUT = TableSchemas({1: SCHEMA}, LogFormat.ARROW).layouts[1]


def with_statistics(first, count=3, *, claimed=None):
    """Return a batch of magic 1: ids from `first` on, with the statistics of both columns."""
    rows = rows_of(count, first=first)
    found = collect_statistics(rows, LAYOUT, (0, 1)) if claimed is None else claimed
    body = arrow_log_body(rows, PLAIN, statistics=write_statistics(found, LAYOUT.types))
    return b"".join(map(bytes, write_log_batch(body, schema_id=1)))


def leaf(function, *values, field=0, kind=INT):
    made = pb.PbPredicate(type=0)
    made.leaf.function, made.leaf.field_id = function, field
    names = {INT: "int_value", STRING: "string_value", DOUBLE: "double_value"}
    for value in values:
        made.leaf.literals.add(literal_type=kind, is_null=value is None, **{names[kind]: value})
    return made


def both(function, *children):
    made = pb.PbPredicate(type=1)
    made.compound.function = function
    made.compound.children.extend(children)
    return made


@pytest.fixture
def table(tmp_path):
    """Batches of ids 0-2, 10-12, 20-22 with statistics, and one of 30-32 without."""
    with running(tmp_path) as server:
        connection = RawConnection(server.address)
        made = LogTable(connection)
        made.produce(*(with_statistics(first) for first in (0, 10, 20)), batch_bytes(3, first=30))
        yield made
        connection.close()


def fetch(table, predicate, offset=0, *, schema_id=1, wait_ms=None, bytes_max=1 << 24):
    request = table.fetch_request(offset, wait_ms=wait_ms, bytes_max=bytes_max)
    request.tables_req[0].filter_predicate.CopyFrom(predicate)
    if schema_id is not None:
        request.tables_req[0].filter_schema_id = schema_id
    ((found,),) = (each.buckets_resp for each in table.connection.call(request).tables_resp)
    return found


def offsets_of(found):
    from fluss.records.log.log_batch import iter_log_batches

    return [each.base_offset for each in iter_log_batches(found.records, tail="refuse")]


@pytest.mark.parametrize(
    ("predicate", "kept"),
    [
        (leaf(EQUAL, 11), [3, 9]),
        (leaf(EQUAL, 5), [9]),
        (leaf(LESS, 11), [0, 3, 9]),
        (leaf(GREATER, 12), [6, 9]),
        (leaf(IN, 1, 21), [0, 6, 9]),
        (leaf(IN), [9]),
        (both(1, leaf(IN), leaf(EQUAL, 22)), [6, 9]),
        (both(0, leaf(IN), leaf(NOT_NULL)), [9]),
        (leaf(NOT_IN), [0, 3, 6, 9]),
        (leaf(IS_NULL), [9]),
        (leaf(NOT_NULL), [0, 3, 6, 9]),
        (leaf(NOT_EQUAL, 11), [0, 3, 6, 9]),
        (leaf(EQUAL, None), [9]),
        (leaf(STARTS, "name 2", field=1, kind=STRING), [0, 6, 9]),
        (both(0, leaf(GREATER, 5), leaf(LESS, 15)), [3, 9]),
        (both(1, leaf(EQUAL, 1), leaf(EQUAL, 22)), [0, 6, 9]),
        (both(0), [0, 3, 6, 9]),
        # Filters that the server does not understand skip nothing.
        (leaf(EQUAL, 5, field=7), [0, 3, 6, 9]),
        (leaf(EQUAL, 5.0, kind=DOUBLE), [0, 3, 6, 9]),
        (leaf(99, 5), [0, 3, 6, 9]),
        (leaf(EQUAL), [0, 3, 6, 9]),
        (leaf(EQUAL, 5, 6), [0, 3, 6, 9]),
        (pb.PbPredicate(type=7), [0, 3, 6, 9]),
    ],
)
def test_batches_without_matching_rows_are_skipped(table, predicate, kept):
    assert offsets_of(fetch(table, predicate)) == kept


def test_the_response_names_the_end_of_skipped_batches(table):
    table.produce(with_statistics(40))
    found = fetch(table, leaf(EQUAL, 11))
    assert offsets_of(found) == [3, 9]
    assert found.filtered_end_offset == 15
    nothing = fetch(table, leaf(EQUAL, 11), 12)
    assert offsets_of(nothing) == []
    assert nothing.filtered_end_offset == 15
    assert not fetch(table, leaf(EQUAL, 40)).HasField("filtered_end_offset")


def test_a_waiting_fetch_is_answered_immediately_where_everything_was_skipped(table):
    table.produce(with_statistics(40))
    found = fetch(table, leaf(EQUAL, 11), 12, wait_ms=30_000)
    assert found.filtered_end_offset == 15


def test_a_full_response_names_no_end_beyond_the_examined_batches(table):
    size = len(with_statistics(0))
    found = fetch(table, leaf(LESS, 15), bytes_max=size)
    assert offsets_of(found) == [0]
    assert not found.HasField("filtered_end_offset")


def test_one_request_examines_a_limited_number_of_batches(table, monkeypatch):
    monkeypatch.setattr(filtered, "BATCHES_LOOKED_AT_MAX", 2)
    found = fetch(table, leaf(EQUAL, 31))
    assert offsets_of(found) == []
    assert found.filtered_end_offset == 6
    assert offsets_of(fetch(table, leaf(EQUAL, 31), 6)) == [9]


def test_a_filter_for_no_schema_is_refused_and_for_an_unknown_one_ignored(table):
    with pytest.raises(RefusedError) as refused:
        fetch(table, leaf(EQUAL, 11), schema_id=None)
    assert refused.value.code == -1
    assert offsets_of(fetch(table, leaf(EQUAL, 11), schema_id=9)) == [0, 3, 6, 9]


def test_batches_with_statistics_are_stored_unchanged(table):
    stored = table.fetch(0).records
    sent = with_statistics(0)
    assert stored[13 + 8 : len(sent)] == sent[13 + 8 :]
    assert stored[12] == 1


@pytest.mark.parametrize(
    "claimed",
    [
        BatchStatistics(positions=(0,), null_counts=(0,), minimums=(1,), maximums=(2,)),
        BatchStatistics(positions=(0,), null_counts=(0,), minimums=(0,), maximums=(1,)),
        BatchStatistics(positions=(0,), null_counts=(1,), minimums=(0,), maximums=(2,)),
        BatchStatistics(positions=(0,), null_counts=(3,), minimums=(None,), maximums=(None,)),
    ],
)
def test_statistics_that_would_hide_rows_are_refused(table, claimed):
    answer = table.produce(with_statistics(0, claimed=claimed))
    assert answer.error_code == 14
    assert "claim less than its rows have" in answer.error_message


def test_statistics_may_be_wider_than_the_rows(table):
    claimed = BatchStatistics(positions=(0,), null_counts=(0,), minimums=(-9,), maximums=(9,))
    assert table.produce(with_statistics(0, claimed=claimed)).base_offset == 12


# --- types that are ordered in more than one way --------------------------------------------------


def one_column(data_type, low, high):
    schema = Schema.builder().column("x", data_type).build()
    known = BatchStatistics(positions=(0,), null_counts=(0,), minimums=(low,), maximums=(high,))
    return lambda predicate: batch_test(predicate, schema)(known, 3)


def test_char_is_collected_written_and_skipped_by_like_string():
    data_type = DataTypes.char(3)
    layout = BatchLayout.of(["x"], [data_type])
    rows = pa.record_batch({"x": ["bé", None, "abc"]})
    found = collect_statistics(rows, layout, (0,))
    assert (found.minimums, found.maximums, found.null_counts) == (("abc",), ("bé",), (1,))
    block = memoryview(write_statistics(found, layout.types))
    assert read_statistics(block, layout.types, record_count=3) == found
    may_have = one_column(data_type, "abc", "bé")
    assert may_have(leaf(EQUAL, "abd", kind=STRING))
    assert not may_have(leaf(EQUAL, "abb", kind=STRING))
    assert not may_have(leaf(STARTS, "c", kind=STRING))


def test_where_nan_is_involved_nothing_is_skipped():
    may_have = one_column(DataTypes.double(), 1.0, math.nan)
    assert may_have(leaf(EQUAL, 0.5, kind=DOUBLE))
    plain = one_column(DataTypes.double(), 1.0, 2.0)
    assert plain(leaf(EQUAL, math.nan, kind=DOUBLE))
    assert not plain(leaf(EQUAL, 0.5, kind=DOUBLE))


def test_the_two_zeros_are_equal():
    assert one_column(DataTypes.double(), 0.0, 1.0)(leaf(EQUAL, -0.0, kind=DOUBLE))
    assert one_column(DataTypes.double(), -1.0, -0.0)(leaf(EQUAL, 0.0, kind=DOUBLE))


def test_digits_below_the_millisecond_are_considered():
    may_have = one_column(DataTypes.time(6), 5_000, 5_000)  # a row may be 5.9 ms
    predicate = pb.PbPredicate(type=0)
    predicate.leaf.function, predicate.leaf.field_id = GREATER, 0
    predicate.leaf.literals.add(literal_type=11, is_null=False, int_value=5)
    assert may_have(predicate)


# --- with our own client ------------------------------------------------------------------------

NOON = dt.datetime(2026, 1, 1, 12, 0, 0, 678_901)  # noqa: DTZ001 - TIMESTAMP has no zone
COLUMNS = {
    "i": lambda chance: chance.randrange(-50, 50),
    "s": lambda chance: chance.choice(["", "a", "ab", "é", "\uffff", "\U0010ffff", "zz"]),
    "f": lambda chance: chance.choice([0.0, -0.0, math.nan, 1.5, -2.5, math.inf]),
    "t": lambda chance: NOON + dt.timedelta(days=chance.randrange(20)),
    "b": lambda chance: chance.random() < 0.5,
}
ARROW = pa.schema(
    [
        ("i", pa.int32()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("t", pa.timestamp("us")),
        ("b", pa.bool_()),
    ]
)


def random_filter(chance, depth=2):
    if depth and chance.random() < 0.4:
        parts = random_filter(chance, depth - 1), random_filter(chance, depth - 1)
        return parts[0] & parts[1] if chance.random() < 0.5 else parts[0] | parts[1]
    name = chance.choice(list(COLUMNS))
    column, value = col(name), COLUMNS[name](chance)
    match chance.randrange(8):
        case 0:
            return column.is_null()
        case 1:
            return column.is_in([value, COLUMNS[name](chance)])
        case 2 if name == "s":
            return column.starts_with(value)
        case 3:
            return column != value
        case 4:
            return column > value if name != "b" else column == value
        case 5:
            return column <= value if name != "b" else column == value
        case _:
            return column == value


def test_random_filters_find_what_they_find_without_statistics(tmp_path):
    chance = Random(5)
    with running(tmp_path) as server, fluss.connect(f"fluss://{server.address}") as session:
        for name, properties in (("plain", {}), ("known", {"table.statistics.columns": "*"})):
            session.create_table(f"fluss.{name}", ARROW, properties=properties)
        for _ in range(12):
            around = chance.randrange(-50, 50)
            rows = [
                {
                    name: None if chance.random() < 0.2 else make(chance)
                    for name, make in COLUMNS.items()
                }
                | {"i": around + chance.randrange(4)}
                for _ in range(5)
            ]
            batch = pa.Table.from_pylist(rows, schema=ARROW)
            for name in ("plain", "known"):
                session.append(f"fluss.{name}", batch)
        fewer = 0
        for _ in range(60):
            predicate = random_filter(chance)
            scans = [
                session.table(f"fluss.{name}").scan(filter=predicate) for name in ("plain", "known")
            ]
            plain, known = (sorted(map(repr, each.to_arrow().to_pylist())) for each in scans)
            assert known == plain, predicate
            fewer += scans[1].stats.batches_read < scans[0].stats.batches_read
        assert fewer > 10, "statistics have spared batches"


def test_the_statistics_of_numpy_types_compare_as_python_does():
    layout = BatchLayout.of(["d"], [DataTypes.date()])
    rows = pa.record_batch([pa.array(np.arange(3), pa.int32()).cast(pa.date32())], names=["d"])
    assert collect_statistics(rows, layout, (0,)).maximums == (2,)
