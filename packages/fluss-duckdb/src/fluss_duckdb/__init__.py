"""Apache Fluss tables in DuckDB SQL: `SELECT * FROM fluss('db.events', start := 'earliest')`.

`connect` returns a connection that knows Fluss, `install` extends plain `duckdb.sql`, `attach` adds
the existing tables to any connection; `append` and `upsert` write the rows of a query. `fluss.scan`
reads; this package only maps DuckDB's requests.
"""

from fluss_duckdb.attach import attach, connect, install, uninstall
from fluss_duckdb.duckdb_connection import Connection
from fluss_duckdb.query_writer import append, upsert

__all__ = ["Connection", "append", "attach", "connect", "install", "uninstall", "upsert"]
