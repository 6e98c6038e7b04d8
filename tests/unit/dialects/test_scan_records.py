"""The records of a poll, and how rows are made of columns."""

from random import Random

import pyarrow as pa
import pytest

from fluss.dialects.scan_records import ScanRecords
from fluss.errors import InvalidValueError
from fluss.log.decode import DecodedBatch
from fluss.model.change_type import ChangeType
from fluss.model.paths import TableBucket
from fluss.model.types.factory import DataTypes
from fluss.model.types.type_to_arrow import to_wire_arrow_type
from fluss.model.values.conversion import from_physical
from fluss.records.convert.from_values import array_from_values
from fluss.records.convert.row_dicts import COLUMNS_MAX, row_dicts
from fluss.records.convert.to_python import python_values
from tests.support.generators.random_values import ALL_TYPES, random_rows


@pytest.mark.parametrize("count", [1, 2, 7, COLUMNS_MAX, COLUMNS_MAX + 1])
def test_rows_are_dictionaries_in_the_order_of_the_columns(count):
    names = [f"c{each}" for each in range(count)]
    columns = [[each, -each, None] for each in range(count)]
    rows = row_dicts(names, columns)
    assert rows == [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    assert list(rows[0]) == names


def test_names_are_taken_as_they_are():
    rows = row_dicts(["n1", 'quote"d', "class"], [[1], [2], [3]])
    assert rows == [{"n1": 1, 'quote"d': 2, "class": 3}]


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        row_dicts(["a", "b"], [[1, 2], [3]])


BUCKET, OTHER = TableBucket(1, 0), TableBucket(1, 1)
TYPES = (DataTypes.bigint(), DataTypes.string())


def batch(bucket, first, count):
    data = pa.RecordBatch.from_pydict(
        {"id": range(first, first + count), "s": [f"s{each}" for each in range(count)]},
        schema=pa.schema([("id", pa.int64()), ("s", pa.string())]),
    )
    return DecodedBatch(batch=data, bucket=bucket, base_offset=first, timestamp=9)


def whole(records):
    return [(each.offset, each.timestamp, each.change_type, each.row) for each in records]


def test_a_loop_gives_the_records_of_the_lists_wherever_the_first_row_is_used():
    batches = [batch(BUCKET, 0, 3), batch(OTHER, 7, 2), batch(BUCKET, 3, 4)]
    expected = [
        (offset, 9, ChangeType.AppendOnly, {"id": offset, "s": f"s{place}"})
        for offset, place in [
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 0),
            (4, 1),
            (5, 2),
            (6, 3),
            (7, 0),
            (8, 1),
        ]
    ]
    for used in (None, 0, 1, 6):
        records = ScanRecords(batches, TYPES)
        if used is not None:
            assert list(records)[used].row == expected[used][3]
        kept = []
        for number, record in enumerate(records):
            if number == used:
                assert record.row["id"] == number
            kept.append(record)
        assert whole(kept) == whole(records) == expected
        assert whole(records.records(BUCKET)) + whole(records.records(OTHER)) == expected
        assert whole(records) == whole(records[:]) == expected


def test_slices_that_share_their_values_give_the_records_of_the_whole():
    whole_batch = batch(BUCKET, 5, 10)
    expected = whole(ScanRecords([whole_batch], TYPES))
    shared = whole_batch.sharing_rows(TYPES)
    assert shared.sharing_rows(TYPES) is shared
    for step in (1, 3, 10):
        slices = [shared.slice(at, min(step, 10 - at)) for at in range(0, 10, step)]
        assert whole(ScanRecords(slices, TYPES)) == expected
        found = [record for each in slices for record in whole(ScanRecords([each], TYPES))]
        assert found == expected


def test_a_row_is_one_dictionary_however_its_record_is_reached():
    records = ScanRecords([batch(BUCKET, 0, 2)], TYPES)
    first = next(iter(records)).row
    first["more"] = 1
    assert next(iter(records)).row is first is records[0].row is records.records(BUCKET)[0].row


def test_kept_records_stay_themselves():
    records = ScanRecords([batch(BUCKET, 0, 2)], TYPES)
    assert records.records(BUCKET)[0] is records[BUCKET][0] is next(iter(records))
    assert records[0] is records[0]


def test_a_record_has_no_further_attributes():
    (record,) = ScanRecords([batch(BUCKET, 0, 1)], TYPES)
    with pytest.raises(AttributeError, match="'ScanRecord' object has no attribute 'rows'"):
        _ = record.rows
    assert "row={'id': 0, 's': 's0'}" in repr(record)


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_columns_become_the_values_that_single_values_become(data_type):
    back = from_physical(data_type)
    for values in (random_rows(Random(5), [data_type], 60), [(1,)] * 0):
        physical = [value for (value,) in values]
        for chosen in (physical, [each for each in physical if each is not None]):
            try:
                expected = [back(each) for each in chosen]
            except InvalidValueError:
                continue
            array = array_from_values(chosen, data_type, to_wire_arrow_type(data_type))
            assert repr(python_values(array, data_type)) == repr(expected)
            assert repr(python_values(array[3:], data_type)) == repr(expected[3:])
