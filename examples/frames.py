"""Read and write one table in Polars, DuckDB and pandas.

    python examples/frames.py [127.0.0.1:9123]

Prints:
    Polars: [('DE', 39.75), ('FR', 20.0), ('JP', 7.0)]
    DuckDB: [('DE', 39.75), ('FR', 20.0), ('JP', 7.0)]
    pandas: {'DE': 39.75, 'FR': 20.0, 'JP': 7.0}
    written from pandas: 2 rows
    written from a query: 1 rows
"""

import sys

import polars as pl

import fluss
import fluss_duckdb
from fluss.pandas import FlussAccessor, read_fluss
from fluss_polars import scan_fluss

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9123"
ORDERS = {
    "id": [1, 2, 3, 4],
    "country": ["DE", "FR", "DE", "JP"],
    "amount": [9.5, 20.0, 30.25, 7.0],
}

with fluss.connect(f"fluss://{SERVERS}") as session:
    session.create_database("example_frames", ignore_if_exists=True)
    session.append("example_frames.orders", ORDERS, create=True)

    by_country = scan_fluss("example_frames.orders").group_by("country").agg(pl.sum("amount"))
    print("Polars:", by_country.sort("country").collect().rows())

    with fluss_duckdb.connect(session=session) as con:
        query = "SELECT country, sum(amount) FROM fluss('example_frames.orders') GROUP BY ALL ORDER BY ALL"
        print("DuckDB:", con.sql(query).fetchall())

        frame = read_fluss("example_frames.orders", index_col="id")
        print("pandas:", frame.groupby("country")["amount"].sum().to_dict())

        session.create_table("example_frames.copy", frame.reset_index())
        report = FlussAccessor(frame[frame["country"] == "DE"]).append("example_frames.copy")
        print("written from pandas:", report.rows, "rows")
        few = con.sql("FROM fluss('example_frames.orders') WHERE amount < 8")
        print("written from a query:", fluss_duckdb.append("example_frames.copy", few).rows, "rows")
    session.drop_database("example_frames", cascade=True)
