"""Resolves a call of `fluss(...)`: a table, and the options of its scan.

The values of options are SQL that DuckDB evaluates, so any constant expression is allowed:
`start := now() - INTERVAL 10 MINUTES`. The view of a reference has two names in the catalog, its
schema and its own. Options are part of the schema's name, written as in a URL, so that a view in a
database on disk contains everything that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from fluss.errors import ConfigError, InvalidNameError, InvalidValueError
from fluss.scan import (
    SCAN_OPTIONS,
    Mode,
    TableName,
    TableSource,
    source_of,
    unknown_option,
    without_view,
)
from fluss.session import Session, Table
from fluss_duckdb.call_finder import Call, Dotted

_USAGE = "write fluss('database.table', start := 'earliest')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A table, as a statement names it.

    Attributes:
        source: The table, how to reach it, and the checked options.
        given: The options as given; the view's name contains them.
        servers: The cluster if it is not the session's; empty otherwise.
    """

    source: TableSource
    given: Mapping[str, Any] = field(default_factory=dict)
    servers: str = ""

    @property
    def view_name(self) -> tuple[str, str]:
        """The names of its schema and of its view."""
        words = [f"{name}={_label(value)}" for name, value in sorted(self.given.items())]
        at = f"@{self.servers}" if self.servers else ""
        label = f"?{'&'.join(words)}" if words else ""
        mode = self.source.options.mode
        is_named = mode in {Mode.CHANGELOG, Mode.BINLOG} and "mode" not in self.given
        suffix = f"${mode}" if is_named else ""
        path = self.source.path
        return f"{path.database_name}{at}{label}", f"{path.table_name}{suffix}"


def reference_of_call(call: Call, session: Session, value_of: Callable[[str], Any]) -> Reference:
    """Resolve a call.

    Args:
        call: The call.
        session: The session for tables without a URL.
        value_of: Evaluates the SQL of an argument.

    Raises:
        FlussError: The call does not name a table, or has unknown options.
    """
    arguments = [each for each in call.arguments if each.sql]
    positional = [each for each in arguments if each.name is None]
    if len(positional) != 1 or arguments[0].name is not None:
        raise InvalidValueError(
            f"fluss(...) takes one table, and options by name; this call has {len(positional)} "
            "values without a name.",
            hint=_USAGE,
        )
    given: dict[str, Any] = {}
    for argument in arguments[1:]:
        name = argument.name or ""
        if name in given:
            raise ConfigError(f"fluss(...) has the option {name!r} twice.", key=name)
        if name not in SCAN_OPTIONS:
            raise unknown_option(name)
        given[name] = value_of(argument.sql)
    text = value_of(positional[0].sql)
    if not isinstance(text, str):
        raise InvalidNameError(f"fluss({text!r}) does not name a table.", hint=_USAGE)
    return reference_of(text, session, given)


def reference_of(table: TableName, session: Session, given: Mapping[str, Any]) -> Reference:
    """Resolve `"db.table"`, `"db.table$changelog"`, a URL or a `Table`, with options."""
    if isinstance(table, str) and "://" not in table:
        source = source_of(_full_name(table, session), given, config=session.config)
        return Reference(source=source, given=given)
    source = source_of(table, given)
    before = table.defaults if isinstance(table, Table) else _url_options(str(table))
    servers = str(source.config.bootstrap_servers)
    is_same = servers == session.config.bootstrap_servers
    return Reference(source=source, given={**before, **given}, servers="" if is_same else servers)


def _url_options(url: str) -> dict[str, str]:
    """Return the options of a scan in a URL, which has been checked."""
    query = without_view(url)[0].partition("?")[2]
    pairs = [word.partition("=") for word in query.split("&")]
    return {
        unquote(name): unquote(value) for name, _, value in pairs if unquote(name) in SCAN_OPTIONS
    }


def _full_name(text: str, session: Session) -> str:
    """Return a name with its database, which is the session's by default."""
    name, dollar, suffix = text.partition("$")
    return f"{session.path_of(name)}{dollar}{suffix}"


def reference_of_name(dotted: Dotted, session: Session) -> Reference:
    """Resolve a name; its first part may contain options, as in the name of a view."""
    database, _, label = dotted.database.partition("?")
    given = {}
    for word in filter(None, label.split("&")):
        name, _, value = word.partition("=")
        given[name] = unquote(value)
    return reference_of(f"{database}.{dotted.table}", session, given)


# --- values ---------------------------------------------------------------------------------------


def python_value(scalar: pa.Scalar) -> Any:
    """Convert a value that DuckDB evaluated to one that options take."""
    value = scalar.as_py()
    if pa.types.is_map(scalar.type):
        return {_plain(key): _plain(each) for key, each in value or ()}
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, pa.MonthDayNano):
        if value.months:
            raise InvalidValueError(
                "An option has an INTERVAL with months, which have no fixed length.",
                hint="write it in days: INTERVAL 30 DAYS",
            )
        return timedelta(days=value.days, microseconds=value.nanoseconds // 1_000)
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _label(value: Any) -> str:
    return quote(_text(value), safe=" ,:+-/{}\"'[]()")


def _text(value: Any) -> str:
    """Return a value as text for a URL."""
    match value:
        case bool():
            return str(value).lower()
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return f"-{abs(value) // timedelta(milliseconds=1)}ms"
        case list() | tuple():
            return ",".join(_text(each) for each in value)
        case dict() if all(isinstance(key, str) for key in value):
            names = list(value)
            choices = [each if isinstance(each, list) else [each] for each in value.values()]
            return ",".join(
                "/".join(f"{name}={_text(each)}" for name, each in zip(names, chosen, strict=True))
                for chosen in product(*choices)
            )
        case _:
            return str(value)
