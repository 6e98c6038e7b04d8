"""A table whose rows are objects of a class: `table.typed(Order)`.

Reads give such objects and writes take them, with the types that a type checker sees. Which columns
are read and written follows from the class; what a scan or a write does is decided where it is for
all rows. `fluss.typed` converts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack

import pyarrow as pa

from fluss.connection.connection import TableHandle
from fluss.doors import at_door
from fluss.errors import (
    InvalidValueError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from fluss.hints import Door
from fluss.lookup.frame_lookups import FOUND, lookup_frame, prefix_lookup_frame
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.argument_types import Condition, Place
from fluss.model.options.scan_arguments import FollowArguments, ScanArguments
from fluss.model.options.scan_options import FOLLOW_OPTIONS, Mode
from fluss.model.options.signatures import shows_options
from fluss.progress import Progress
from fluss.session.deleting import delete_where, is_condition, keys_given
from fluss.session.typed_scan import Change, TypedFollow, TypedScan, change_reader
from fluss.typed.class_fields import ClassKind, kind_of
from fluss.typed.field_types import row_class_of
from fluss.typed.row_codec import RowCodec, naming_class
from fluss.write.class_frames import ClassFrame
from fluss.write.frame_writer import write_frame
from fluss.write.write_tally import WriteReport

if TYPE_CHECKING:
    from fluss.session.table import Table

Row = TypeVar("Row")


@at_door(Door.SESSION)
class TypedTable(Generic[Row]):
    """A table with the rows of a class; `table.typed(Order)` makes it. Any thread may use it.

    The columns of the class are read and written. It may lack columns of the table.

    Args:
        table: The table.
        cls: The class of its rows.

    Raises:
        SchemaMismatchError: A field has no column, or one of another type.
    """

    def __init__(self, table: Table, cls: type[Row]) -> None:
        self._table = table
        self._cls = cls
        self._row = row_class_of(cls)
        info = self._core.info
        types = {each.name: each.data_type for each in info.schema.columns}
        self._codec = RowCodec(self._row, types, str(info.table_path))

    @property
    def name(self) -> str:
        """`database.table`."""
        return self._table.name

    @property
    def table(self) -> Table:
        """The table, for all that is not about rows."""
        return self._table

    @property
    def row_class(self) -> type[Row]:
        """The class of its rows."""
        return self._cls

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the class."""
        return tuple(self._codec.fields)

    # --- writing ------------------------------------------------------------------------------

    def append(self, rows: Row | Iterable[Row], *, progress: Progress = None) -> WriteReport:
        """Append rows to a log table; see `Table.append`.

        Args:
            rows: One row, or rows. Those of a list are checked before the first is written, those
                of an iterator as they come. A column that the class lacks is NULL.
            progress: See `Table.append`.

        Raises:
            InvalidValueError: A value does not fit; the error names class, field and row.
        """
        return self._write(rows, self._written(), mode="append", progress=progress)

    def upsert(
        self,
        rows: Row | Iterable[Row],
        *,
        merge_mode: Literal["default", "overwrite"] | None = None,
        progress: Progress = None,
    ) -> WriteReport:
        """Insert rows, or replace those with the same keys; see `Table.upsert`.

        Args:
            rows: See `append`.
            merge_mode: `overwrite` to replace aggregated values.
            progress: See `Table.append`.

        Raises:
            SchemaMismatchError: The class lacks a column, whose value would be lost.
            InvalidValueError: A value does not fit; the error names class, field and row.
        """
        names = self._written()
        self._check_whole(names)
        return self._write(rows, names, mode="upsert", merge_mode=merge_mode, progress=progress)

    def update(
        self,
        rows: Row | Iterable[Row],
        *,
        columns: Sequence[str] | None = None,
        progress: Progress = None,
    ) -> WriteReport:
        """Write some columns of rows by key; the others keep their values.

        Args:
            rows: See `append`.
            columns: Which fields are written; all of the class by default. The key need not be
                named.
            progress: See `Table.append`.

        Raises:
            SchemaMismatchError: The class has no field for a column of the key.
            InvalidValueError: There is no such field, or a value does not fit.
        """
        chosen = self._written() if columns is None else [self._column(each) for each in columns]
        keys = self._keys()
        names = [*keys, *(each for each in dict.fromkeys(chosen) if each not in keys)]
        return self._write(rows, names, mode="update", progress=progress)

    def delete(
        self, keys: Any = None, *, where: Condition | None = None, progress: Progress = None
    ) -> WriteReport:
        """Delete rows by key, or those that fulfil a condition; see `Table.delete`.

        Args:
            keys: Rows, of which the keys are used, or keys as of `lookup`. A predicate is a
                condition.
            where: The condition, such as `"id > 5"`.
            progress: See `Table.append`.
        """
        if where is None and is_condition(keys):
            keys, where = None, keys
        if where is not None:
            return delete_where(self._core, where, keys, progress=progress)
        with naming_class(self._row):
            given = self._keys_of(keys_given(keys))
            return write_frame(self._core, given, mode="delete", progress=progress)

    # --- lookups ------------------------------------------------------------------------------

    def get(self, *key: Any) -> Row | None:
        """The row of one key, its values in the order of the key; None where there is none.

        Example:
            >>> orders.get(7)  # doctest: +SKIP
            Order(id=7, price=9.5)
        """
        names = self._core.info.primary_keys
        if len(key) != len(names):
            raise InvalidValueError(
                f"The key of {self.name} is ({', '.join(names)}), and {len(key)} values are given.",
                hint="several keys are looked up by lookup([...])",
            )
        return self.lookup([tuple(key)])[0]

    def lookup(self, keys: Any) -> list[Row | None]:
        """The rows of keys, in the order given; None where there is no row.

        Args:
            keys: Rows, of which the keys are used; a list of tuples in key order, or of values
                where the key is one column; or anything tabular with the columns of the key.

        Raises:
            UnsupportedOperationError: The table has no primary key.
            InvalidValueError: A key is NULL, or does not fit its column.
        """
        with naming_class(self._row):
            found = lookup_frame(self._core, self._keys_of(keys), columns=self.columns)
            there = found.column(FOUND).to_pylist()
            rows = iter(self._rows_of(found.filter(found.column(FOUND))))
        return [next(rows) if each else None for each in there]

    def prefix_lookup(self, prefixes: Any) -> list[Row]:
        """All rows whose keys begin with the bucket key; see `Table.prefix_lookup`."""
        with naming_class(self._row):
            found = prefix_lookup_frame(self._core, prefixes, columns=self.columns)
            return self._rows_of(found.filter(found.column(FOUND)))

    # --- scans --------------------------------------------------------------------------------

    @shows_options()
    def scan(self, **options: Unpack[ScanArguments]) -> TypedScan[Row]:
        """Describe a scan of rows; its offsets are pinned when it is first read.

        Fields that `columns` leaves out have their default, or None where they take it.

        Args:
            **options: The options of the scan.

        Raises:
            UnsupportedOperationError: The rows of the mode are changes; see `changes`.

        Example:
            >>> for order in orders.scan(filter="price > 5"):  # doctest: +SKIP
            ...     print(order.id)
        """
        asked = {**self._table.defaults, **options}  # a name such as orders$changelog has some
        mode, is_labelled = asked.get("mode"), asked.get("with_metadata")
        if is_labelled or (mode is not None and Mode(mode) in {Mode.CHANGELOG, Mode.BINLOG}):
            raise _not_rows("scan", "changes", self._row.name)
        given: dict[str, Any] = dict(options)
        read = self._codec.reader(self._read(given))
        return TypedScan(self._table.scan(**given), read, self._row)

    def head(self, rows: int = 10) -> list[Row]:
        """A few of its rows, in no particular order."""
        return self.scan(limit=rows).to_list()

    def to_list(self) -> list[Row]:
        """All its rows, as they are now."""
        return self.scan().to_list()

    @shows_options()
    def count(self, **options: Unpack[ScanArguments]) -> int:
        """How many rows it has now, or a scan with these options has.

        Args:
            **options: The options of the scan.
        """
        return self._table.count(**options)

    @shows_options()
    def changes(self, **options: Unpack[ScanArguments]) -> TypedScan[Change[Row]]:
        """Describe a scan of changes: of the changelog, or the appends of a log.

        Args:
            **options: The options of the scan.
        """
        given: dict[str, Any] = dict(options)
        if self._core.info.has_primary_key():
            given.setdefault("mode", Mode.CHANGELOG)
        if Mode(given.get("mode") or Mode.LOG) not in {Mode.CHANGELOG, Mode.LOG}:
            raise UnsupportedOperationError(
                f"Changes are those of a changelog or a log, not of mode={given['mode']!s}.",
                hint="leave mode out",
            )
        read = self._change_reader(given)
        return TypedScan(self._table.scan(**given), read, self._row)

    @shows_options(FOLLOW_OPTIONS)
    def follow(
        self, *, start: Place = "latest", **options: Unpack[FollowArguments]
    ) -> TypedFollow[Row]:
        """Follow a log: the rows in it, and those that come later. Iterate it, or `poll`.

        Args:
            start: Where to begin; by default at the end of the log.
            **options: The options of the scan.

        Raises:
            UnsupportedOperationError: The log is one of changes; see `follow_changes`.
        """
        if self._core.info.has_primary_key() or options.get("with_metadata"):
            raise _not_rows("follow", "follow_changes", self._row.name)
        given: dict[str, Any] = dict(options)
        read = self._codec.reader(self._read(given))
        return TypedFollow(self._table.follow(start=start, **given), read, self._row)

    @shows_options(FOLLOW_OPTIONS)
    def follow_changes(
        self, *, start: Place = "latest", **options: Unpack[FollowArguments]
    ) -> TypedFollow[Change[Row]]:
        """Follow the changes of a table: the changelog, or the appends of a log.

        Args:
            start: Where to begin; by default at the end of the log.
            **options: The options of the scan.
        """
        given: dict[str, Any] = dict(options)
        read = self._change_reader(given)
        return TypedFollow(self._table.follow(start=start, **given), read, self._row)

    def rows_of(self, batch: pa.RecordBatch) -> list[Row]:
        """The rows of a batch that a reader of many tables gave for this table.

        Args:
            batch: The batch; columns that the class lacks are not looked at.
        """
        with naming_class(self._row):
            return self._codec.reader(self.columns)(batch)

    def changes_of(self, batch: pa.RecordBatch) -> list[Change[Row]]:
        """The changes in a batch that a reader of many tables gave for this table.

        Args:
            batch: The batch, with the metadata columns that `follow_many` adds for a class.
        """
        with naming_class(self._row):
            return change_reader(self._codec.reader(self.columns), "_")(batch)

    def __repr__(self) -> str:
        return f"TypedTable({self.name}, {self._row.name})"

    # --- shared -------------------------------------------------------------------------------

    @property
    def _core(self) -> TableHandle:
        return self._table.__fluss_table__()

    def _change_reader(
        self, options: dict[str, Any]
    ) -> Callable[[pa.RecordBatch], list[Change[Row]]]:
        """Return what makes changes of batches, and complete the options."""
        options["with_metadata"] = True
        read = self._codec.reader(self._read(options))
        return change_reader(read, options.get("metadata_prefix") or "_")

    def _read(self, options: dict[str, Any]) -> list[str]:
        """Return the columns that are read, and put them among the options."""
        given = options.get("columns")
        named = [given] if isinstance(given, str) else given
        columns = list(self.columns) if named is None else [self._column(each) for each in named]
        options["columns"] = columns
        return columns

    def _column(self, name: str) -> str:
        """Return the column of a field, which may be named by either."""
        by_field = {each.name: column for column, each in self._codec.fields.items()}
        if name in by_field or name in self._codec.fields:
            return by_field.get(name, name)
        raise InvalidValueError(
            f"{self._row.name} has no field {name!r}.",
            hint=did_you_mean(name, by_field) or f"it has {', '.join(by_field)}",
            column=name,
        )

    def _rows_of(self, table: pa.Table) -> list[Row]:
        read = self._codec.reader(self.columns)
        return [row for batch in table.to_batches() for row in read(batch)]

    def _keys(self) -> list[str]:
        keys = list(self._core.info.primary_keys)
        missing = [each for each in keys if each not in self._codec.fields]
        if missing:
            raise SchemaMismatchError(
                f"{self._row.name} has no field for {', '.join(missing)}, of the key of "
                f"{self.name}.",
                hint="Give keys as tuples in key order, or use a class with the whole key.",
                column=missing[0],
            )
        return keys

    def _keys_of(self, keys: Any) -> Any:
        """Return a frame of the keys of rows, and other keys as they are."""
        rows = self._single(keys)
        first = rows[0] if isinstance(rows, Sequence) and not isinstance(rows, str) and rows else 0
        if not self._is_row(first):
            return rows
        return ClassFrame(self._row, rows, self._keys())

    def _single(self, rows: Any) -> Any:
        return [rows] if self._is_row(rows) else rows

    def _is_row(self, given: Any) -> bool:
        if kind_of(self._cls) is ClassKind.TYPED_DICT:
            # A dict of the key alone is tabular already, and so is a dict of columns.
            required = {each.name for each in self._row.fields if not each.declared.may_be_missing}
            if not isinstance(given, Mapping) or not required <= given.keys():
                return False
            return not all(isinstance(each, list) for each in given.values())
        return isinstance(given, self._cls)

    def _written(self) -> list[str]:
        counted = self._core.info.schema.auto_increment_columns
        return [each for each in self.columns if each not in counted]

    def _check_whole(self, names: Sequence[str]) -> None:
        schema = self._core.info.schema
        known = {*names, *schema.auto_increment_columns}
        lost = [each for each in schema.column_names if each not in known]
        if lost:
            raise SchemaMismatchError(
                f"{self._row.name} has no field for {', '.join(lost)} of {self.name}; an upsert "
                "replaces whole rows and would lose what they hold.",
                hint="update(rows) writes the columns of the class and keeps the others.",
                column=lost[0],
            )

    def _write(
        self,
        rows: Any,
        names: Sequence[str],
        *,
        mode: Literal["append", "upsert", "update"],
        merge_mode: Literal["default", "overwrite"] | None = None,
        progress: Progress,
    ) -> WriteReport:
        with naming_class(self._row):
            frame = ClassFrame(self._row, _iterable(self._single(rows), self._row.name), names)
            return write_frame(
                self._core, frame, mode=mode, merge_mode=merge_mode, progress=progress
            )


def _iterable(rows: Any, name: str) -> Iterable[Any]:
    if isinstance(rows, Iterator):
        return rows
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping):
        return rows if isinstance(rows, list | tuple) else list(rows)
    raise InvalidValueError(
        f"Rows of {name} are expected, not {type(rows).__name__}.",
        hint="Frames and dicts are written by the table itself: typed.table.append(...).",
    )


def _not_rows(verb: str, instead: str, name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{verb}() gives rows of {name}, which do not show what changed.",
        hint=f"{instead}() gives each change with its row, its offset and its time",
    )
