"""Binlogs of some columns, and the counts and sizes that a table shows."""

import re

import pyarrow.dataset as ds
import pytest

from fluss import col
from fluss.errors import InvalidValueError, SchemaMismatchError, UnsupportedOperationError

FRONT = ["_change_type", "_log_offset", "_commit_timestamp"]


@pytest.mark.parametrize("columns", [["x"], ["x", "id"], ["day"], ["id", "day", "x"]], ids=str)
def test_a_binlog_of_some_columns_is_that_of_all_without_the_others(keyed, columns):
    whole = keyed.scan(mode="binlog").to_arrow()
    scan = keyed.scan(mode="binlog", columns=columns)
    found = scan.to_arrow()
    assert found.schema == scan.schema
    assert found.column_names == [*FRONT, "before", "after"]
    assert [each.name for each in found.schema.field("before").type] == columns
    narrowed = [
        row
        | {
            side: row[side] and {name: row[side][name] for name in columns}
            for side in ("before", "after")
        }
        for row in whole.to_pylist()
    ]
    assert found.to_pylist() == narrowed
    assert {row["_change_type"] for row in narrowed} == {"insert", "update", "delete"}


def test_options_that_cannot_narrow_a_binlog_are_refused(keyed):
    with pytest.raises(UnsupportedOperationError, match="before and a row after") as refused:
        keyed.scan(mode="binlog", filter=col("id") == 1)
    assert "changelog" in refused.value.hint
    with pytest.raises(SchemaMismatchError) as misspelt:
        keyed.scan(mode="binlog", columns=["dayy"])
    assert misspelt.value.hint == "did you mean 'day'?"
    with pytest.raises(SchemaMismatchError, match="_bucket"):
        keyed.scan(mode="binlog", columns=["id", "_bucket"])
    with pytest.raises(InvalidValueError):
        keyed.scan(mode="binlog", columns=[])


def test_a_keyed_table_shows_its_rows_and_a_log_how_many_there_are_at_most(keyed, events):
    assert "rows: 990\n" in repr(keyed)
    assert "changes in the log: at most 1,030\n" in repr(keyed)
    assert "rows: at most 1,000\n" in repr(events)
    for table in (keyed, events):
        shown = re.search(r"size of the log: about ([\d.,]+) (bytes|KB)$", repr(table))
        assert shown, repr(table)
        assert "size of the log" in table._repr_html_()


def test_the_shown_size_of_a_log_is_near_the_real_one(session, rows):
    plain = {"table.log.arrow.compression.type": "none"}
    table = session.create_table("sized", rows, buckets=2, properties=plain)
    for _ in range(10):
        table.append(rows)
    shown = re.search(r"size of the log: about ([\d.,]+) KB", repr(table))
    payload = 10 * rows.nbytes / 1_000
    assert 0.8 * payload < float(shown.group(1).replace(",", "")) < 1.5 * payload


def test_an_empty_table_has_no_rows_and_no_bytes(session, rows):
    for name, options in (("log", {}), ("keyed", {"primary_key": ["id"]})):
        table = session.create_table(name, rows.schema, buckets=2, **options)
        assert re.search(r"^rows: (at most )?0$", repr(table), re.MULTILINE)
        assert "size of the log: about 0 bytes" in repr(table)


def test_partitions_are_summed_up(parted):
    assert "partitions: 3 by day" in repr(parted)
    assert "rows: at most 1,000" in repr(parted)
    assert "size of the log: about" in repr(parted)


def test_a_dataset_of_a_binlog_has_its_columns_and_its_rows(keyed):
    scan = keyed.scan(mode="binlog")
    whole = scan.to_arrow()
    dataset = scan.to_dataset()
    assert dataset.count_rows() == whole.num_rows
    assert dataset.to_table(columns=["after"]).column_names == ["after"]
    deleted = ds.field("_change_type") == "delete"
    expected = whole.filter(deleted).num_rows
    assert expected == 10
    assert dataset.count_rows(filter=deleted) == expected
    assert dataset.to_table(columns=["before"], filter=deleted).num_rows == expected
    pieces = [each.to_table(columns=["_log_offset"]) for each in dataset.get_fragments()]
    assert sum(each.num_rows for each in pieces) == whole.num_rows
