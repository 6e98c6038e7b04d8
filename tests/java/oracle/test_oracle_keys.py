"""Primary keys and bucket keys for every lake format: our bytes are Java's."""

from __future__ import annotations

from random import Random

import pytest

from fluss.errors import UnsupportedTypeError
from fluss.rows.formats.compacted_row import CompactedRowReader
from fluss.rows.keys.bucketing import bucket_function
from fluss.rows.keys.encoders import bucket_key_encoder, primary_key_encoder
from tests.support.differential.oracle import JavaRefusedError
from tests.support.generators.random_columns import columns_of
from tests.support.generators.seeded_values import KEY_TYPES, random_rows, random_value

LAKES = (None, "lance", "paimon", "iceberg")
KEYS_EACH = 60
REQUIRED = [each.not_null() for each in KEY_TYPES]
# Java refuses the types that Iceberg cannot bucket by, and so do we.
ICEBERG_TYPES = [
    each
    for each in REQUIRED
    if each.root not in {"BOOLEAN", "TINYINT", "SMALLINT", "TIMESTAMP_WITH_LOCAL_TIME_ZONE"}
]


def keys_of(data_type, seed):
    rng = Random(f"{seed} {data_type}")
    return [(random_value(rng, data_type),) for _ in range(KEYS_EACH)]


def written(encoder, types, rows):
    """Return the keys; those of the two paths must be equal."""
    run_blocking = list(encoder.encode_rows(columns_of(types, rows)))
    one_by_one = [encoder.encode_row(row) for row in rows]
    assert run_blocking == one_by_one
    return run_blocking


def check_keys(oracle, compare, lake, types, rows, positions):
    """Compare every encoder of a table with this key with the one that Java chooses."""
    key_types = [types[each] for each in positions]
    key_rows = [tuple(row[each] for each in positions) for row in rows]
    kind = f"{lake or 'fluss'} keys"
    ours = written(bucket_key_encoder(key_types, lake_format=lake), key_types, key_rows)
    java = oracle.bucket_keys(types, positions, rows, lake=lake)
    compare.rows(f"{kind}: of buckets", key_types, key_rows, ours=ours, java=java)
    for version, is_default in ((1, True), (1, False), (2, True), (2, False)):
        encoder = primary_key_encoder(
            key_types,
            lake_format=lake,
            kv_format_version=version,
            is_default_bucket_key=is_default,
        )
        java = oracle.primary_keys(
            types,
            positions,
            rows,
            lake=lake,
            kv_format_version=version,
            is_default_bucket_key=is_default,
        )
        ours = written(encoder, key_types, key_rows)
        compare.rows(f"{kind}: primary", key_types, key_rows, ours=ours, java=java)


@pytest.mark.parametrize("data_type", REQUIRED, ids=str)
@pytest.mark.parametrize("lake", [None, "lance", "paimon"])
def test_a_key_of_one_column_equals_that_of_java(oracle, compare, lake, data_type):
    check_keys(oracle, compare, lake, (data_type,), keys_of(data_type, 1), [0])


@pytest.mark.parametrize("data_type", ICEBERG_TYPES, ids=str)
def test_an_iceberg_key_equals_that_of_java(oracle, compare, data_type):
    check_keys(oracle, compare, "iceberg", (data_type,), keys_of(data_type, 2), [0])


@pytest.mark.parametrize(
    "data_type", [each for each in REQUIRED if each not in ICEBERG_TYPES], ids=str
)
def test_a_type_that_iceberg_cannot_bucket_by_is_refused_by_both(oracle, data_type):
    rows = keys_of(data_type, 3)
    with pytest.raises(JavaRefusedError, match="Unsupported type"):
        oracle.bucket_keys((data_type,), [0], rows, lake="iceberg")
    with pytest.raises(UnsupportedTypeError):
        bucket_key_encoder((data_type,), lake_format="iceberg")


@pytest.mark.parametrize("lake", [None, "paimon"])
@pytest.mark.parametrize("width", [2, 3, 5, 8])
def test_keys_of_several_columns_agree(oracle, compare, lake, width):
    """The key columns stand anywhere in the row, in the order of the key."""
    rng = Random(f"{lake} {width}")
    for _ in range(4):
        types = tuple(rng.choice(KEY_TYPES).not_null() for _ in range(width + 3))
        rows = random_rows(rng, types, KEYS_EACH)
        check_keys(oracle, compare, lake, types, rows, rng.sample(range(width + 3), width))


@pytest.mark.parametrize("width", [1, 7, 55, 56, 57, 64, 70])
def test_a_wide_paimon_key_may_have_nulls(oracle, compare, width):
    """A bucket key of a log table may be NULL; the null bits share their words with the header."""
    rng = Random(width)
    types = tuple(rng.choice(KEY_TYPES).as_nullable() for _ in range(width))
    rows = random_rows(rng, types, 20, null_rate=0.4)
    ours = written(bucket_key_encoder(types, lake_format="paimon"), types, rows)
    java = oracle.bucket_keys(types, range(width), rows, lake="paimon")
    compare.rows("paimon keys: with nulls", types, rows, ours=ours, java=java)


@pytest.mark.parametrize("data_type", REQUIRED, ids=str)
def test_we_read_the_keys_that_java_writes(oracle, compare, data_type):
    types, rows = (data_type,), keys_of(data_type, 4)
    java = oracle.primary_keys(types, [0], rows)
    ours = [CompactedRowReader(types, is_key=True).read(each) for each in java]
    compare.rows("fluss keys: Java's read by us", types, rows, ours=ours, java=rows)


@pytest.mark.parametrize("lake", [None, "paimon"])
@pytest.mark.parametrize("data_type", REQUIRED, ids=str)
def test_java_reads_the_keys_that_we_write(oracle, compare, lake, data_type):
    types, rows = (data_type,), keys_of(data_type, 5)
    encoder = primary_key_encoder(types, lake_format=lake, is_default_bucket_key=True)
    java = oracle.read_primary_keys(types, [0], written(encoder, types, rows), lake=lake)
    compare.rows(f"{lake or 'fluss'} keys: ours read by Java", types, rows, ours=rows, java=java)


@pytest.mark.parametrize("lake", LAKES)
def test_a_value_lies_in_the_bucket_where_java_looks_for_it(oracle, compare, lake):
    """From the value to the bucket, through key bytes and hash."""
    for data_type in ICEBERG_TYPES:
        types, rows = (data_type,), keys_of(data_type, 6)
        rows = [row for row in rows if row[0] not in ("", b"")]  # an empty key has no bucket
        keys = bucket_key_encoder(types, lake_format=lake).encode_rows(columns_of(types, rows))
        ours = bucket_function(lake).buckets(keys, 16).tolist()
        java = oracle.buckets(oracle.bucket_keys(types, [0], rows, lake=lake), 16, lake=lake)
        compare.rows(f"{lake or 'fluss'} buckets of values", types, rows, ours=ours, java=java)
