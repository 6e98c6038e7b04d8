"""A Scan and a Table as Arrow streams and as a Dataset, in engines without an adapter."""

import io

import datafusion
import duckdb
import ibis
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fluss
from fluss import col
from fluss.errors import InvalidValueError, UnsupportedOperationError
from tests.support.servers.fix_cluster import IMPATIENT

ROWS = 10_000
SUM = ROWS * (ROWS - 1) // 2


@pytest.fixture
def table(cluster, database):
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as session:
        rows = pa.table(
            {
                "id": pa.array(range(ROWS), pa.int64()),
                "name": [f"n{each % 7}" for each in range(ROWS)],
                "x": [each / 8 for each in range(ROWS)],
            }
        )
        session.append("events", rows, create=True, buckets=2)
        yield session.table("events")


@pytest.fixture(params=["scan", "table"])
def source(request, table):
    return table.scan() if request.param == "scan" else table


def _parquet(source):
    file = io.BytesIO()
    pq.write_table(pa.table(source.scan() if hasattr(source, "scan") else source), file)
    return pq.read_table(io.BytesIO(file.getvalue()))


WAYS = {
    "pyarrow's reader": lambda source: pa.RecordBatchReader.from_stream(source).read_all(),
    "pq.write_table": _parquet,
    "pl.DataFrame": lambda source: pl.DataFrame(source).to_arrow(),
    "pl.LazyFrame": lambda source: pl.LazyFrame(source).collect().to_arrow(),
    "pl.from_arrow, a struct": lambda source: pl.from_arrow(source).struct.unnest().to_arrow(),
    "pd.DataFrame.from_arrow": lambda source: pa.table(pd.DataFrame.from_arrow(source)),
    "duckdb, a variable": lambda source: duckdb.sql(  # noqa: ARG005 - DuckDB finds it by name
        "SELECT * FROM source"
    ).to_arrow_table(),
    "duckdb.from_arrow": lambda source: duckdb.from_arrow(source).to_arrow_table(),
    "datafusion": lambda source: datafusion.SessionContext().from_arrow(source).to_arrow_table(),
    "ibis.memtable": lambda source: ibis.memtable(source).to_pyarrow(),
    "narwhals": lambda source: nw.from_arrow(source, backend="pyarrow").to_arrow(),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_every_arrow_reader_reads_every_row(source, way):
    read = way(source)
    assert read.column_names == ["id", "name", "x"]
    assert sum(read.column("id").to_pylist()) == SUM
    assert sorted(set(read.column("name").to_pylist())) == [f"n{each}" for each in range(7)]


def test_a_stream_can_be_taken_again_and_gives_the_pinned_rows(table):
    scan = table.scan()
    assert pa.table(scan).num_rows == ROWS
    table.append({"id": [1], "name": ["late"], "x": [0.0]})
    assert pa.table(scan).num_rows == ROWS
    assert duckdb.sql("SELECT count(*) FROM scan a JOIN scan b USING (id)").fetchall() == [(ROWS,)]
    assert pa.RecordBatchReader.from_stream(table).read_all().num_rows == ROWS + 1


def test_a_requested_schema_narrows_what_is_read(source):
    expected = pa.schema([("x", pa.float64()), ("id", pa.int64())])
    read = pa.RecordBatchReader.from_stream(source, schema=expected).read_all()
    assert read.schema == expected
    assert sum(read.column("id").to_pylist()) == SUM


def test_columns_that_were_not_requested_are_not_fetched(table):
    whole, narrow = table.scan(), table.scan()
    pa.table(whole)
    pa.RecordBatchReader.from_stream(narrow, schema=pa.schema([("id", pa.int64())])).read_all()
    assert narrow.stats.bytes_read < 0.7 * whole.stats.bytes_read


def test_a_requested_schema_casts_types(source):
    expected = pa.schema([("id", pa.int32()), ("name", pa.large_string())])
    assert pa.RecordBatchReader.from_stream(source, schema=expected).read_all().schema == expected


def test_a_requested_schema_goes_with_filters_metadata_and_limits(table):
    scan = table.scan(filter=col("name") == "n3", with_metadata=True, limit=20)
    expected = pa.schema([("_bucket", pa.int32()), ("id", pa.int64())])
    read = pa.RecordBatchReader.from_stream(scan, schema=expected).read_all()
    assert read.to_pydict() == pa.table(scan).select(["_bucket", "id"]).to_pydict()
    assert read.num_rows == 20


def test_a_binlog_is_narrowed_after_the_read(cluster, database):
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}", **IMPATIENT) as session:
        session.upsert("keyed", {"id": [1, 2]}, create=True, primary_key=["id"], buckets=1)
        scan = session.table("keyed").scan(mode="binlog")
        names = scan.schema.names[:1]
        expected = pa.schema([scan.schema.field(names[0])])
        read = pa.RecordBatchReader.from_stream(scan, schema=expected).read_all()
        assert read == pa.table(scan).select(names)


def test_a_missing_column_is_an_error(table):
    for names in (["idd"], ["id", "id"]):
        expected = pa.schema([(each, pa.int64()) for each in names])
        with pytest.raises(InvalidValueError, match=r"did you mean 'id'|twice"):
            pa.RecordBatchReader.from_stream(table.scan(), schema=expected)


def test_what_would_take_a_scan_for_a_list_of_batches_is_refused(table):
    for wrong in (pd.DataFrame, np.asarray):
        with pytest.raises(UnsupportedOperationError, match=r"pd\.read_fluss"):
            wrong(table.scan())


# --- the Dataset view: columns and filters reach Fluss -------------------------------------------


def test_polars_reads_the_dataset_with_its_filter(table):
    frame = pl.scan_pyarrow_dataset(table.scan().to_dataset())
    assert frame.filter(pl.col("id") < 10).select("name").collect().height == 10


def test_duckdb_reads_the_dataset_with_its_filter(table):
    dataset = table.scan().to_dataset()
    con = duckdb.connect()
    con.register("events", dataset)
    assert con.sql("SELECT count(*) FROM events WHERE id < 10").fetchall() == [(10,)]


def test_datafusion_reads_the_dataset_with_its_filter(table):
    context = datafusion.SessionContext()
    context.register_dataset("events", table.scan().to_dataset())
    answer = context.sql("SELECT sum(id) AS s, count(*) AS n FROM events WHERE id < 10")
    assert answer.to_pydict() == {"s": [45], "n": [10]}


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # ibis 12 calls it
def test_ibis_reads_the_dataset_on_duckdb(table):
    con = duckdb.connect()
    con.register("events", table.scan().to_dataset())
    events = ibis.duckdb.from_connection(con).table("events")
    assert events.filter(events.id < 10).count().to_pyarrow().as_py() == 10


def test_datasets_and_streams_are_written_as_parquet_in_pieces(table, tmp_path):
    ds.write_dataset(table.scan().to_reader(), tmp_path / "stream", format="parquet")
    ds.write_dataset(table.scan().to_dataset().scanner(), tmp_path / "dataset", format="parquet")
    for each in ("stream", "dataset"):
        assert ds.dataset(tmp_path / each).count_rows() == ROWS
