"""DataFrames of pandas as Arrow: an index with a name is a column, and periods are refused.

pandas is not imported here: the caller of a DataFrame has imported it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from fluss.errors import InvalidValueError, SchemaMismatchError, UnsupportedTypeError
from fluss.hints import Hint, HintKey
from fluss.model.tables.table_info import TableInfo
from fluss.write.object_columns import (
    check_nested,
    check_one_kind,
    check_read,
    holds_objects,
    may_be_mixed,
)

if TYPE_CHECKING:
    import pandas as pd

# Arrow passes errors of Python's own classes on, for example of a Decimal that is infinite.
ARROW_REFUSALS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
_KINDS_SHOWN_MAX: Final = 3


def is_from_pandas(data: Any) -> bool:
    """Whether this is a DataFrame, of pandas or of a library with its interface."""
    return hasattr(data, "iloc") and hasattr(data, "columns")


def index_names(frame: pd.DataFrame) -> list[str]:
    """The names of the index levels that are not columns too.

    Raises:
        InvalidValueError: A level has the name of a column, but other values.
    """
    columns = [str(each) for each in frame.columns]
    for column in columns:
        if columns.count(column) > 1:
            raise InvalidValueError(
                f"The DataFrame has two columns {column!r}.", hint="rename or drop one of them"
            )
    names: list[str] = []
    for level, name in enumerate(frame.index.names):
        if name is None:
            continue
        if str(name) in names:
            raise InvalidValueError(
                f"Two levels of the DataFrame's index are named {name!r}.",
                hint="df.rename_axis(...) renames them.",
            )
        if str(name) not in columns:
            names.append(str(name))
        elif not frame.index.get_level_values(level).equals(type(frame.index)(frame[name])):
            raise InvalidValueError(
                f"The index of the DataFrame and a column are both named {name!r}, and their "
                "values differ.",
                hint="df.reset_index(drop=True) leaves the index out, df.rename_axis(...) renames "
                "it.",
                column=str(name),
            )
    return names


def with_index(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The DataFrame with these levels of its index as its first columns."""
    levels = [each for each in frame.index.names if each is not None and str(each) in names]
    return frame.reset_index(level=levels) if levels else frame


def check_index(names: Sequence[str], table: TableInfo) -> None:
    """Refuse an index that is not a column of the table, instead of dropping it.

    Raises:
        SchemaMismatchError: The table has no column with the name of a level.
    """
    for name in names:
        if name not in table.schema.column_names:
            raise SchemaMismatchError(
                f"The index of the DataFrame is named {name!r}, and {table.table_path} has no such "
                "column.",
                hint=f"df.reset_index({name!r}, drop=True) leaves it out, df.rename_axis(...) "
                "gives it the name of a column.",
                column=name,
            )


def arrow_of(frame: pd.DataFrame) -> pa.Table:
    """The columns of a DataFrame as Arrow, without its index.

    Raises:
        UnsupportedTypeError: A column holds periods, which Arrow would read as numbers, or is
            sparse.
        InvalidValueError: Arrow cannot read a column, or would read other values.
    """
    objects: dict[int, Any] = {}
    for position, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        check_dtype(str(name), dtype)
        if holds_objects(dtype):
            objects[position] = values = frame.iloc[:, position].to_numpy()
            if may_be_mixed(values):
                check_one_kind(str(name), values)
                check_nested(str(name), values)
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except ARROW_REFUSALS as error:
        for position, name in enumerate(frame.columns):
            check_kinds(str(name), frame.iloc[:, position], error)
        raise InvalidValueError(
            f"The DataFrame cannot be read as Arrow: {'; '.join(map(str, error.args))}"
        ) from error
    for position, values in objects.items():
        check_read(str(frame.columns[position]), values, table.schema.types[position])
    return table


def check_kinds(name: str, values: Any, cause: Exception) -> None:
    """Refuse a column that Arrow cannot read, and say what is in it.

    Args:
        name: The column.
        values: Its values.
        cause: Why they were not read, or one of their frame.

    Raises:
        InvalidValueError: Arrow cannot read these.
    """
    try:
        pa.array(values, from_pandas=True)
    except OverflowError:
        raise InvalidValueError(
            f"The column {name!r} has a whole number of more than 64 bits.",
            hint="Give decimals.",
            column=name,
        ) from cause
    except UnicodeEncodeError as error:
        raise InvalidValueError(
            f"The column {name!r} holds a text with half a surrogate pair: {error.object!r:.100}.",
            hint="decode it with errors='replace' where it comes from",
            column=name,
        ) from cause
    except ARROW_REFUSALS:
        nothing = values.isna() if hasattr(values, "isna") else [each is None for each in values]
        there = zip(values, nothing, strict=True)
        kinds = sorted({type(each).__name__ for each, is_none in there if not is_none})
        shown = " and ".join(kinds[:_KINDS_SHOWN_MAX])
        what = f"values of several kinds: {shown}" if kinds[1:] else f"values of the type {shown}"
        raise InvalidValueError(
            f"The column {name!r} holds {what}. A column of Fluss has one type, which Arrow must "
            "know.",
            hint=Hint(HintKey.ONE_KIND, column=name),
            column=name,
        ) from cause


def read_arrow(data: Any, read: Callable[[], Any]) -> Any:
    """Read a frame as Arrow.

    Raises:
        InvalidValueError: Arrow cannot read it.
    """
    try:
        return read()
    except ARROW_REFUSALS as error:
        raise InvalidValueError(
            f"The {type(data).__name__} cannot be read as Arrow: {'; '.join(map(str, error.args))}"
        ) from error


def check_dtype(name: str, dtype: Any) -> None:
    """Refuse a dtype that Arrow would read as other values.

    Raises:
        UnsupportedTypeError: It holds periods, or is sparse.
    """
    if str(dtype).startswith("Sparse["):
        raise UnsupportedTypeError(
            f"The column {name!r} is sparse ({dtype}), which Arrow does not read.",
            hint=f"df[{name!r}].sparse.to_dense()",
            column=name,
        )
    if str(dtype).startswith("period["):
        raise UnsupportedTypeError(
            f"The column {name!r} holds periods ({dtype}), for which Fluss has no type.",
            hint=f"Write times, df[{name!r}].dt.to_timestamp(), or texts, "
            f"df[{name!r}].astype(str).",
            column=name,
        )
