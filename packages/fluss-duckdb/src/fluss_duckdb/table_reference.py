"""What a call of `fluss(...)` stands for: a table, how its rows are seen, and options of a scan.

The values of options are SQL and are worked out by DuckDB, so whatever is constant may be written:
`start := now() - INTERVAL 10 MINUTES`. A reference also has a place, two names under which its view
stands in the catalog; options are part of the first, written as in a URL, so that a view in a
database on disk says for itself what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from fluss.connection.url import parse_url
from fluss.errors import ConfigError, InvalidNameError, InvalidValueError
from fluss.model.options.scan_options import SCAN_OPTIONS, Mode, unknown_option
from fluss.session import Session, Table, TableName, TableSource, source_of
from fluss_duckdb.call_finder import Call, Dotted

_VIEW = re.compile(r"\$\w*(?=\?|$)")
_USAGE = "write fluss('database.table', start := 'earliest')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A table, as a statement speaks of it.

    Attributes:
        source: The table, how to reach it, and the options, checked.
        given: The options as they were given; the place is made of them.
        servers: The cluster, where it is another than the session's; nothing otherwise.
    """

    source: TableSource
    given: Mapping[str, Any] = field(default_factory=dict)
    servers: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """The names of its schema and its view."""
        words = [f"{name}={_label(value)}" for name, value in sorted(self.given.items())]
        at = f"@{self.servers}" if self.servers else ""
        label = f"?{'&'.join(words)}" if words else ""
        mode = self.source.options.mode
        is_named = mode in {Mode.CHANGELOG, Mode.BINLOG} and "mode" not in self.given
        suffix = f"${mode}" if is_named else ""
        path = self.source.path
        return f"{path.database_name}{at}{label}", f"{path.table_name}{suffix}"


def reference_of_call(call: Call, session: Session, value_of: Callable[[str], Any]) -> Reference:
    """What a call stands for.

    Args:
        call: The call.
        session: The way to Fluss where the call does not name another.
        value_of: Works out an argument's SQL.

    Raises:
        FlussError: The call does not name a table, or has options that no scan has.
    """
    arguments = [each for each in call.arguments if each.sql]
    positional = [each for each in arguments if each.name is None]
    if len(positional) != 1 or arguments[0].name is not None:
        raise InvalidValueError(
            f"fluss(...) takes one table, and its options by name; here it is given "
            f"{len(positional)} values without a name.",
            hint=_USAGE,
        )
    given: dict[str, Any] = {}
    for each in arguments[1:]:
        name = each.name or ""
        if name == "filter":
            raise ConfigError(
                "fluss(...) has no option 'filter' in SQL.", hint="say WHERE", key="filter"
            )
        if name in given:
            raise ConfigError(f"fluss(...) is given the option {name!r} twice.", key=name)
        if name not in SCAN_OPTIONS:
            raise unknown_option(name)
        given[name] = value_of(each.sql)
    text = value_of(positional[0].sql)
    if not isinstance(text, str):
        raise InvalidNameError(f"fluss({text!r}) does not name a table.", hint=_USAGE)
    return reference_of(text, session, given)


def reference_of(table: TableName, session: Session, given: Mapping[str, Any]) -> Reference:
    """What `"db.table"`, `"db.table$changelog"`, a URL or a `Table` stands for, with options."""
    if isinstance(table, str) and "://" not in table:
        source = source_of(_full_name(table, session), given, config=session.config)
        return Reference(source=source, given=given)
    source = source_of(table, given)
    before = parse_url(_VIEW.sub("", table)).options if isinstance(table, str) else {}
    if isinstance(table, Table):
        before = table.defaults
    servers = str(source.config.bootstrap_servers)
    is_same = servers == session.config.bootstrap_servers
    return Reference(source=source, given={**before, **given}, servers="" if is_same else servers)


def _full_name(text: str, session: Session) -> str:
    """A name with its database; where it names none, it is a table of the session's."""
    name, dollar, suffix = text.partition("$")
    return f"{session.path_of(name)}{dollar}{suffix}"


def reference_of_name(dotted: Dotted, session: Session) -> Reference:
    """What a name stands for: its first part may carry options, as places do."""
    database, _, label = dotted.database.partition("?")
    given = {}
    for word in filter(None, label.split("&")):
        name, _, value = word.partition("=")
        given[name] = unquote(value)
    return reference_of(f"{database}.{dotted.table}", session, given)


# --- values ---------------------------------------------------------------------------------------


def python_value(scalar: pa.Scalar) -> Any:
    """A value that DuckDB worked out, as options take it."""
    value = scalar.as_py()
    if pa.types.is_map(scalar.type):
        return {_plain(key): _plain(each) for key, each in value or ()}
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, pa.MonthDayNano):
        if value.months:
            raise InvalidValueError(
                "A month is no certain time; an option is given an INTERVAL with months.",
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
    """The text that stands for a value in a URL."""
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
