"""Passing through: arguments become DuckDB's own objects, and its results become ours again.

DuckDB looks for `SELECT * FROM frame` among the variables of whoever called it. With a proxy in
between that would be the proxy, so calls are made from the caller's own variables.
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
from fluss_duckdb.statements import Run, Statements
from fluss_duckdb.view_catalog import Catalog

_CALL = compile("__fluss_call__()", "<fluss_duckdb>", "eval")


def call_in_frame(frame: FrameType, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Call a function so that the variables it sees are those of a frame."""
    # A partial is no frame, so what DuckDB finds is the frame of the code evaluated here.
    call = functools.partial(function, *args, **more)
    variables = {**frame.f_locals, "__fluss_call__": call}
    return eval(_CALL, frame.f_globals, variables)  # noqa: S307 - the code is a constant


def plain(value: Any) -> Any:
    """An argument as DuckDB takes it."""
    if type(value) is Relation:
        return value._relation  # noqa: SLF001 - one idea in two classes
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


def wrapped(value: Any, catalog: Catalog, owner: Any = None, owned: Any = None) -> Any:
    """A result of DuckDB's, so that what runs through it is a statement of the catalog's."""
    runs = catalog.runs
    if owned is not None and value is owned:
        return owner
    if isinstance(value, duckdb.DuckDBPyRelation) or type(value).__name__ == "GroupedRelation":
        return Relation(value, catalog)
    if isinstance(value, pa.RecordBatchReader):
        return guarded(value, runs)
    if isinstance(value, Generator):
        return _steps(value, runs, runs.begin())
    if isinstance(value, type) or not callable(value):
        return value

    @functools.wraps(value)
    def call(*args: Any, **more: Any) -> Any:
        with runs.running():
            given = {name: plain(each) for name, each in more.items()}
            return wrapped(value(*map(plain, args), **given), catalog, owner, owned)

    return call


def guarded(reader: pa.RecordBatchReader, runs: Statements) -> pa.RecordBatchReader:
    """The same stream, whose errors are Fluss's, and which Ctrl-C ends."""
    batches = _steps(_closing(reader), runs, runs.begin())
    return pa.RecordBatchReader.from_batches(reader.schema, batches)


def _closing(reader: pa.RecordBatchReader) -> Generator[pa.RecordBatch, None, None]:
    try:
        yield from reader
    finally:
        reader.close()


def _steps(values: Generator[Any, None, None], runs: Statements, run: Run) -> Iterator[Any]:
    """The same values; each is waited for as a part of one statement."""
    try:
        while True:
            with runs.running(run):
                try:
                    value = next(values)
                except StopIteration:
                    return
            yield value
    finally:
        values.close()
        runs.end(run)


class Relation:
    """A relation of DuckDB's over tables of Fluss; everything of DuckDB's passes through."""

    def __init__(self, relation: Any, catalog: Catalog) -> None:
        self._relation = relation
        self._catalog = catalog

    @contextlib.contextmanager
    def streamed(self, batch_rows: int) -> Iterator[pa.RecordBatchReader]:
        """Its rows as a stream, which ends with the block; DuckDB's connection is free then."""
        runs = self._catalog.runs
        with runs.running():
            reader = self._relation.to_arrow_reader(batch_rows)
        try:
            yield guarded(reader, runs)
        finally:
            reader.close()

    @property
    def fluss_session(self) -> Session:
        """The way to Fluss that its connection has."""
        return self._catalog.session

    @property  # type: ignore[misc] # which is what a proxy does
    def __class__(self) -> Any:
        # DuckDB takes what says that it is a relation, in `SELECT * FROM relation` and in joins.
        return type(self._relation)

    def __getattr__(self, name: str) -> Any:
        with self._catalog.runs.running():
            found = getattr(self._relation, name)
        if name.startswith("_") and not name.startswith("_repr"):
            return found
        return wrapped(found, self._catalog)

    def __getitem__(self, key: Any) -> Any:
        with self._catalog.runs.running():
            return wrapped(self._relation[key], self._catalog)

    def __len__(self) -> int:
        with self._catalog.runs.running():
            return len(self._relation)

    def __contains__(self, name: object) -> bool:
        return name in self._relation

    def __iter__(self) -> Iterator[Any]:
        with self._catalog.runs.running():
            return iter(self._relation)

    def __dir__(self) -> list[str]:
        return dir(self._relation)

    def __repr__(self) -> str:
        with self._catalog.runs.running():
            return repr(self._relation)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = wrapped(self._relation.to_arrow_reader(), self._catalog)
        return reader.__arrow_c_stream__(requested_schema)
