"""The requests of a query, recorded on the wire."""

import numpy as np
import pyarrow as pa
import pytest

import fluss
import fluss_duckdb

BATCHES, ROWS_PER_BATCH = 60, 20_000


@pytest.fixture
def wide(wire, database):
    """Two partitions; in `x` are more rows than one fetch brings, which do not compress."""
    rng = np.random.default_rng(7)
    with fluss.connect(f"fluss://{wire.bootstrap}/{database}") as session:
        table = session.create_table(
            "wide",
            pa.schema([("a", pa.int64()), ("dt", pa.string()), ("b", pa.int64())]),
            partition_by=["dt"],
            buckets=1,
        )
        numbers = rng.integers(0, 2**62, (BATCHES, ROWS_PER_BATCH))
        for batch in numbers:
            table.append({"a": batch, "dt": ["x"] * len(batch), "b": batch})
        table.append({"a": [1], "dt": ["y"], "b": [1]})
        yield table


@pytest.fixture
def con(wide, wire):
    with fluss_duckdb.connect(url=f"fluss://{wire.bootstrap}") as opened:
        yield opened


def test_a_query_fetches_its_partition_and_column_and_stops(con, wide, wire):
    ids = {each.partition_name: each.partition_id for each in wide.partitions()}
    asked = f"SELECT a FROM fluss('{wide.name}') WHERE dt = 'x'"
    with wire.recording() as whole:
        assert con.sql(asked).aggregate("count(a)").fetchall() == [(BATCHES * ROWS_PER_BATCH,)]
    with wire.recording() as seen:
        assert len(con.execute(f"{asked} LIMIT 10").fetchall()) == 10
    for recorded in (whole, seen):
        places = recorded.buckets("FETCH_LOG", "LIST_OFFSETS", "LIMIT_SCAN")
        assert {each.partition_id for each in places} == {ids["x"]}
        assert {each.projected_fields for each in recorded.reads()} <= {(0,), (0, 1)}
    fetched = [sum(len(each.records) for each in one.reads()) for one in (whole, seen)]
    assert fetched[0] > 8 * BATCHES * ROWS_PER_BATCH * 0.9
    assert len(seen.reads()) == 1  # the server gives whole batches, and the next is not asked for
    assert fetched[1] < 4 * 8 * ROWS_PER_BATCH


def test_describing_and_explaining_read_nothing(con, wide, wire):
    with wire.recording() as seen:
        con.sql(f"DESCRIBE FROM fluss('{wide.name}')").fetchall()
        con.sql(f"EXPLAIN FROM fluss('{wide.name}') WHERE a > 5").fetchall()
    assert not seen.buckets("FETCH_LOG")
