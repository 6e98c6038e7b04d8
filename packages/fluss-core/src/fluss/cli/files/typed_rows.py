"""Parses rows that users type: `id=7 name=Ann`, or JSON. Values are those of their columns' types.

Parsing values is the same as for CSV and JSON (`cell_parsing`); keys are in `cli.typed_keys`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from fluss.cli.files.cell_parsing import CellError
from fluss.cli.files.json_file import parse_json_value, values_of_json
from fluss.errors import InvalidValueError, SchemaMismatchError
from fluss.model.did_you_mean import did_you_mean

_IS_LIST = re.compile(r",\s*\w+=")
_HOW = "write name=value for each column, or JSON: '{\"id\": 7}'"


def parsed_rows(words: Sequence[str], schema: pa.Schema) -> list[dict[str, Any]]:
    """Parse the words of a command: one row of `name=value`, or a JSON object in each word.

    Raises:
        InvalidValueError: A word is neither, or a column is given twice.
        SchemaMismatchError: There is no such column; the hint names the nearest.
    """
    rows = list(map(_object, words)) if words[0].startswith("{") else [_row(words, schema)]
    for row in rows:
        for name in row:
            if name not in schema.names:
                raise SchemaMismatchError(
                    f"There is no column {name!r}.",
                    hint=did_you_mean(name, schema.names)
                    or f"the columns are {', '.join(schema.names)}",
                    column=name,
                )
    return rows


def table_of(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema, *, optional: Collection[str]
) -> pa.Table:
    """Make a frame of parsed rows; a column that a row lacks is NULL in it.

    Args:
        rows: The rows, as of `parsed_rows`.
        schema: The columns of the table.
        optional: Columns that are left out if no row has them.

    Raises:
        InvalidValueError: A value is not of the type of its column, or a row lacks one that may not
            be NULL.
    """
    for field in schema:
        lacks_it = any(row.get(field.name) is None for row in rows)
        if lacks_it and not field.nullable and field.name not in optional:
            raise InvalidValueError(
                f"The column {field.name!r} may not be NULL, and is not given.",
                hint=f"add {field.name}=...",
                column=field.name,
            )
    given = {name for row in rows for name in row}
    fields = [each for each in schema if each.name in given or each.name not in optional]
    return pa.table(
        {each.name: _column([row.get(each.name) for row in rows], each) for each in fields}
    )


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        return values_of_json(values, field.type)
    except CellError as error:
        apart = (
            "write a blank between columns: id=7 name=Ann" if _IS_LIST.search(error.text) else None
        )
        raise InvalidValueError(
            f"{field.name}: {error.text!r} {error.why}.",
            hint=apart or error.hint,
            column=field.name,
        ) from None


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = parse_json_value(text)
    except CellError as error:
        raise InvalidValueError(f"{text!r} {error.why}.", hint=_HOW) from None
    if not isinstance(parsed, dict):
        raise InvalidValueError(f"{text!r} is not a JSON object.", hint=_HOW)
    return parsed


def _row(words: Sequence[str], schema: pa.Schema) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign:
            raise InvalidValueError(f"{word!r} is not name=value.", hint=_HOW)
        if name in row:
            raise InvalidValueError(f"The column {name!r} is given twice.", column=name)
        row[name] = _value(text, name, schema)
    return row


def _value(text: str, name: str, schema: pa.Schema) -> Any:
    """Return what a text stands for: an array, a map or a row is JSON, everything else itself."""
    if name not in schema.names or not pa.types.is_nested(schema.field(name).type):
        return text
    try:
        return parse_json_value(text)
    except CellError as error:
        kind = "JSON, as arrays, maps and rows are written"
        raise InvalidValueError(
            f"{name}: {text!r} is not {kind}.", hint=error.hint, column=name
        ) from None
