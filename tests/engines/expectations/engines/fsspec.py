"""fsspec, by `data.arrow` in a URL, as a tool reads it that knows only files and Arrow streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import fsspec
import pyarrow as pa

from fluss.model.predicates.predicate import Predicate
from fluss.session import Table
from tests.engines.expectations.engine import Mark, never
from tests.engines.expectations.sql_text import condition, literal

ONE_SCAN = never("its filter and its limit are those of the scan, and the filter comes first")
NO_NAN = never("a filter in SQL has no literal for NaN")
NOT_THERE = never("what is not there is a FileNotFoundError, as everywhere in fsspec")


class Fsspec:
    marks: Mapping[str, Mark] = {
        "limit as the scan's option, then*": ONE_SCAN,
        "nan, equal to itself": NO_NAN,
        "error, unknown table": NOT_THERE,
        "error, no table's name": NOT_THERE,
        "error, unknown view": NOT_THERE,
    }
    nan_is_greatest = False

    def read(self, table, *, config, columns, filter, limit, options) -> Any:  # noqa: A002 - the scan's name
        said = {"columns": columns, "filter": filter, "limit": limit}
        given = {**options, **{name: value for name, value in said.items() if value is not None}}
        servers, name = _place(table, config)
        name, _, query = name.partition("?")
        asked = [
            *([query] if query else []),
            *(f"{key}={quote(_text(each))}" for key, each in given.items()),
        ]
        path = f"{name.replace('.', '/', 1)}/data.arrow"
        with fsspec.open(
            f"fluss://{servers}/{path}{'?' if asked else ''}{'&'.join(asked)}"
        ) as file:
            return pa.ipc.open_stream(file).read_all()


def _place(table: Any, config: Mapping[str, Any] | None) -> tuple[str, str]:
    if isinstance(table, Table):
        return table.to_source().config.bootstrap_servers, table.name
    if config is not None:
        return config["bootstrap.servers"], table
    servers, _, name = table.removeprefix("fluss://").partition("/")
    return servers, name


def _text(value: Any) -> str:
    if isinstance(value, Predicate):
        return condition(value, _literal)
    if isinstance(value, Mapping):
        return ",".join(f"{key}={each}" for key, each in value.items())
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


def _literal(value: Any) -> str:
    """A value as filters write it: their literals have no casts."""
    match value:
        case bytes():
            return f"X'{value.hex()}'"
        case float():
            return repr(value)
        case _:
            return literal(value)
