"""Types and columns as users give them: texts, and types of Python, Arrow and dataframe libraries.

====================  ==========================================================================
given                 type
====================  ==========================================================================
text                  Fluss's own, in either spelling: `"BIGINT NOT NULL"`, `"decimal(10,2)"`
Python                bool BOOLEAN, int BIGINT, float DOUBLE, str STRING, bytes BYTES, date DATE,
                      time TIME(6), datetime TIMESTAMP(6); `list[int]`, `dict[str, int]`,
                      `int | None`
Arrow                 the type of a table that is made of such data (`model.types.arrow_to_type`)
Polars, pandas,       by way of Arrow
numpy
====================  ==========================================================================

A column is a `Column`, an Arrow field, or a name with a type; columns come as a mapping, as a
list, or as a schema of Arrow, Polars or Fluss.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from fluss.errors import InvalidSchemaError
from fluss.model.types import data_type as t
from fluss.model.types.arrow_to_type import from_arrow_field, from_arrow_schema, from_arrow_type
from fluss.model.types.polars_types import arrow_type_of, is_from_polars
from fluss.model.types.type_text import parse_type

if TYPE_CHECKING:
    from fluss.model.schema.column import Column

_PYTHON: Final[Mapping[Any, t.DataType]] = {
    bool: t.BooleanType(),
    int: t.BigIntType(),
    float: t.DoubleType(),
    str: t.StringType(),
    bytes: t.BytesType(),
    date: t.DateType(),
    time: t.TimeType(6),
    datetime: t.TimestampType(6),
}
_TAKEN: Final = (
    "Give a text such as 'BIGINT' or 'DECIMAL(10, 2)', a Python type such as int, or a type of "
    "Arrow, Polars or DataTypes."
)
_SAMPLES: Final = "Sample rows go into a list: [{...}]."
_PAIR: Final = 2


def data_type_of(given: Any, column: str) -> t.DataType:
    """Return the Fluss type for a given type.

    Args:
        given: See above.
        column: The column it is for, for errors.

    Raises:
        InvalidSchemaError: The argument is no type, or is incomplete.
        UnsupportedTypeError: Fluss has no such type.
    """
    if isinstance(given, t.DataType):
        return given
    if isinstance(given, str):
        return _parsed(given, column)
    if is_from_polars(given):
        return from_arrow_type(arrow_type_of(given, column), column=column)
    if hasattr(given, "__arrow_c_schema__"):
        return _of_arrow(given, column)
    if _is_numpy(given) or _is_pandas(given):
        return _of_library(given, column)
    return _of_python(given, column)


def is_type(given: Any) -> bool:
    """Return whether this is a type and not a value; a text may be either."""
    if isinstance(given, t.DataType | type | types.GenericAlias | types.UnionType):
        return True
    if is_from_polars(given):
        return hasattr(given, "to_python") or hasattr(given, "base_type")
    if hasattr(given, "__arrow_c_schema__"):
        return not (hasattr(given, "__arrow_c_array__") or hasattr(given, "__arrow_c_stream__"))
    return _is_numpy(given) or _is_pandas(given) or typing.get_origin(given) is not None


def columns_of(given: Any) -> tuple[Column, ...]:
    """Return the columns that were given.

    Args:
        given: A mapping from names to types, a list of columns, fields or pairs of name and type,
            one `Column`, or a schema of Arrow, Polars or Fluss.

    Raises:
        InvalidSchemaError: The argument is none of these, or has an invalid type.
        UnsupportedTypeError: Fluss has no such type.
    """
    from fluss.model.schema.column import Column

    if isinstance(given, Column):
        return (given,)
    if isinstance(given, Mapping):
        return tuple(Column(name, data_type_of(each, str(name))) for name, each in given.items())
    if hasattr(given, "__arrow_c_schema__"):
        import pyarrow as pa

        return from_arrow_schema(pa.schema(given))
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return tuple(map(_column, given))
    raise InvalidSchemaError(
        f"A schema is made of columns; {given!r:.80} has none.",
        hint="Give {'id': 'BIGINT', 'name': 'STRING'}, a pyarrow.Schema, or Column objects.",
    )


def columns_if_given(data: Any) -> tuple[Column, ...] | None:
    """Return the columns that this names; None for data, from which columns can be inferred.

    Raises:
        InvalidSchemaError: The argument may be types or sample values, or a type is invalid.
    """
    if isinstance(data, Mapping) and data:
        texts = [each for each in data.values() if isinstance(each, str)]
        typed = [each for each in data.values() if is_type(each)]
        if len(texts) + len(typed) == len(data):
            return _columns_or_samples(data)
        if typed or any(map(_is_type_text, texts)):
            named = next(
                name
                for name, each in data.items()
                if not isinstance(each, str) and not is_type(each)
            )
            raise InvalidSchemaError(
                f"Some values are types, and that of {named!r} is none: {data[named]!r:.80}.",
                hint=f"{_TAKEN} {_SAMPLES}",
                column=str(named),
            )
        return None
    if isinstance(data, list | tuple) and data and all(map(_is_column, data)):
        return columns_of(data)
    return None


def _columns_or_samples(data: Mapping[Any, Any]) -> tuple[Column, ...]:
    try:
        return columns_of(data)
    except InvalidSchemaError as error:
        raise error.with_context(hint=(*error.hints, _SAMPLES)) from None


def _is_column(given: Any) -> bool:
    from fluss.model.schema.column import Column

    if isinstance(given, Column):
        return True
    if isinstance(given, tuple | list):
        is_named = len(given) == _PAIR and isinstance(given[0], str)
        return is_named and (is_type(given[1]) or isinstance(given[1], str))
    return hasattr(given, "__arrow_c_schema__") and hasattr(given, "nullable")


def _column(given: Any) -> Column:
    from fluss.model.schema.column import Column

    if isinstance(given, Column):
        return given
    if isinstance(given, tuple | list) and len(given) == _PAIR and isinstance(given[0], str):
        return Column(given[0], data_type_of(given[1], given[0]))
    if hasattr(given, "__arrow_c_schema__") and hasattr(given, "nullable"):  # an Arrow field
        import pyarrow as pa

        (column,) = from_arrow_schema(pa.schema([given]))
        return column
    raise InvalidSchemaError(
        f"A schema is made of columns, not of {type(given).__name__}: {given!r:.80}.",
        hint="Give pairs of name and type, a pyarrow.Schema, Column objects, or use "
        "Schema.builder().",
    )


# --- one type -------------------------------------------------------------------------------------


def _parsed(text: str, column: str) -> t.DataType:
    try:
        return parse_type(text)
    except InvalidSchemaError as error:
        raise error.with_context(column=column, hint=error.hints or _TAKEN) from None


def _is_type_text(text: str) -> bool:
    try:
        parse_type(text)
    except InvalidSchemaError:
        return False
    return True


def _of_arrow(given: Any, column: str) -> t.DataType:
    if hasattr(given, "nullable"):
        return from_arrow_field(given)
    return from_arrow_type(given, column=column)


def _is_numpy(given: Any) -> bool:
    """Return whether this is a class of numpy's values, or a dtype."""
    kind = given if isinstance(given, type) else type(given)
    if kind.__module__.partition(".")[0] != "numpy":
        return False
    import numpy as np

    return issubclass(kind, np.generic) if kind is given else isinstance(given, np.dtype)


def _is_pandas(given: Any) -> bool:
    """Return whether this is a dtype of pandas' own."""
    return not isinstance(given, type) and hasattr(given, "construct_array_type")


def _of_library(given: Any, column: str) -> t.DataType:
    """Return the type for one of numpy or pandas, by way of Arrow."""
    import numpy as np
    import pyarrow as pa

    try:
        if _is_numpy(given):
            return from_arrow_type(pa.from_numpy_dtype(np.dtype(given)), column=column)
        if not str(given).startswith("period["):
            import pandas as pd

            empty = pa.Array.from_pandas(pd.Series([], dtype=given))
            return from_arrow_type(empty.type, column=column)
    except (TypeError, pa.ArrowException):
        pass
    raise _no_type(given, column)


def _of_python(given: Any, column: str) -> t.DataType:
    if given is Decimal:
        raise InvalidSchemaError(
            f"Decimal does not say how many digits the column {column!r} has.",
            hint="Write 'DECIMAL(10, 2)': digits in all, and after the point.",
            column=column,
        )
    plain = _PYTHON.get(given) if isinstance(given, type) else None
    if plain is not None:
        return plain
    origin, arguments = typing.get_origin(given), typing.get_args(given)
    if origin in {typing.Union, types.UnionType}:
        return _of_union(given, arguments, column)
    if origin in {list, Sequence} and len(arguments) == 1:
        return t.ArrayType(data_type_of(arguments[0], f"{column}[]"))
    if origin in {dict, Mapping} and len(arguments) == _PAIR:
        key = data_type_of(arguments[0], f"{column}.key")
        return t.MapType(key.not_null(), data_type_of(arguments[1], f"{column}.value"))
    raise _no_type(given, column)


def _of_union(given: Any, arguments: Sequence[Any], column: str) -> t.DataType:
    others = [each for each in arguments if each is not types.NoneType]
    if len(others) != 1:
        raise _no_type(given, column)
    return data_type_of(others[0], column).as_nullable()


def _no_type(given: Any, column: str) -> InvalidSchemaError:
    return InvalidSchemaError(
        f"The type of the column {column!r} is {given!r:.80}, which is no type of a column.",
        hint=_TAKEN,
        column=column,
    )
