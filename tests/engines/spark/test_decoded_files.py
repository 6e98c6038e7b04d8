"""Parquet that Spark writes: Polars' decoder, which the lake borrows, gives what pyarrow reads."""

import datetime as dt
from random import Random

import pytest

from fluss_lake.lent_decoder import LENT_TYPES
from tests.support.lake.decoded_files import compare_decoders

ROWS = 5_000
FLOATS = [float("nan"), -0.0, 0.0, float("inf"), -float("inf"), 5e-324, 1.5]
TEXTS = ["", "short", "exactly 12 b", "13 characters", "äöü €😀" * 9, "\x00"]
SCHEMA = (
    "truth boolean, number int, large bigint, single float, double double, day date, "
    "at timestamp_ntz, zoned timestamp, text string, bytes binary"
)


def row(rng):
    at = dt.datetime(1900, 1, 1) + dt.timedelta(microseconds=rng.randrange(10**16))  # noqa: DTZ001
    values = (
        rng.random() < 0.5,
        rng.choice([-(2**31), 2**31 - 1, 7, rng.randrange(10**9)]),
        rng.choice([-(2**63), 2**63 - 1, 7, rng.randrange(10**18)]),
        rng.choice(FLOATS[:5]),
        rng.choice(FLOATS),
        at.date(),
        at,
        at.replace(tzinfo=dt.UTC),
        rng.choice([*TEXTS, str(rng.random()) * 5]),
        rng.choice([b"\xff\xfe", b"", rng.randbytes(20)]),
    )
    return tuple(None if rng.random() < 0.1 else value for value in values)


@pytest.mark.slow  # Spark writes eight files
@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "none"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_polars_decodes_what_spark_writes_as_pyarrow_reads_it(spark, tmp_path, codec, version):
    rng = Random(f"{codec}{version}")
    rows = [row(rng) for _ in range(ROWS)]
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    writer = frame.write.option("compression", codec).option("parquet.writer.version", version)
    for name, value in {"parquet.page.size": 4_000, "parquet.block.size": 100_000}.items():
        writer = writer.option(name, value)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        writer.parquet(str(tmp_path / "files"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    counts = compare_decoders((tmp_path / "files").rglob("*.parquet"))
    for kind in LENT_TYPES:
        assert counts[str(kind)] == ROWS, kind
