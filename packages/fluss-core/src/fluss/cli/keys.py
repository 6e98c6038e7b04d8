"""Keys as people type them: `7`, `id=7,day=2026-01-01`, or JSON where a value has commas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fluss.errors import InvalidValueError, UnsupportedOperationError
from fluss.model.schema import Schema
from fluss.model.types import (
    BigIntType,
    BooleanType,
    DoubleType,
    FloatType,
    IntType,
    SmallIntType,
    TinyIntType,
)

_NUMBERS = (TinyIntType, SmallIntType, IntType, BigIntType)


def keys_of(texts: Sequence[str], key: Sequence[str], schema: Schema) -> list[dict[str, Any]]:
    """Typed keys as rows.

    Raises:
        UnsupportedOperationError: The table has no primary key.
        InvalidValueError: A text does not say the whole key.
    """
    if not key:
        raise UnsupportedOperationError(
            "The table has no primary key to look up.",
            hint="`fluss head` and `fluss sql` read logs",
        )
    types = {each.name: each.data_type for each in schema.columns}
    return [
        {name: _value(value, types[name]) for name, value in _parts(text, key).items()}
        for text in texts
    ]


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
            parsed = json.loads(text)
        except ValueError:
            return None
        return parsed if isinstance(parsed, dict) else None
    pairs = [each.partition("=") for each in text.split(",")]
    if all(name.strip() in key and sign for name, sign, _ in pairs):
        return {name.strip(): value for name, _, value in pairs}
    return {key[0]: text} if len(key) == 1 else None


def _value(value: Any, data_type: object) -> Any:
    """Texts become numbers where the column has them; the rest is the client's to convert."""
    if not isinstance(value, str):
        return value
    try:
        if isinstance(data_type, _NUMBERS):
            return int(value)
        if isinstance(data_type, FloatType | DoubleType):
            return float(value)
    except ValueError:
        raise InvalidValueError(
            f"{value!r} is not {data_type}.", hint="write a key as id=... or as its value alone"
        ) from None
    if isinstance(data_type, BooleanType) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    return value
