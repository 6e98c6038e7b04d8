"""The bucket of a key is Java's, for every lake format and many bucket counts."""

from __future__ import annotations

from random import Random

import pytest

from fluss.rows.keys.bucketing import bucket_function
from tests.support.generators.encoded import row_bytes

LAKES = (None, "lance", "paimon", "iceberg")
BUCKET_COUNTS = (1, 2, 3, 7, 16, 128, 1_000, 2**31 - 1)
KEYS_EACH = 250


def some_keys(lake, seed):
    """Return keys of all lengths of the last word, many with bytes from 0x80 on."""
    rng = Random(f"{seed} {lake}")
    lengths = range(8, 48, 8) if lake == "paimon" else range(1, 40)
    random = [rng.randbytes(rng.choice(lengths)) for _ in range(KEYS_EACH)]
    return [
        *(bytes([each]) * length for length in lengths for each in (0x00, 0x7F, 0x80, 0xFF)),
        *random,
    ]


@pytest.mark.parametrize("bucket_count", BUCKET_COUNTS)
@pytest.mark.parametrize("lake", LAKES)
def test_a_key_lies_in_the_bucket_that_java_chooses(oracle, compare, lake, bucket_count):
    keys = some_keys(lake, bucket_count)
    function = bucket_function(lake)
    java = oracle.buckets(keys, bucket_count, lake=lake)
    one_by_one = [function.bucket(key, bucket_count) for key in keys]
    compare.others("buckets", keys, ours=one_by_one, java=java)
    run_blocking = function.buckets(row_bytes(keys), bucket_count).tolist()
    compare.others("buckets of many keys", keys, ours=run_blocking, java=java)
