"""The entry points `connect`, `attach` and `install`.

`connect` opens a connection of its own, `attach` adds tables to an existing connection, `install`
replaces the functions of the module `duckdb`.
"""

from __future__ import annotations

import atexit
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import duckdb

import fluss
from fluss.doors import at_door
from fluss.errors import InvalidValueError
from fluss.hints import Door
from fluss.model.options.config import Config
from fluss.scan import Progress
from fluss.session import Session
from fluss.waiting import InterruptibleLock
from fluss_duckdb.duckdb_connection import Connection
from fluss_duckdb.view_catalog import Catalog

_CLUSTER = re.compile(r"fluss://|embedded:|(?!md:|motherduck:)[\w.-]+:\d+(,|/|$)")
_PATCHED = ("execute", "executemany", "from_query", "query", "sql", "table", "view")
# DuckDB expands a macro where it is called, so one macro serves all tables.
_MACRO = """
CREATE OR REPLACE TEMP MACRO fluss(name) AS TABLE SELECT * FROM query_table(
    '"{catalog}"."' || replace(split_part(name, '.', 1), '"', '""')
    || '"."' || replace(split_part(name, '.', 2), '"', '""') || '"')
"""


@at_door(Door.DUCKDB)
def connect(
    database: Any = ":memory:",
    url: str | None = None,
    *,
    config: Config | Mapping[str, Any] | None = None,
    session: Session | None = None,
    read_only: bool = False,
    duckdb_config: Mapping[str, Any] | None = None,
    catalog: str = "fluss",
    progress: Progress = None,
    **settings: Any,
) -> Connection:
    """Open a DuckDB in which `fluss('database.table')` and `fluss.database.table` are tables.

    Args:
        database: DuckDB's database: a file, or its memory.
        url: The cluster, as in `fluss.connect`.
        config: Settings of the cluster, in place of a URL or in addition to it.
        session: A session to use instead; it is left open.
        read_only: Whether the database is opened for reading only.
        duckdb_config: DuckDB's own settings.
        catalog: Under which name the tables are attached.
        progress: Whether a bar is shown while a statement reads many rows; by default in terminals
            and notebooks. Or a function of the rows read and their upper bound.
        **settings: Further arguments of `fluss.connect`.

    Raises:
        ConnectError: No server of the cluster can be reached.
        InvalidNameError: DuckDB has another database of the catalog's name.

    Example:
        >>> con = connect(url="fluss://127.0.0.1:9123")  # doctest: +SKIP
        >>> con.sql("SELECT count(*) FROM fluss('fluss.events')")  # doctest: +SKIP
    """
    _check_is_no_url(database)
    opened, is_mine = _session(url, config, session, settings)
    try:
        connection = duckdb.connect(database, read_only=read_only, config=dict(duckdb_config or {}))
        try:
            tables = Catalog(connection, lambda: opened, catalog, progress)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        if is_mine:
            opened.close()
        raise
    return Connection(connection, tables, on_close=opened.close if is_mine else _nothing)


def _check_is_no_url(database: Any) -> None:
    """Refuse the URL of a cluster in place of DuckDB's database: DuckDB would make such a file."""
    if isinstance(database, str) and _CLUSTER.match(database):
        raise InvalidValueError(
            "The first argument of connect() is DuckDB's database, and this names a cluster.",
            hint="write fluss_duckdb.connect(url='fluss://host:9123')",
        )


@at_door(Door.DUCKDB)
def attach(
    connection: duckdb.DuckDBPyConnection,
    url: str | None = None,
    *,
    database: str | None = None,
    config: Config | Mapping[str, Any] | None = None,
    session: Session | None = None,
    catalog: str = "fluss",
    **settings: Any,
) -> list[str]:
    """Add the tables that exist now to any connection of DuckDB.

    Their names are `fluss.database.table` and `fluss('database.table')`. Each query sees their rows
    at its time; tables that are created later need another `attach`, and options of scans and
    Ctrl-C need a connection of `connect`.

    Args:
        connection: The connection; its cursors see the tables, too.
        url: The cluster, as in `fluss.connect`.
        database: The database whose tables are attached; all, by default.
        config: Settings of the cluster, in place of a URL or in addition to it.
        session: A session to use instead.
        catalog: Under which name the tables are attached.
        **settings: Further arguments of `fluss.connect`.

    Returns:
        The tables: `database.table` of each.
    """
    opened, _ = _session(url, config, session, settings)
    tables = Catalog(connection, lambda: opened, catalog)
    names = tables.attach_all(database)
    connection.execute(_MACRO.format(catalog=catalog.replace('"', '""')))
    _attached.setdefault(id(connection), []).append(tables)  # its sources live as long
    return names


def install(
    url: str | None = None,
    *,
    config: Config | Mapping[str, Any] | None = None,
    session: Session | None = None,
    catalog: str = "fluss",
    progress: Progress = None,
    **settings: Any,
) -> None:
    """Make `duckdb.sql("SELECT * FROM fluss('database.table')")` and its like work.

    It replaces `duckdb.sql`, `duckdb.execute` and the other functions on DuckDB's default
    connection by ones that know Fluss. The cluster is asked when a statement first names one of its
    tables. Connections of `duckdb.connect` are not changed. A second call replaces the settings of
    the first.

    Args:
        url: The cluster, as in `fluss.connect`.
        config: Settings of the cluster, in place of a URL or in addition to it.
        session: A session to use instead; it is left open.
        catalog: Under which name the tables are attached.
        progress: Whether a bar is shown, as in `connect`.
        **settings: Further arguments of `fluss.connect`.
    """
    uninstall()
    atexit.register(uninstall)
    _installed.settings = lambda: _session(url, config, session, settings)
    _installed.catalog, _installed.progress = catalog, progress
    for name in _PATCHED:
        _installed.originals[name] = getattr(duckdb, name)
        setattr(duckdb, name, _replacement(name, _installed.originals[name]))


def uninstall() -> None:
    """Undo `install`; its tables stay attached, but can be read no more. Idempotent."""
    with _installed.lock:
        for name, original in _installed.originals.items():
            setattr(duckdb, name, original)
        _installed.originals.clear()
        connection, _installed.connection = _installed.connection, None
        _installed.settings = None
        if connection is not None:
            connection._catalog.close()  # noqa: SLF001 - DuckDB's connection stays open
        opened, _installed.session = _installed.session, None
        if opened is not None:
            opened.close()


class _Installed:
    """The functions that `install` has replaced, and how to connect."""

    def __init__(self) -> None:
        self.lock = InterruptibleLock()
        self.originals: dict[str, Callable[..., Any]] = {}
        self.settings: Callable[[], tuple[Session, bool]] | None = None
        self.catalog = "fluss"
        self.progress: Progress = None
        self.connection: Connection | None = None
        self.session: Session | None = None

    def default(self) -> Connection:
        """Return DuckDB's default connection, with the tables of Fluss."""
        with self.lock:
            default = duckdb.default_connection()
            if self.connection is None or self.connection.plain is not default:
                tables = Catalog(default, self._open, self.catalog, self.progress)
                self.connection = Connection(default, tables)
            return self.connection

    def _open(self) -> Session:
        with self.lock:
            if self.session is not None:
                return self.session
            if self.settings is None:
                raise InvalidValueError("fluss_duckdb is not installed.", hint="call install()")
            opened, is_mine = self.settings()
            if is_mine:
                self.session = opened
            return opened


_installed = _Installed()
_attached: dict[int, list[Catalog]] = {}


def _replacement(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **more: Any) -> Any:
        given = more.pop("connection", None)
        if given is not None:
            return original(*args, **more, connection=given)
        frame = sys._getframe(1)  # noqa: SLF001 - its variables are tables
        return _installed.default().call_in_frame(frame, name, *args, **more)

    call.__name__ = name
    call.__doc__ = original.__doc__
    return call


def _session(
    url: str | None,
    config: Config | Mapping[str, Any] | None,
    session: Session | None,
    settings: Mapping[str, Any],
) -> tuple[Session, bool]:
    """Return the session, and whether it was opened here."""
    if session is None:
        return fluss.connect(url, config=config, **settings), True
    if url is not None or config is not None or settings:
        raise InvalidValueError(
            "A session is given together with settings for another one.",
            hint="give session=, or url= and config=",
        )
    return session, False


def _nothing() -> None:
    """Leave the caller's session open."""
