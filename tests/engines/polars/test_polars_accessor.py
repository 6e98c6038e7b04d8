"""`df.fluss` and `lf.fluss`: whole frames, and frames that are streamed."""

from __future__ import annotations

import resource

import polars as pl
import pyarrow as pa
import pytest

import fluss_polars.polars_accessor
from fluss.errors import (
    InvalidValueError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
    UnsupportedTypeError,
)
from tests.engines.expectations.tables import TYPES, _types


@pytest.fixture(params=["eager", "lazy"])
def dressed(request):
    """Makes of a DataFrame what is written: itself, or a LazyFrame."""
    return (lambda frame: frame) if request.param == "eager" else (lambda frame: frame.lazy())


def test_rows_are_appended_and_counted(session, rows, dressed):
    table = session.create_table("copy", rows, buckets=2)
    report = dressed(pl.DataFrame(rows)).fluss.append(table)
    assert report.rows == 1_000
    assert report.counts == {"append": 1_000}
    assert sum(report.next_offsets.values()) == 1_000
    assert pl.scan_fluss(table).collect().sort("id").equals(pl.DataFrame(rows))


def test_a_table_is_named_as_for_reading(session, rows, cluster, dressed):
    table = session.create_table("copy", rows, buckets=1)
    frame = dressed(pl.DataFrame(rows.slice(0, 10)))
    assert frame.fluss.append(f"fluss://{cluster.bootstrap}/{table.name}").rows == 10
    config = {"bootstrap.servers": cluster.bootstrap}
    assert frame.fluss.append(table.name, config=config).rows == 10
    assert table.count() == 20


def test_a_missing_table_is_created(session, rows, cluster, dressed):
    frame = dressed(pl.DataFrame(rows))
    name = f"{session.path_of('x').database_name}.made"
    config = {"bootstrap.servers": cluster.bootstrap}
    with pytest.raises(TableNotFoundError):
        frame.fluss.append(name, config=config)
    assert frame.fluss.append(name, config=config, create=True, buckets=3).rows == 1_000
    assert frame.fluss.append(name, config=config, create=True).rows == 1_000
    assert (session.table("made").buckets, session.table("made").count()) == (3, 2_000)
    keyed = f"{name}_by_key"
    report = frame.fluss.upsert(keyed, config=config, create=True, primary_key=["id"])
    assert (report.rows, session.table("made_by_key").primary_key) == (1_000, ("id",))
    assert session.table("made_by_key").to_polars().sort("id").equals(pl.DataFrame(rows))


def test_a_refused_frame_creates_no_table(session, rows, cluster, dressed):
    frame = dressed(pl.DataFrame(rows))
    url = f"fluss://{cluster.bootstrap}/{session.path_of('refused')}"
    with pytest.raises(UnsupportedOperationError):
        frame.fluss.append(url, create=True, primary_key=["id"])
    with pytest.raises(InvalidValueError, match="create=True is missing"):
        frame.fluss.append(url, buckets=1)
    assert "refused" not in session.tables()
    table = session.create_table("there", rows, buckets=1)
    with pytest.raises(SchemaMismatchError, match="buckets is 1, not 2"):
        frame.fluss.append(table, create=True, buckets=2)


def test_rows_are_upserted_updated_and_deleted_by_key(session, rows, keyed, dressed):
    new = pl.DataFrame(
        {"id": [1, 5_000], "day": ["d", "d"], "name": ["a", "b"], "score": [1.0, 2.0]}
    )
    assert dressed(new).fluss.upsert(keyed).counts == {"upsert": 2}
    frame = pl.scan_fluss(keyed)
    assert frame.filter(pl.col("id").is_in([1, 5_000])).sort("id").collect().equals(new)
    part = pl.DataFrame({"id": [1], "score": [9.5]})
    assert dressed(part).fluss.update(keyed).counts == {"update": 1}
    found = frame.filter(pl.col("id") == 1).collect()
    assert found.row(0) == (1, "d", "a", 9.5)
    assert dressed(new.select("id")).fluss.delete(keyed).counts == {"delete": 2}
    assert frame.filter(pl.col("id").is_in([1, 5_000])).collect().height == 0


def test_every_type_comes_back_as_it_was_written(session, dressed):
    whole = session.append("types", _types(), create=True, buckets=1)
    assert whole.rows == 3
    read = pl.scan_fluss(session.table("types")).collect()
    copy = session.create_table("types2", TYPES, buckets=1)
    assert dressed(read).fluss.append(copy).rows == 3
    first, second = session.table("types").to_arrow(), copy.to_arrow()
    assert str(second.to_pylist()) == str(first.to_pylist())


def test_categories_and_wide_integers_are_written(session, dressed):
    frame = pl.DataFrame(
        {
            "c": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "e": pl.Series(["y", "x", None], dtype=pl.Enum(["x", "y"])),
            "l": pl.Series([["x"], None, []], dtype=pl.List(pl.Categorical)),
            "s": pl.Series([{"k": "x"}, None, {"k": "y"}], dtype=pl.Struct({"k": pl.Categorical})),
            "n": pl.Series([1, None, 2**62], dtype=pl.Int128),
        }
    )
    text = pl.String
    plain = frame.with_columns(
        pl.col("c", "e").cast(text), pl.col("l").cast(pl.List(text)),
        pl.col("s").cast(pl.Struct({"k": text})), pl.col("n").cast(pl.Int64),
    )  # fmt: skip
    table = session.create_table("kinds", plain, buckets=1)
    assert dressed(frame).fluss.append(table).rows == 3
    assert pl.scan_fluss(table).collect().equals(plain)
    objects = pl.DataFrame({"c": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(UnsupportedTypeError, match="Object"):
        dressed(objects).fluss.append(table)
    assert table.count() == 3


def test_a_wide_integer_that_does_not_fit_is_refused_before_anything_is_sent(session, dressed):
    table = session.create_table("kinds", pa.schema([("n", pa.int64())]), buckets=1)
    frame = pl.DataFrame({"n": pl.Series([1, 2**63], dtype=pl.Int128)})
    with pytest.raises(InvalidValueError) as refused:
        dressed(frame).fluss.append(table)
    assert (refused.value.column, refused.value.row) == ("n", 1)
    assert table.count() == 0


def test_a_changelog_is_applied(session, keyed, rows):
    copy = session.create_table("copy", rows, primary_key=["id"], buckets=1)
    changes = pl.scan_fluss(keyed, mode="changelog", order="bucket")
    report = changes.fluss.upsert(copy)
    assert report.counts["delete"] == 10
    assert copy.to_arrow().sort_by("id").equals(keyed.to_arrow().sort_by("id"))


def test_what_does_not_fit_is_refused_by_name(session, rows, keyed, dressed):
    table = session.create_table("copy", rows, buckets=1)
    frame = pl.DataFrame(rows.slice(0, 5))
    with pytest.raises(SchemaMismatchError, match="scor"):
        dressed(frame.rename({"score": "scor"})).fluss.append(table)
    with pytest.raises((SchemaMismatchError, InvalidValueError), match="id"):
        dressed(frame.with_columns(id=pl.lit("x"))).fluss.append(table)
    with pytest.raises(UnsupportedOperationError):
        dressed(frame).fluss.append(keyed)
    with pytest.raises(TableNotFoundError, match="did you mean 'copy'"):
        dressed(frame).fluss.append(
            table.name.replace("copy", "copi"), config=table.to_source().config
        )
    assert table.count() == 0


def test_the_error_of_a_query_is_the_error_of_the_writing(session, rows):
    table = session.create_table("copy", rows, buckets=1)
    broken = pl.DataFrame(rows).lazy().with_columns(id=pl.lit("x").cast(pl.Int64))
    with pytest.raises(pl.exceptions.InvalidOperationError, match="conversion"):
        broken.fluss.append(table)


def test_a_lazy_frame_is_stopped_when_it_cannot_be_written(session):
    table = session.create_table("copy", pa.schema([pa.field("id", pa.int8())]), buckets=1)
    made = []

    def numbers(*_):
        for number in range(10_000):
            made.append(number)
            yield pl.DataFrame({"id": [number] * 10_000})

    endless = pl.io.plugins.register_io_source(numbers, schema={"id": pl.Int64})
    with pytest.raises(InvalidValueError):
        endless.fluss.append(table)
    assert len(made) < 1_000


@pytest.mark.slow  # moves half a gigabyte
def test_a_lazy_frame_is_never_whole_in_memory(session):
    table = session.create_table(
        "large", pa.schema([("id", pa.int64()), ("text", pa.string())]), buckets=2
    )

    def parts(*_):
        for number in range(120):
            yield pl.DataFrame({"id": range(50_000), "text": [f"{number:0>80}"] * 50_000})

    frame = pl.io.plugins.register_io_source(parts, schema={"id": pl.Int64, "text": pl.String})
    frame.head(50_000).fluss.append(table)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert frame.fluss.append(table).rows == 6_000_000
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mb < 250, grown_mb


def test_batches_wait_for_their_consumer():
    made = []

    def parts(*_):
        for number in range(1_000):
            made.append(number)
            yield pl.DataFrame({"id": [number] * fluss_polars.polars_accessor.ROWS_PER_BATCH})

    frame = pl.io.plugins.register_io_source(parts, schema={"id": pl.Int64})
    batches = fluss_polars.polars_accessor._batches(frame, pa.schema([("id", pa.int64())]))
    next(batches)
    batches.close()
    assert len(made) < 100
