"""Keys, their buckets and partition names, compared with Java's results."""

from __future__ import annotations

import pytest

from fluss.rows.formats.compacted_row import CompactedRowReader
from fluss.rows.keys.bucketing import bucket_function
from fluss.rows.keys.encoders import bucket_key_encoder
from fluss.rows.keys.partition_codes import partition_codes
from fluss.rows.keys.partition_text import partition_text, partition_value
from tests.support.differential.golden import answers, golden
from tests.support.generators.encoded import row_bytes
from tests.support.generators.golden_cases import (
    ICEBERG_KEY_CASES,
    KEY_CASES,
    PARTITION_CASES,
    WIDE_KEY_CASES,
)
from tests.support.generators.random_columns import column_of, columns_of
from tests.support.generators.seeded_values import exact

ALL_KEYS = (*KEY_CASES, *WIDE_KEY_CASES)
LAKES = {"None": None, "lance": "lance", "paimon": "paimon", "iceberg": "iceberg"}


def name(value):
    return str(getattr(value, "name", value))


@pytest.mark.parametrize(
    ("file", "lake", "case"),
    [
        *(("compacted_keys", None, case) for case in ALL_KEYS),
        *(("paimon_keys", "paimon", case) for case in ALL_KEYS),
        *(("iceberg_keys", "iceberg", case) for case in ICEBERG_KEY_CASES),
    ],
    ids=name,
)
def test_a_key_has_the_recorded_bytes(file, lake, case):
    recorded = answers(file, case)
    encoder = bucket_key_encoder(case.types, lake_format=lake)
    assert list(encoder.encode_rows(columns_of(case.types, case.rows))) == recorded
    assert [encoder.encode_row(row) for row in case.rows] == recorded


@pytest.mark.parametrize("case", ALL_KEYS, ids=name)
def test_the_recorded_keys_are_read(case):
    read = [
        CompactedRowReader(case.types, is_key=True).read(each)
        for each in answers("compacted_keys", case)
    ]
    assert exact(read) == exact(list(case.rows))


@pytest.mark.parametrize("entry", golden("buckets").values(), ids=lambda entry: entry["name"])
def test_a_key_lies_in_the_recorded_bucket(entry):
    lake, count = entry["name"].split()
    keys = [bytes.fromhex(each) for each in entry["keys"]]
    function = bucket_function(LAKES[lake])
    assert [function.bucket(key, int(count)) for key in keys] == entry["buckets"]
    assert function.buckets(row_bytes(keys), int(count)).tolist() == entry["buckets"]


@pytest.mark.parametrize("case", PARTITION_CASES, ids=name)
def test_a_value_has_the_recorded_text_in_a_partition_name(case):
    (data_type,) = case.types
    recorded = answers("partition_texts", case, field="texts")
    values = [row[0] for row in case.rows]
    assert [partition_text(value, data_type) for value in values] == recorded
    short = [index for index, text in enumerate(recorded) if len(text.encode()) < 99]
    found, codes = partition_codes([column_of(data_type, [values[index] for index in short])])
    assert [found[code][0] for code in codes] == [recorded[index] for index in short]


@pytest.mark.parametrize("case", PARTITION_CASES, ids=name)
def test_the_recorded_text_is_read_as_the_value(case):
    (data_type,) = case.types
    for text in answers("partition_texts", case, field="texts"):
        assert partition_text(partition_value(text, data_type), data_type) == text
