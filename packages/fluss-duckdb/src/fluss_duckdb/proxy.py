"""Passes calls through to DuckDB: unwraps arguments, and wraps results.

DuckDB looks up `SELECT * FROM frame` among the variables of its caller. With a proxy in between
that would be the proxy, so DuckDB is called with the variables of the user's frame.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Iterator
from types import FrameType
from typing import Any

import duckdb
import pyarrow as pa

from fluss.session import Session
from fluss_duckdb.statements import Statement, Statements
from fluss_duckdb.view_catalog import Catalog

_CALL = compile("__fluss_call__()", "<fluss_duckdb>", "eval")


def call_in_frame(frame: FrameType, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Call a function so that it sees the variables of a frame."""
    # A partial has no frame, so DuckDB finds the frame of the code evaluated here.
    call = functools.partial(function, *args, **more)
    variables = {**frame.f_locals, "__fluss_call__": call}
    return eval(_CALL, frame.f_globals, variables)  # noqa: S307 - the code is a constant


def plain(value: Any) -> Any:
    """Unwrap an argument for DuckDB."""
    if type(value) is Relation:
        return value._relation  # noqa: SLF001 - one idea in two classes
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


def wrapped(value: Any, catalog: Catalog, owner: Any = None, owned: Any = None) -> Any:
    """Wrap a result of DuckDB, so that its methods run as statements of the catalog."""
    statements = catalog.statements
    if owned is not None and value is owned:
        return owner
    if isinstance(value, duckdb.DuckDBPyRelation) or type(value).__name__ == "GroupedRelation":
        return Relation(value, catalog)
    if isinstance(value, pa.RecordBatchReader):
        return guarded(value, statements)
    if isinstance(value, Generator):
        return _steps(value, statements, statements.begin())
    if isinstance(value, type) or not callable(value):
        return value

    @functools.wraps(value)
    def call(*args: Any, **more: Any) -> Any:
        with statements.running():
            given = {name: plain(each) for name, each in more.items()}
            return wrapped(value(*map(plain, args), **given), catalog, owner, owned)

    return call


def guarded(reader: pa.RecordBatchReader, statements: Statements) -> pa.RecordBatchReader:
    """Return the same stream, with errors of Fluss, and ended by Ctrl-C."""
    batches = _steps(_closing(reader), statements, statements.begin())
    return pa.RecordBatchReader.from_batches(reader.schema, batches)


def _closing(reader: pa.RecordBatchReader) -> Generator[pa.RecordBatch, None, None]:
    try:
        yield from reader
    finally:
        reader.close()


def _steps(
    values: Generator[Any, None, None], statements: Statements, statement: Statement
) -> Iterator[Any]:
    """Yield the same values, waiting for each as a part of one statement."""
    try:
        while True:
            with statements.running(statement):
                try:
                    value = next(values)
                except StopIteration:
                    return
            yield value
    finally:
        values.close()
        statements.end(statement)


class Relation:
    """A relation of DuckDB over tables of Fluss, with all methods of DuckDB's."""

    def __init__(self, relation: Any, catalog: Catalog) -> None:
        self._relation = relation
        self._catalog = catalog

    @contextlib.contextmanager
    def streamed(self, batch_rows: int) -> Iterator[pa.RecordBatchReader]:
        """Stream its rows inside a block; DuckDB's connection is free after it."""
        statements = self._catalog.statements
        with statements.running():
            reader = self._relation.to_arrow_reader(batch_rows)
        try:
            yield guarded(reader, statements)
        finally:
            reader.close()

    @property
    def fluss_session(self) -> Session:
        """The session of its connection."""
        return self._catalog.session

    @property  # type: ignore[misc] # a proxy presents itself as what it wraps
    def __class__(self) -> Any:
        # DuckDB accepts instances of its relation, in `SELECT * FROM relation` and in joins.
        return type(self._relation)

    def __getattr__(self, name: str) -> Any:
        with self._catalog.statements.running():
            found = getattr(self._relation, name)
        if name.startswith("_") and not name.startswith("_repr"):
            return found
        return wrapped(found, self._catalog)

    def __getitem__(self, key: Any) -> Any:
        with self._catalog.statements.running():
            return wrapped(self._relation[key], self._catalog)

    def __len__(self) -> int:
        with self._catalog.statements.running():
            return len(self._relation)

    def __contains__(self, name: object) -> bool:
        return name in self._relation

    def __iter__(self) -> Iterator[Any]:
        with self._catalog.statements.running():
            return iter(self._relation)

    def __dir__(self) -> list[str]:
        return dir(self._relation)

    def __repr__(self) -> str:
        with self._catalog.statements.running():
            return repr(self._relation)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = wrapped(self._relation.to_arrow_reader(), self._catalog)
        return reader.__arrow_c_stream__(requested_schema)
