"""`fluss.connect`: one session, for people and for programs that do not wait in event loops.

Every method is plain and synchronous, and blocks the calling thread, also inside a running event
loop. `session.table` has the methods of a table, and `session.session_scan` those of a scan.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Literal, Self, TypeVar, overload

from fluss.admin.admin import AdminCore, admin_of
from fluss.admin.health import ClusterReport, cluster_report
from fluss.connection.arguments import table_path_of
from fluss.connection.config_sources import (
    OpenedConfig,
    Settings,
    entered,
    opened,
    resolve,
    written,
)
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.connection.embedded_launcher import launch
from fluss.connection.shared_connections import Share, share_connection
from fluss.connection.url import FlussUrl, parse_url
from fluss.doors import at_door
from fluss.errors import (
    ClosedError,
    FlussError,
    InvalidNameError,
    InvalidSchemaError,
    TableNotFoundError,
)
from fluss.hints import Door, Hint, HintKey
from fluss.model.options.argument_types import Names
from fluss.model.options.config import Config
from fluss.model.paths import TablePath
from fluss.model.servers import ServerNode
from fluss.model.tables.database import DatabaseDescriptor, DatabaseInfo
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.scan.table_source import without_view
from fluss.session.alter_keywords import table_changes
from fluss.session.session_admin import SessionAdmin
from fluss.session.session_many import SessionMany
from fluss.session.session_tables import SessionTables, table_name_of
from fluss.session.session_writes import SessionWrites
from fluss.session.show import DATABASES_SHOWN_MAX, session_html, silent_html, within_moments
from fluss.session.table import Table
from fluss.write.table_from_frame import schema_of_frame

T = TypeVar("T")


@at_door(Door.SESSION)
def connect(
    url: str | None = None,
    *,
    config: Config | Mapping[str, Any] | None = None,
    profile: str | None = None,
    user: str | None = None,
    password: str | Callable[[], str] | None = None,
    **settings: Any,
) -> Session:
    """Open a session.

    A setting that is not given here is taken from the URL, the profile named here, the active
    session, the environment, the profile file, and the defaults, in this order;
    `fluss.config.explain()` reports the source of each.

    Args:
        url: `fluss://user@host:9123,host2:9123/database.table?tail=100`, or `embedded:./folder`
            for a server in this process's care; `embedded:` alone is temporary, and its data are
            deleted when the last session is closed.
        config: Settings, in place of a URL or beside it.
        profile: A profile of the configuration file.
        user: Who connects.
        password: With which password; a function is asked for it, for example a keyring's.
        **settings: Further settings, by the names of `Config`.

    Raises:
        ConfigError: A setting is unknown, or its value is not allowed; the hint names the nearest.
        ConnectError: No server can be reached.
        AuthenticationError: The servers did not accept the user.

    Example:
        >>> with fluss.connect("fluss://127.0.0.1:9123") as session:  # doctest: +SKIP
        ...     session.table("fluss.events").scan(tail=5).to_pandas()
    """
    parsed = None if url is None else parse_url(url)
    stop: Callable[[], None] | None = None
    if parsed is not None and parsed.embedded is not None:
        servers, stop = launch(parsed.embedded)
        settings["bootstrap_servers"] = servers
    given: dict[str, Any] = {
        **written(config),
        **{name: value for name, value in settings.items() if value is not None},
    }
    if user is not None:
        given["security_sasl_username"] = user
    if password is not None:
        given["security_sasl_password"] = password
    source: Settings = None if parsed is None or parsed.embedded is not None else url
    try:
        resolved = resolve(source, profile=profile, **given)
        share = share_connection(resolved.config)
    except BaseException:
        if stop is not None:
            stop()
        raise
    return Session(share, resolved.config, parsed, stop)


@at_door(Door.SESSION)
class Session(SessionWrites, SessionMany, SessionAdmin, SessionTables):
    """A session of one cluster; `fluss.connect` makes it. Any thread may use it.

    Sessions with the same settings share their connection. Inside `with`, a session is the active
    one: adapters without settings of their own use it.
    """

    def __init__(
        self,
        share: Share,
        config: Config,
        url: FlussUrl | None = None,
        stop: Callable[[], None] | None = None,
        *,
        is_of_adapter: bool = False,
    ) -> None:
        self._connection = share.connection
        self._config = config
        self._url = url
        self._stop = stop
        self._closed = False
        self._share = share
        self._note = OpenedConfig(config) if is_of_adapter else opened(config)
        self._entered: list[AbstractContextManager[None]] = []
        # A session that is dropped gives its share back; its tables keep the connection.
        self._finalizer = weakref.finalize(self, _drop, share, self._note)
        self._finalizer.atexit = False

    @property
    def config(self) -> Config:
        """The settings; a copy."""
        return self._config.copy()

    @property
    def database(self) -> str | None:
        """The database of its URL, to which names without a database belong; None for none."""
        return None if self._url is None else self._url.database

    # --- databases ----------------------------------------------------------------------------

    def databases(self) -> list[str]:
        """The names of all databases."""
        return sorted(self._run(self._admin.list_databases()))

    def create_database(
        self,
        name: str,
        *,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
        ignore_if_exists: bool = False,
    ) -> None:
        """Create a database.

        Raises:
            DatabaseAlreadyExistsError: There is one of this name, and that is not ignored.
        """
        descriptor = None
        if comment is not None or properties is not None:
            descriptor = DatabaseDescriptor(comment=comment, custom_properties=properties)
        self._run(self._admin.create_database(name, descriptor, ignore_if_exists=ignore_if_exists))

    def drop_database(
        self, name: str, *, ignore_if_not_exists: bool = False, cascade: bool = False
    ) -> None:
        """Drop a database; with `cascade` also the tables in it.

        Raises:
            DatabaseNotFoundError: There is none of this name, and that is not ignored.
            DatabaseNotEmptyError: It has tables, and `cascade` is not set.
        """
        self._run(
            self._admin.drop_database(
                name, ignore_if_not_exists=ignore_if_not_exists, cascade=cascade
            )
        )

    def database_info(self, name: str) -> DatabaseInfo:
        """The facts of a database: comment, properties, times.

        Raises:
            DatabaseNotFoundError: There is none of this name; the hint names the nearest.
        """
        return self._run(self._admin.get_database_info(name))

    # --- tables -------------------------------------------------------------------------------

    def tables(self, database: str | None = None) -> list[str]:
        """The names of a database's tables; of the URL's database, where none is named.

        Raises:
            DatabaseNotFoundError: There is no such database; the hint names the nearest.
        """
        named = database or (None if self._url is None else self._url.database)
        if named is None:
            raise InvalidNameError(
                "The tables of which database?", hint=Hint(HintKey.LIST_DATABASES)
            )
        return sorted(self._run(self._admin.list_tables(named)))

    def table(self, name: TablePath | str | None = None) -> Table:
        """A table, as it is now; the URL's table, where none is named.

        Args:
            name: `"database.table"`, or a table in the URL's database; with `$changelog`,
                `$binlog` or `$lake` after it, its scans give these by default.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        base, named = without_view(name) if isinstance(name, str) else (name, {})
        path = self._path(base)
        is_of_url = self._url is not None and str(path) == _url_table(self._url)
        options = dict(self._url.options) if self._url is not None and is_of_url else {}
        return Table(self._run(self._connection.table(path)), {**options, **named})

    def path_of(self, name: TablePath | str | None = None) -> TablePath:
        """The path of a name in the URL's database; without a name, the path of the URL's table."""
        return self._path(name)

    def create_table(
        self,
        name: TablePath | str | type[Any],
        schema: Any = None,
        *,
        primary_key: Names | None = None,
        partition_by: Names | None = None,
        bucket_key: Names | None = None,
        buckets: int | None = None,
        auto_increment: str | None = None,
        properties: Mapping[str, Any] | None = None,
        custom_properties: Mapping[str, Any] | None = None,
        comment: str | None = None,
        ignore_if_exists: bool = False,
    ) -> Table:
        """Create an empty table.

        Args:
            name: `"database.table"`; or a class of rows that `fluss.table` named.
            schema: Its columns, such as `{"id": "BIGINT NOT NULL", "tags": "ARRAY<STRING>"}` with
                texts, Python types, or types of Arrow or Polars; a schema of Arrow, Polars or
                Fluss; a frame whose columns it shall have; a class of rows, as a dataclass; or a
                `TableDescriptor`.
            primary_key: The columns of the primary key; none for a log table.
            partition_by: The columns that divide it into partitions.
            bucket_key: The columns that choose the bucket; the primary key's by default.
            buckets: How many buckets it has, in each partition; the cluster's default otherwise.
            auto_increment: A column that the servers count up by themselves.
            properties: Fluss's own properties, such as `table.log.ttl`.
            custom_properties: Properties of your own, which Fluss stores unchanged.
            comment: A description of the table.
            ignore_if_exists: Whether a table that exists is left as it is.

        Raises:
            TableAlreadyExistsError: There is one of this name, and that is not ignored.
            InvalidSchemaError: The description contradicts itself or Fluss's rules.
        """
        if isinstance(name, type):
            name, schema = table_name_of(name), name if schema is None else schema
        if schema is None:
            raise InvalidSchemaError(
                f"The columns of {name} are missing.",
                hint='give {"id": "BIGINT"}, a frame or a class',
            )
        path = self._path(name)
        descriptor = schema_of_frame(
            schema,
            primary_key=primary_key,
            partition_by=partition_by,
            bucket_key=bucket_key,
            buckets=buckets,
            auto_increment=auto_increment,
            properties=properties,
            custom_properties=custom_properties,
            comment=comment,
        )
        self._run(self._admin.create_table(path, descriptor, ignore_if_exists=ignore_if_exists))
        return self.table(path)

    def planned_table(self, name: TablePath | str, descriptor: TableDescriptor) -> Table:
        """A table as it would be if it were created now, for `check`; it cannot be used otherwise.

        Raises:
            DatabaseNotFoundError: There is no such database; the hint names the nearest.
        """
        path = self._path(name)
        self._run(self._admin.get_database_info(path.database_name))
        if descriptor.bucket_count is None:
            descriptor = descriptor.with_bucket_count(1)
        info = TableInfo.of(descriptor, table_path=path, table_id=0, schema_id=0)
        return Table(TableHandle(self._connection, info))

    def drop_table(self, name: TablePath | str, *, ignore_if_not_exists: bool = False) -> None:
        """Drop a table with all its rows.

        Raises:
            TableNotFoundError: There is none of this name, and that is not ignored.
        """
        path = self._path(name)
        self._run(self._admin.drop_table(path, ignore_if_not_exists=ignore_if_not_exists))

    @overload
    def alter_table(
        self,
        name: TablePath | str,
        *,
        add_columns: Any = None,
        drop_columns: Names = (),
        rename_columns: Mapping[str, str] | None = None,
        modify_columns: Any = None,
        set_properties: Mapping[str, Any] | None = None,
        reset_properties: Sequence[str] = (),
        buckets: int | None = None,
        ignore_if_not_exists: Literal[False] = False,
    ) -> Table: ...

    @overload
    def alter_table(
        self,
        name: TablePath | str,
        *,
        add_columns: Any = None,
        drop_columns: Names = (),
        rename_columns: Mapping[str, str] | None = None,
        modify_columns: Any = None,
        set_properties: Mapping[str, Any] | None = None,
        reset_properties: Sequence[str] = (),
        buckets: int | None = None,
        ignore_if_not_exists: bool,
    ) -> Table | None: ...

    def alter_table(
        self,
        name: TablePath | str,
        *,
        add_columns: Any = None,
        drop_columns: Names = (),
        rename_columns: Mapping[str, str] | None = None,
        modify_columns: Any = None,
        set_properties: Mapping[str, Any] | None = None,
        reset_properties: Sequence[str] = (),
        buckets: int | None = None,
        ignore_if_not_exists: bool = False,
    ) -> Table | None:
        """Change a table: add columns that may be NULL at its end, set or reset properties.

        No server up to Fluss 1.0 drops, renames or modifies columns; they refuse it.

        Args:
            name: `"database.table"`.
            add_columns: Names and types, such as `{"price": "DECIMAL(10, 2)"}`, an Arrow schema, or
                `Column`s.
            drop_columns: Columns to drop.
            rename_columns: `{old name: new name}`.
            modify_columns: Columns whose type changes, as in `add_columns`.
            set_properties: Properties to set.
            reset_properties: Properties to take back to their defaults.
            buckets: The bucket count of partitions that are created from now on; needs Fluss 1.0,
                and is changed alone.
            ignore_if_not_exists: Whether a table that is not there is no error.

        Returns:
            The table as it is then; None where there is none, and that is ignored.

        Raises:
            TableNotFoundError: There is none of this name, and that is not ignored.
        """
        path = self._path(name)
        changes = table_changes(
            add_columns=add_columns,
            drop_columns=drop_columns,
            rename_columns=rename_columns,
            modify_columns=modify_columns,
            set_properties=set_properties,
            reset_properties=reset_properties,
            buckets=buckets,
        )
        self._run(self._admin.alter_table(path, changes, ignore_if_not_exists=ignore_if_not_exists))
        try:
            return self.table(path)
        except TableNotFoundError:
            if ignore_if_not_exists:
                return None
            raise

    # --- the cluster --------------------------------------------------------------------------

    def servers(self) -> list[ServerNode]:
        """The servers that are alive: coordinator first, then tablet servers by id."""
        return self._run(self._admin.get_server_nodes())

    def health(self) -> ClusterReport:
        """Examine the cluster: servers, latencies, clocks, leaders, replicas. Writes nothing."""
        return self._run(cluster_report(self._admin, self._connection.cluster))

    def counters(self) -> dict[str, object]:
        """The counters of the connection: requests, bytes, batches, retries, latencies."""
        return self._connection.counters()

    # --- life ---------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    def close(self) -> None:
        """Close it, and its connection when no other session uses that. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._finalizer.detach()
        self._note.forget()
        try:
            self._share.end()
        finally:
            if self._stop is not None:
                self._stop()

    def __enter__(self) -> Self:
        active = entered(self._config)
        active.__enter__()
        self._entered.append(active)
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.pop().__exit__(None, None, None)
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        user = self._config.security_sasl_username
        as_user = f", user={user}" if self._config.security_protocol == "sasl" else ""
        return f"Session({self._config.bootstrap_servers}{as_user}{closed})"

    def _repr_html_(self) -> str:
        if self._closed:
            return silent_html(repr(self), None)
        try:
            names, tables = within_moments(self._names_shown)
        except FlussError as error:
            return silent_html(repr(self), error)
        return session_html(repr(self), tables, more=len(names) - len(tables))

    def _names_shown(self) -> tuple[list[str], dict[str, list[str]]]:
        names = self.databases()
        return names, {each: self.tables(each) for each in names[:DATABASES_SHOWN_MAX]}

    # --- shared -------------------------------------------------------------------------------

    @property
    def _admin(self) -> AdminCore:
        return admin_of(self._connection)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._check_open()
        except ClosedError:
            work.close()
            raise
        return self._connection.engine.run(work)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("The session has been closed.", hint=Hint(HintKey.OPEN_SESSION))

    def _open_connection(self) -> ClientConnection:
        self._check_open()
        return self._connection

    def _path(self, name: TablePath | str | None) -> TablePath:
        url = self._url
        if name is None:
            if url is None or url.database is None or url.table is None:
                raise InvalidNameError("Which table?", hint=Hint(HintKey.NAME_TABLE))
            return TablePath(url.database, url.table)
        if isinstance(name, str) and "." not in name and url is not None and url.database:
            return TablePath(url.database, name)
        return table_path_of(name)


def _drop(share: Share, note: OpenedConfig) -> None:
    note.is_dropped = True
    # On the engine: a finalizer runs on any thread, and whatever lock that holds.
    share.connection.engine.post_cleanup(partial(share.end, closes=False))


def _url_table(url: FlussUrl) -> str | None:
    return None if url.table is None else f"{url.database}.{url.table}"
