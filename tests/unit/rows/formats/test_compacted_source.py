"""Compiled functions for single rows and keys do what the loops do, for right and wrong ones."""

from __future__ import annotations

from random import Random

import pytest

from fluss.errors import FlussError
from fluss.model.types.factory import DataTypes
from fluss.rows.formats import compacted_row
from fluss.rows.formats.compacted_row import CompactedRowReader, CompactedRowWriter
from tests.support.generators.random_values import ALL_TYPES, as_lists, random_rows

MANY = [DataTypes.int(), DataTypes.string(), DataTypes.bigint(), DataTypes.double()] * 5
KEYS = [
    [DataTypes.bigint()],
    [DataTypes.string()],
    [DataTypes.int(), DataTypes.string(), DataTypes.timestamp(), DataTypes.boolean()],
]


def outcome(call, *given):
    try:
        return repr(as_lists(call(*given)))
    except FlussError as error:
        return type(error), str(error), error.facts


def damaged(data, random):
    """The same bytes, cut off, longer, and with one byte changed."""
    yield data[:-1]
    yield data + b"\0"
    for _ in range(20):
        if data:
            at = random.randrange(len(data))
            yield data[:at] + bytes((random.choice([0, 1, 127, 128, 255]),)) + data[at + 1 :]


@pytest.mark.parametrize("types", [[each] for each in ALL_TYPES] + [MANY], ids=str)
def test_rows_are_read_as_by_the_loop_damaged_or_not(types):
    random = Random(7)
    reader = CompactedRowReader(types)
    for values in random_rows(random, types, 40):
        data = CompactedRowWriter(types).write(values)
        for given in (data, *damaged(data, random)):
            loop = outcome(reader.read_section, given, 0, len(given))
            assert outcome(reader.read, given) == loop == outcome(reader.read, memoryview(given))


@pytest.mark.parametrize("types", KEYS, ids=str)
def test_keys_are_written_as_by_the_loop_right_or_not(types):
    writer = CompactedRowWriter(types, is_key=True)
    rows = [list(each) for each in random_rows(Random(3), types, 60)]
    rows += [[None] * len(types), ["x"] * len(types), [2**70] * len(types), [], [1] * 9]
    for values in rows:
        assert outcome(writer.write, values) == outcome(writer._write_fields, values)


def test_rows_of_very_many_fields_are_read_by_the_loop(monkeypatch):
    monkeypatch.setattr(compacted_row, "FIELDS_MAX", 3)
    for values in random_rows(Random(3), MANY, 5):
        data = CompactedRowWriter(MANY).write(values)
        reader = CompactedRowReader(MANY)
        assert reader.read(data) == reader.read_section(data, 0, len(data))
