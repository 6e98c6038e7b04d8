"""DuckDB: `fluss(...)` in SQL, with columns, filters and limits in SQL."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

import fluss_duckdb
from fluss.model.predicates.predicate import Predicate
from tests.engines.expectations.engine import Mark
from tests.engines.expectations.sql_text import condition, literal, name


class DuckDB:
    marks: Mapping[str, Mark] = {}
    nan_is_greatest = True

    def read(self, table, *, config, columns, filter, limit, options) -> pa.Table:  # noqa: A002 - the scan's name
        said = config
        if said is None:
            servers = table.to_source().config if hasattr(table, "to_source") else None
            said = servers or {"bootstrap.servers": table.split("/")[2]}
        with fluss_duckdb.connect(config=said) as con:
            expected = "*" if columns is None else ", ".join(map(name, columns))
            where = "" if filter is None else f" WHERE {condition(filter)}"
            first = "" if limit is None else f" LIMIT {limit}"
            if isinstance(table, str) and not isinstance(options.get("filter"), Predicate):
                given = "".join(f", {key} := {literal(each)}" for key, each in options.items())
                source = f"fluss({literal(table)}{given})"
            else:
                rows = con.fluss(table, **options)
                source = "rows" if rows is not None else ""
            query = f"SELECT {expected} FROM {source}{where}{first}"  # noqa: S608 - a test writes it
            return con.sql(query).to_arrow_table()
