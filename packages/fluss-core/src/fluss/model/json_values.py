"""Reading and writing the JSON in which Fluss keeps schemas, tables and databases.

The text comes from a server or client, so it is not trusted: each reader states what it expects,
and raises a `CorruptDataError` for anything else. The meaning of the objects is in
`model.types.type_json`, `model.schema.schema_json` and others.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any, cast

from fluss.errors import CorruptDataError

Json = dict[str, Any]


def json_text(value: Json) -> str:
    """Return JSON as Fluss writes it: without blanks, and without escapes for other alphabets."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_json(text: str | bytes, what: str) -> Json:
    """Return the JSON object in this text.

    Raises:
        CorruptDataError: When the text is not UTF-8, not JSON, or no object.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise corrupt(what, f"{error.msg} at character {error.pos}", at=error.pos) from None
    except UnicodeDecodeError as error:
        raise corrupt(what, "it is not UTF-8", at=error.start) from None
    except RecursionError:
        raise corrupt(what, "it is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise corrupt(what, str(error)) from None
    return as_object(value, what)


def corrupt(what: str, why: str, *, at: int | None = None) -> CorruptDataError:
    """Return the error for JSON that is not a valid `what`."""
    return CorruptDataError(
        f"The JSON of a {what} cannot be read: {why}.", what=what, why=why, at=at
    )


def as_object(value: object, what: str) -> Json:
    """Return the value, which has to be a JSON object."""
    if not isinstance(value, dict):
        raise corrupt(what, f"expected an object, found {_shown(value)}")
    return cast("Json", value)


def as_text(node: Mapping[str, Any], key: str, what: str) -> str:
    """Return the text under this key."""
    value: str = _typed(node, key, what, str, "text")
    if not _is_unicode(value):
        raise corrupt(what, f"{key!r} has half a surrogate pair")
    return value


def as_integer(node: Mapping[str, Any], key: str, what: str) -> int:
    """Return the integer under this key."""
    value: int = _typed(node, key, what, int, "an integer")
    return value


def as_list(node: Mapping[str, Any], key: str, what: str) -> list[Any]:
    """Return the list under this key."""
    value: list[Any] = _typed(node, key, what, list, "a list")
    return value


def _typed(node: Mapping[str, Any], key: str, what: str, kind: type, named: str) -> Any:
    value = node.get(key)
    if isinstance(value, bool) or not isinstance(value, kind):
        raise corrupt(what, f"{key!r} is {_shown(value)}, not {named}")
    return value


def as_texts(node: Mapping[str, Any], key: str, what: str) -> list[str]:
    """Return the list of texts under this key; an absent key is an empty list."""
    if key not in node:
        return []
    values = as_list(node, key, what)
    for value in values:
        if not isinstance(value, str) or not _is_unicode(value):
            raise corrupt(what, f"{key!r} holds {_shown(value)}, not only text")
    return values


def as_text_map(node: Mapping[str, Any], key: str, what: str) -> dict[str, str]:
    """Return the object of texts under this key; an absent key is an empty one."""
    if key not in node:
        return {}
    values = as_object(node[key], f"{what}'s {key!r}")
    for name, value in values.items():
        if not (isinstance(value, str) and _is_unicode(value) and _is_unicode(name)):
            # The value may be a secret: 0.9.1 sends the login of a lake with a table's properties.
            raise corrupt(what, f"{key!r} holds {type(value).__name__} under {name!r}, not text")
    return values


def _shown(value: object) -> str:
    return "nothing" if value is None else reprlib.repr(value)


def _is_unicode(text: str) -> bool:
    """Return whether UTF-8 can encode the text; it cannot encode half a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
