"""Splits rows by the tables that a column names: vectorised for frames, by key for dicts.

The rows of each table keep their order. All rows of a frame in memory are checked for all tables
before the first one is accepted; the rows of a stream are checked batch by batch. A frame may hold
several kinds of events: a column that a table does not have is left out if it is NULL in all rows
of that table, and refused otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.errors import FlussError, InvalidNameError, InvalidValueError, SchemaMismatchError
from fluss.model.change_type import ChangeType
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.scan_options import CHANGE_TYPE
from fluss.model.paths import TablePath
from fluss.model.tables.table_info import TableInfo
from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.rows.buffers.columns import Int64Array
from fluss.typed.class_fields import kind_of
from fluss.write.caller_rows import naming_frame, row_text, rows_counted
from fluss.write.change_frames import change_types, without_columns
from fluss.write.frame_checks import Mode
from fluss.write.many_writer import ManyWriter
from fluss.write.python_to_arrow import is_sequence, listed
from fluss.write.table_writer import PreparedRows
from fluss.write.tabular import frame_of

# Names of tables for the values of the column: by value, or by a function.
TableNames: TypeAlias = Mapping[Any, Any] | Callable[[Any], Any] | None
PathOf: TypeAlias = Callable[[Any], TablePath]

_CHANGES_OF_LOGS: Final = frozenset({ChangeType.AppendOnly, ChangeType.Insert})


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """How the rows of a frame find their tables.

    Attributes:
        by: The column that names the table.
        mode: How the rows are written; None if the kind of the table decides.
        names: Translates the values of the column; None if they are names of tables.
        path_of: Returns the path of a name.
    """

    by: str
    mode: Mode | None
    names: TableNames
    path_of: PathOf

    def path(self, value: Any) -> TablePath:
        """The table of a value.

        Raises:
            InvalidValueError: The value is NULL, or names no table.
        """
        if value is None:
            raise self._refused("is NULL, and names no table", "Fill it, or leave out the row.")
        name = value
        if isinstance(self.names, Mapping):
            if value not in self.names:
                near = did_you_mean(str(value), map(str, self.names))
                known = ", ".join(map(repr, list(self.names)[:5]))
                raise self._refused(
                    f"has {value!r}, for which `tables` has no table", near or f"it has {known}"
                )
            name = self.names[value]
        elif self.names is not None:
            name = self.names(value)
        elif not isinstance(value, str):
            raise self._refused(
                f"has {value!r}, which is not the name of a table",
                "`tables` translates values to names: a dict or a function.",
            )
        try:
            return self.path_of(name)
        except InvalidNameError as error:
            raise self._refused(f"has {value!r}: {error.sentence}", error.hint) from None

    def _refused(self, why: str, hint: str | None) -> InvalidValueError:
        return InvalidValueError(f"The column {self.by!r} {why}.", hint=hint, column=self.by)


def route(writer: ManyWriter, data: Any, routing: Routing) -> dict[TablePath, int]:
    """Accept rows for the tables that a column names; return how many for each table.

    Raises:
        InvalidValueError: A row names no table, or a value does not fit; `row` is its number.
        SchemaMismatchError: The column is missing, or a table lacks a column that has a value.
        TableNotFoundError: A row names a table that does not exist.
    """
    with naming_frame(data):
        taken: dict[TablePath, int] = {}
        for shares in _parts(writer, data, routing):
            for path, positions, prepared in shares:
                with rows_counted(positions=positions):
                    writer.take_prepared(prepared)
                taken[path] = taken.get(path, 0) + len(positions)
        return taken


_Share: TypeAlias = tuple[TablePath, Int64Array, PreparedRows]


def _parts(writer: ManyWriter, data: Any, routing: Routing) -> Iterator[list[_Share]]:
    """Yield the checked rows by table: of all data in memory, or of one batch of a stream."""
    rows = _dicts(data)
    if rows is not None:
        yield _of_dicts(writer, rows, routing)
        return
    frame = frame_of(data)
    if routing.by not in frame.names:
        raise SchemaMismatchError(
            f"The frame has no column {routing.by!r}, which would name the table of each row.",
            hint=did_you_mean(routing.by, frame.names) or f"it has {', '.join(frame.names)}",
            column=routing.by,
        )
    shares: list[_Share] = []
    first = 0
    for batch in frame.batches({}):
        with rows_counted(first=first):
            shares += _of_batch(writer, batch, routing, first)
        first += batch.num_rows
        if not frame.is_whole:
            yield shares
            shares = []
    yield shares


def _dicts(data: Any) -> Sequence[Mapping[str, Any]] | None:
    """Rows as dicts, which are converted with the types of their tables; None for frames."""
    if isinstance(data, Mapping):
        is_columns = data and all(
            is_sequence(each) or hasattr(each, "dtype") for each in data.values()
        )
        return None if is_columns or not data else [data]
    if not is_sequence(data):
        return None
    rows: Sequence[Any] = listed(data)
    for number, row in enumerate(rows):
        if isinstance(row, pa.RecordBatch | pa.Table) and not number:
            return None
        if not isinstance(row, Mapping):
            kind = "an object of a class" if kind_of(type(row)) else "a row without names"
            raise InvalidValueError(
                f"Rows that name their table are dicts, and this is {kind}: {row_text(row)}.",
                hint="Give dicts or a frame; objects are written to one table at a time.",
            ).add_context(row=number)
    return rows


def _of_dicts(
    writer: ManyWriter, rows: Sequence[Mapping[str, Any]], routing: Routing
) -> list[_Share]:
    places: dict[TablePath, list[int]] = {}
    known: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        with rows_counted(first=number), _at_first_row():
            if routing.by not in row:
                raise InvalidValueError(
                    f"The row has no {routing.by!r}, which would name its table.",
                    hint=did_you_mean(routing.by, row) or f"it has {', '.join(row)}",
                    column=routing.by,
                )
            value = row[routing.by]
            found = known.get(value)
            if found is None:
                found = known[value] = places.setdefault(routing.path(value), [])
        found.append(number)
    shares = []
    for path, numbers in places.items():
        positions = np.array(numbers, dtype=np.int64)
        with rows_counted(positions=positions), _at_first_row(path):
            info = writer.writer(path).info
            own = _without_name(info, [rows[each] for each in numbers], routing)
            given = _checked_for_log(info, routing, own)
            shares.append(_share(writer, path, routing, given, positions))
    return shares


def _without_name(
    info: TableInfo, rows: list[Mapping[str, Any]], routing: Routing
) -> list[Mapping[str, Any]]:
    if routing.by in info.schema.column_names:
        return rows
    return [{name: row[name] for name in row if name != routing.by} for row in rows]


def _checked_for_log(
    info: TableInfo, routing: Routing, rows: list[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Refuse changes that a log does not take; the others are appended without their kind."""
    if not _drops_changes(info, routing) or not any(CHANGE_TYPE in row for row in rows):
        return rows
    for number, row in enumerate(rows):
        kind = row.get(CHANGE_TYPE)
        if kind is not None and ChangeType.parse(str(kind)) not in _CHANGES_OF_LOGS:
            raise _no_change_of_log(info, str(kind), number)
    return [{name: row[name] for name in row if name != CHANGE_TYPE} for row in rows]


def _of_batch(
    writer: ManyWriter, batch: pa.RecordBatch, routing: Routing, first: int
) -> list[_Share]:
    if not batch.num_rows:
        return []
    codes, paths = _tables_of(writer, batch.column(routing.by), routing)
    order = np.argsort(codes, kind="stable")
    edges = [0, *(np.flatnonzero(np.diff(codes[order])) + 1).tolist(), len(order)]
    in_order = bool((np.diff(order) == 1).all())
    ordered = batch if in_order else _reordered(batch, order)
    shares: list[_Share] = []
    for start, stop in pairwise(edges):
        positions = order[start:stop]
        with rows_counted(positions=positions), _at_first_row():
            path = paths[codes[positions[0]]]
            info = writer.writer(path).info
            own = _own_columns(info, ordered.slice(start, stop - start), routing)
            shares.append(_share(writer, path, routing, own, positions + first))
    return shares


def _tables_of(
    writer: ManyWriter, column: pa.Array, routing: Routing
) -> tuple[Int64Array, list[TablePath]]:
    """A code for the table of each row, and the table of each code.

    Several values may name one table, whose rows must keep their order.
    """
    codes, values = _coded(column)
    places: dict[TablePath, int] = {}
    code_of_value = np.zeros(len(values), dtype=np.int64)
    # Codes count up in the order in which their values come first.
    first_rows = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
    for value, row in enumerate(first_rows.tolist()):
        with rows_counted(first=row), _at_first_row():
            path = routing.path(values[value])
            writer.writer(path)
            code_of_value[value] = places.setdefault(path, len(places))
    return code_of_value[codes], list(places)


def _reordered(batch: pa.RecordBatch, order: Int64Array) -> pa.RecordBatch:
    columns = [_taken(column, order) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _taken(column: pa.Array, order: Int64Array) -> pa.Array:
    # Polars exports strings as views, and Arrow has no `take` for views.
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    elif pa.types.is_binary_view(column.type):
        column = column.cast(pa.large_binary())
    try:
        return column.take(from_numpy(order))
    except pa.ArrowNotImplementedError:  # views in lists and structs: concatenate slices
        edges = [0, *(np.flatnonzero(np.diff(order) != 1) + 1).tolist(), len(order)]
        stretches = [column.slice(int(order[at]), end - at) for at, end in pairwise(edges)]
        return pa.concat_arrays(stretches)


def _coded(column: pa.Array) -> tuple[Int64Array, list[Any]]:
    """A code for each row, and the value of each code. NULL has a code, too."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    codes = np.asarray(encoded.indices).astype(np.int64, copy=False)
    return codes, encoded.dictionary.to_pylist()


def _own_columns(info: TableInfo, batch: pa.RecordBatch, routing: Routing) -> pa.RecordBatch:
    """Leave out the columns that the table does not have and that hold no value.

    Other columns that the table does not have stay, and are refused later.
    """
    own = set(info.schema.column_names)
    left_out = [
        name
        for name in batch.schema.names
        if name not in own
        and (name == routing.by or batch.column(name).null_count == batch.num_rows)
        and name != CHANGE_TYPE
    ]
    if CHANGE_TYPE in batch.schema.names and _drops_changes(info, routing):
        _check_changes_of_log(info, batch.column(CHANGE_TYPE))
        left_out.append(CHANGE_TYPE)
    return without_columns(batch, left_out)


def _drops_changes(info: TableInfo, routing: Routing) -> bool:
    is_own = CHANGE_TYPE in info.schema.column_names
    return not info.has_primary_key() and not is_own and routing.mode in {None, "append"}


def _check_changes_of_log(info: TableInfo, column: pa.Array) -> None:
    filled = pc.fill_null(column.cast(pa.string()), "insert")
    kinds = change_types(filled)
    others = np.flatnonzero(kinds != ChangeType.Insert)
    if len(others):
        raise _no_change_of_log(info, ChangeType(int(kinds[others[0]])).long_name, int(others[0]))


def _no_change_of_log(info: TableInfo, kind: str, row: int) -> InvalidValueError:
    return InvalidValueError(
        f"{info.table_path} is a log table, which accepts only inserts, and the change is {kind!r}.",
        hint="Filter the rows, or create the table with a primary key.",
        column=CHANGE_TYPE,
    ).add_context(row=row)


def _share(
    writer: ManyWriter, path: TablePath, routing: Routing, rows: Any, positions: Int64Array
) -> _Share:
    prepared = writer.prepare(path, routing.mode, rows)
    return path, positions, prepared


@contextmanager
def _at_first_row(path: TablePath | None = None) -> Iterator[None]:
    """Add the first row to an error that names no row."""
    try:
        yield
    except FlussError as error:
        if error.facts.get("row") is None:
            error.add_context(row=0)
        if path is not None and error.facts.get("table") is None:
            error.add_context(table=str(path))
        raise
