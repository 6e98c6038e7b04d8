"""Buckets; the expected ones were computed by the bucketing functions of Fluss 0.9.1."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import ConfigError, InvalidValueError
from fluss.rows.buffers.columns import RowBytes
from fluss.rows.keys.bucketing import bucket_function

FORMATS = (None, "lance", "paimon", "iceberg", "hudi")
# key, and its bucket of 7: Fluss, Paimon, Iceberg
JAVA = [
    ("8001", 2, 2, 5),
    ("ffffffffffffffffff01", 1, 1, 6),
    ("808080808020", 5, 5, 4),
    ("04", 6, 0, 6),
    ("000a", 1, 1, 3),
    ("c3a9", 5, 5, 3),
    ("00000080", 0, 6, 6),
    ("3031323334353637", 5, 6, 5),
    ("e96a13b8", 3, 2, 0),  # its hash is -2^31, which has no absolute value
    ("29fff02c", 0, 0, 5),  # the same after the second hash: Java makes it 0
]
# From Fluss 1.0, where Hudi is new: hash and bucket of 7
HUDI = [("00000054", 0), ("000005c3", 5), ("616cc21b", 3), ("f0582fa6", 5), ("00001280", 4)]


def rows_of(keys):
    ends = np.cumsum([0, *(len(key) for key in keys)], dtype=np.int64)
    return RowBytes(data=np.frombuffer(b"".join(keys), np.uint8), offsets=ends)


@pytest.mark.parametrize(("key", "fluss", "paimon", "iceberg"), JAVA)
def test_a_key_has_the_bucket_that_java_gives_it(key, fluss, paimon, iceberg):
    key = bytes.fromhex(key)
    assert bucket_function(None).bucket(key, 7) == fluss
    assert bucket_function("paimon").bucket(key, 7) == paimon
    assert bucket_function("iceberg").bucket(key, 7) == iceberg


@pytest.mark.parametrize(("key", "bucket"), HUDI)
def test_a_hudi_key_is_its_own_hash(key, bucket):
    assert bucket_function("hudi").bucket(bytes.fromhex(key), 7) == bucket


@given(
    st.sampled_from(FORMATS),
    st.lists(st.binary(min_size=1, max_size=20), max_size=20),
    st.integers(1, 2**31 - 1) | st.integers(1, 20),
)
def test_many_keys_have_the_buckets_of_each_of_them(lake_format, keys, bucket_count):
    if lake_format == "hudi":
        keys = [(key * 4)[:4] for key in keys]
    function = bucket_function(lake_format)
    buckets = function.buckets(rows_of(keys), bucket_count)
    assert buckets.dtype == np.int32
    assert buckets.tolist() == [function.bucket(key, bucket_count) for key in keys]
    assert all(0 <= bucket < bucket_count for bucket in buckets)


@pytest.mark.parametrize("lake_format", FORMATS[:4])
def test_the_vectors_come_out_alike_when_they_are_asked_together(lake_format):
    keys = [bytes.fromhex(row[0]) for row in JAVA]
    column = {None: 1, "lance": 1, "paimon": 2, "iceberg": 3}[lake_format]
    buckets = bucket_function(lake_format).buckets(rows_of(keys), 7)
    assert buckets.tolist() == [row[column] for row in JAVA]


@pytest.mark.parametrize("lake_format", FORMATS)
def test_an_empty_key_has_no_bucket(lake_format):
    function = bucket_function(lake_format)
    with pytest.raises(InvalidValueError, match="no bytes"):
        function.bucket(b"", 3)
    with pytest.raises(InvalidValueError, match="row 1") as caught:
        function.buckets(rows_of([b"abcd", b"", b"abcd"]), 3)
    assert caught.value.row == 1


def test_a_hudi_key_of_another_length_is_refused():
    with pytest.raises(InvalidValueError, match="hash of 4"):
        bucket_function("hudi").bucket(b"12345", 3)
    with pytest.raises(InvalidValueError, match="hash of 4") as caught:
        bucket_function("hudi").buckets(rows_of([b"1234", b"123", b"12345"]), 3)
    assert caught.value.row == 1


def test_a_table_of_one_bucket_needs_no_hash_but_a_key():
    function = bucket_function(None)
    assert function.bucket(b"a", 1) == 0
    assert function.buckets(rows_of([b"a", b"bc"]), 1).tolist() == [0, 0]
    with pytest.raises(InvalidValueError):
        function.bucket(b"", 1)
    with pytest.raises(InvalidValueError):
        function.buckets(rows_of([b"a", b""]), 1)


@pytest.mark.parametrize("bucket_count", [0, -1, 2**31])
def test_a_bucket_count_that_java_cannot_have_is_a_mistake_of_the_caller(bucket_count):
    with pytest.raises(ValueError, match="bucket_count"):
        bucket_function(None).bucket(b"a", bucket_count)
    with pytest.raises(ValueError, match="bucket_count"):
        bucket_function(None).buckets(rows_of([b"a"]), bucket_count)


def test_the_format_is_read_as_java_reads_it():
    assert bucket_function("PAIMON") == bucket_function("paimon")
    assert bucket_function("lance") == bucket_function(None)
    with pytest.raises(ConfigError, match="'delta'"):
        bucket_function("delta")
