"""Apache Fluss tables in DuckDB SQL: `SELECT * FROM fluss('db.events', start := 'earliest')`.

`connect` gives a connection that knows Fluss, `install` teaches plain `duckdb.sql`, `attach` brings
what exists into any connection; `append` and `upsert` write what a query gives. What is read, and
how, is the business of `fluss.session`; only the mapping of DuckDB's requests is here.
"""

from fluss_duckdb.attach import attach, connect, install, uninstall
from fluss_duckdb.duckdb_connection import Connection
from fluss_duckdb.query_writer import append, upsert

__all__ = ["Connection", "append", "attach", "connect", "install", "uninstall", "upsert"]
