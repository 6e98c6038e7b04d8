"""Parses keys that users type: `7`, `id=7,day=2026-01-01`, or JSON where a value has commas.

Values are parsed as the types of their columns, like those of CSV and JSON (`files.cell_parsing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from fluss.cli.files.cell_parsing import CellError
from fluss.cli.files.json_file import parse_json_value, values_of_json
from fluss.errors import InvalidValueError, UnsupportedOperationError


def keys_of(texts: Sequence[str], key: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Make a frame of typed keys, one row for each.

    Args:
        texts: The keys.
        key: The columns of the primary key.
        schema: The columns of the table.

    Raises:
        UnsupportedOperationError: The table has no primary key.
        InvalidValueError: A text does not have the whole key, or a value is not of its type.
    """
    check_keyed(key)
    rows = [_parts(text, key) for text in texts]
    return pa.table(
        {name: _column([row[name] for row in rows], schema.field(name)) for name in key}
    )


def check_keyed(key: Sequence[str]) -> None:
    """Refuse a table without a primary key.

    Raises:
        UnsupportedOperationError: The table has none.
    """
    if not key:
        raise UnsupportedOperationError(
            "The table has no primary key, so its rows have no keys.",
            hint="`fluss head` and `fluss sql` read logs; `fluss drop` and table.log.ttl remove rows",
        )


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        return values_of_json(values, field.type)
    except CellError as error:
        raise InvalidValueError(
            f"The key {field.name!r}: {error.text!r} {error.why}.",
            hint=error.hint or f"write a key as {field.name}=... or as its value alone",
            column=field.name,
        ) from None


def _parts(text: str, key: Sequence[str]) -> dict[str, Any]:
    parts = _parsed(text, key)
    if parts is None or set(parts) != set(key):
        example = ",".join(f"{each}=..." for each in key)
        raise InvalidValueError(
            f"{text!r} is not a key of ({', '.join(key)}).", hint=f"write it as {example}"
        )
    return parts


def _parsed(text: str, key: Sequence[str]) -> dict[str, Any] | None:
    if text.startswith("{"):
        try:
            parsed = parse_json_value(text)
        except CellError:
            return None
        return parsed if isinstance(parsed, dict) else None
    pairs = [each.partition("=") for each in text.split(",")]
    if all(name.strip() in key and sign for name, sign, _ in pairs):
        return {name.strip(): value for name, _, value in pairs}
    if len(key) > 1:
        return None
    name, sign, value = text.partition("=")  # of one column; its value may have commas
    return {key[0]: value if sign and name.strip() == key[0] else text}
