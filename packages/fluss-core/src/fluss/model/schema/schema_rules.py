"""Checks the columns, keys and ids of a schema, and completes them (Java: `Schema`).

These rules hold for every schema, old or new. Further rules for new tables are in
`model.tables.table_rules`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from fluss.errors import InvalidSchemaError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.names import check_column_name
from fluss.model.schema.column import Column
from fluss.model.schema.field_ids import FIELD_ID_MAX, highest_field_id, with_field_ids
from fluss.model.types.data_type import BigIntType, DataType, IntType, RowType

COLUMNS_MAX = 32_767  # positions of columns travel as 16-bit integers in batch statistics
NAMES_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaParts:
    """The parts of a schema. `highest_field_id` is the highest id ever assigned, if known."""

    columns: tuple[Column, ...]
    primary_keys: tuple[str, ...] = ()
    auto_increment_columns: tuple[str, ...] = ()
    highest_field_id: int | None = None


def finished(parts: SchemaParts) -> SchemaParts:
    """Return the same parts with ids, and with NOT NULL columns in the primary key.

    Raises:
        InvalidSchemaError: When columns, keys or ids contradict each other.
    """
    check_columns(parts.columns)
    _check_primary_key(parts.columns, parts.primary_keys)
    _check_auto_increment(parts.columns, parts.primary_keys, parts.auto_increment_columns)
    given = parts.highest_field_id
    if given is not None and given > FIELD_ID_MAX:
        raise InvalidSchemaError(f"The highest field id is given as {given}: more than 32 bits.")
    if given is not None and given < highest_field_id(parts.columns):
        raise InvalidSchemaError(
            f"The highest field id is given as {given}, but {highest_field_id(parts.columns)} is "
            "in use."
        )
    highest = -1 if given is None else given
    # A schema without any id is older than ids: its columns are numbered by their positions.
    has_ids = any(each.column_id is not None for each in parts.columns)
    numbered = with_field_ids(parts.columns, highest=highest if has_ids else -1)
    keyed = (
        replace(each, data_type=each.data_type.not_null())
        if each.name in parts.primary_keys
        else each
        for each in numbered
    )
    return replace(
        parts, columns=tuple(keyed), highest_field_id=max(highest, highest_field_id(numbered))
    )


def names_of(names: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """Return names as a tuple; refuse a single text, which would become its letters."""
    if isinstance(names, str):
        raise InvalidSchemaError(
            f"The {what} is given as the text {names!r}, not as a list of names.",
            hint=f"write [{names!r}]",
        )
    return tuple(names or ())


def check_columns(columns: Sequence[Column]) -> None:
    """Refuse no columns, too many columns, and duplicate names."""
    if not columns:
        raise InvalidSchemaError("The schema has no columns.", hint="give it at least one")
    if len(columns) > COLUMNS_MAX:
        raise InvalidSchemaError(f"The schema has {len(columns)} columns, {COLUMNS_MAX} can be.")
    repeated = [name for name, count in Counter(each.name for each in columns).items() if count > 1]
    if repeated:
        raise InvalidSchemaError(
            f"The schema has the column {repeated[0]!r} more than once.",
            hint="rename one of them",
            column=repeated[0],
        )
    for column in columns:
        _check_nested_names(column.data_type)


def _check_nested_names(data_type: DataType) -> None:
    if isinstance(data_type, RowType):
        for name in data_type.field_names:
            check_column_name(name)
    for child in data_type.children():
        _check_nested_names(child)


def _check_primary_key(columns: Sequence[Column], keys: Sequence[str]) -> None:
    by_name = {each.name: each for each in columns}
    check_named_once(by_name, keys, "The primary key names")
    for key in keys:
        column = by_name[key]
        if column.data_type.is_nested:
            raise InvalidSchemaError(
                f"The column {key!r} is {column.data_type}; "
                "ARRAY, MAP and ROW cannot be in a primary key.",
                hint="choose another column, or one field of it as a column of its own",
                column=key,
            )
        if column.aggregation is not None:
            raise InvalidSchemaError(
                f"The column {key!r} is in the primary key and cannot have the aggregation "
                f"{column.aggregation}.",
                column=key,
            )


def _check_auto_increment(
    columns: Sequence[Column], keys: Sequence[str], increments: Sequence[str]
) -> None:
    if not increments:
        return
    if len(increments) > 1:
        raise InvalidSchemaError(
            f"Only one column can be counted up, not {len(increments)}: {', '.join(increments)}."
        )
    name = increments[0]
    by_name = {each.name: each for each in columns}
    if name not in by_name:
        raise no_such_column(name, by_name, "The auto-increment column is")
    if not keys:
        raise InvalidSchemaError(
            f"The column {name!r} can only be counted up in a table with a primary key.",
            hint="name the primary key, or leave the auto-increment out",
            column=name,
        )
    if name in keys:
        raise InvalidSchemaError(
            f"The column {name!r} is in the primary key and cannot be counted up.", column=name
        )
    data_type = by_name[name].data_type
    if not isinstance(data_type, IntType | BigIntType):
        raise InvalidSchemaError(
            f"The column {name!r} is {data_type}; only INT and BIGINT can be counted up.",
            column=name,
        )


def check_named_once(known: Collection[str], keys: Sequence[str], what: str) -> None:
    """Refuse keys that are no columns, and columns that are named twice."""
    for index, key in enumerate(keys):
        if key not in known:
            raise no_such_column(key, known, what)
        if key in keys[:index]:
            raise InvalidSchemaError(f"{what} {key!r} twice.", column=key)


def no_such_column(
    name: str, known: Iterable[str], what: str = "There is no column"
) -> InvalidSchemaError:
    """Return the error for an unknown column, with the nearest name."""
    names = list(known)
    tail = "" if what.startswith("There") else ", which the schema does not have"
    shown = ", ".join(names[:NAMES_SHOWN_MAX]) + (" …" if len(names) > NAMES_SHOWN_MAX else "")
    return InvalidSchemaError(
        f"{what} {name!r}{tail}. It has {shown}.",
        hint=did_you_mean(str(name), names),
        column=name,
    )
