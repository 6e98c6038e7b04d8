"""The rules for names of databases, tables, partitions and columns.

Existing names are accepted; the prefix and the columns that Fluss reserves for itself are refused
only for new objects (Java: `TablePath`,
`TableDescriptorValidation`).
"""

from __future__ import annotations

import re

from fluss.errors import InvalidNameError

NAME_LENGTH_MAX = 200
INTERNAL_PREFIX = "__"
RESERVED_COLUMN_NAMES = (
    "__offset",
    "__timestamp",
    "__bucket",
    "_change_type",
    "_log_offset",
    "_commit_timestamp",
)

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")


def check_name(what: str, name: object) -> str:
    """Return the name itself if Fluss allows it.

    Args:
        what: The kind of name, for the message: "database name", "table name", "partition value".
        name: The name.

    Raises:
        InvalidNameError: When it is empty, too long, or has characters that no name may have.
    """
    name = _given_text(what, name)
    shown = without_login(name)
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidNameError(
            f"The {what} {shown[:40]!r}… has {len(name)} characters, {NAME_LENGTH_MAX} are allowed.",
            hint=f"shorten it by {len(name) - NAME_LENGTH_MAX} characters",
            name=shown,
        )
    forbidden = _FORBIDDEN.search(name)
    if forbidden:
        raise InvalidNameError(
            f"The {what} {shown!r} has {forbidden.group()!r} at position {forbidden.start()}.",
            hint="use only ASCII letters, digits, '_' and '-'",
            name=shown,
        )
    return name


def without_login(text: str) -> str:
    """Return a name for errors: of a URL without the part before the @, where passwords are."""
    return text if "@" not in text else f"…@{text.rpartition('@')[2]}"


def check_new_name(what: str, name: object) -> str:
    """Return the name itself if a new database, table or partition may have it.

    Raises:
        InvalidNameError: As `check_name`, and when the name begins like Fluss's own.
    """
    checked = check_name(what, name)
    if checked.startswith(INTERNAL_PREFIX):
        raise InvalidNameError(
            f"The {what} {checked!r} begins with {INTERNAL_PREFIX!r}, "
            "which is reserved for Fluss itself.",
            hint=f"drop the {INTERNAL_PREFIX!r}",
            name=checked,
        )
    return checked


def check_column_name(name: object) -> str:
    """Return the name itself if it is a text that is not empty, as columns and fields need.

    Raises:
        InvalidNameError: When it is empty or not text that UTF-8 can carry.
    """
    return check_text("column name", _given_text("column name", name))


def check_not_reserved(name: str) -> None:
    """Refuse a column name that Fluss reserves.

    Raises:
        InvalidNameError: When the name is one of `RESERVED_COLUMN_NAMES`.
    """
    if name in RESERVED_COLUMN_NAMES:
        raise InvalidNameError(
            f"The column name {name!r} is reserved for Fluss's own columns.",
            hint=f"rename the column; reserved are {', '.join(RESERVED_COLUMN_NAMES)}",
            name=name,
        )


def check_text(what: str, text: object) -> str:
    """Return the text itself if UTF-8 can encode it; half a surrogate pair cannot be encoded.

    Raises:
        InvalidNameError: When it is no text, or cannot be encoded.
    """
    if not isinstance(text, str):
        raise InvalidNameError(f"A {what} is text, not {type(text).__name__}: {text!r}.", name=text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidNameError(
            f"The {what} {text!r} has half a surrogate pair at position {error.start}.",
            hint="decode the text with errors='replace' where it comes from",
            name=text,
        ) from None
    return text


def _given_text(what: str, name: object) -> str:
    if not isinstance(name, str):
        raise InvalidNameError(f"A {what} is text, not {type(name).__name__}: {name!r}.", name=name)
    if not name:
        raise InvalidNameError(f"The {what} is empty.", hint="give it a name", name=name)
    return name
