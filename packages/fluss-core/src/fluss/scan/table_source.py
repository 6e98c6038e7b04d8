"""Parses a table as users of engines name it, and the options of its scan, for all adapters.

    "sales.orders"                            a table
    "sales.orders$changelog"                  its changes; $binlog: its rows before and after each
    "sales.orders$lake"                       what its lake has of it, and nothing newer
    "fluss://host:9123/sales.orders?tail=9"   a table of a cluster, and options of scans
    session.table("sales.orders")             a `Table`; TablePath("sales", "orders")

Everything that can be refused without asking a server is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack, runtime_checkable

from fluss.connection.arguments import table_path_of
from fluss.connection.config_sources import Settings, completed, resolve, written
from fluss.connection.connection import TableHandle
from fluss.connection.shared_connections import connection_for
from fluss.connection.url import hidden, parse_url
from fluss.errors import InvalidNameError, InvalidValueError, UnsupportedOperationError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.config import Config
from fluss.model.options.scan_arguments import ScanArguments
from fluss.model.options.scan_options import ScanOptions, scan_options, with_options
from fluss.model.paths import TablePath
from fluss.net.cancellation import Cancellation

if TYPE_CHECKING:
    from fluss.model.tables.table_info import TableInfo
    from fluss.scan.scan import Scan

_URL = re.compile(r"\s*[\w+.-]*://")
_ENDLESS = ("follow", "streaming", "unbounded")
_VIEW: Final = re.compile(r"\$(\w*)(?=\?|$)")
# The options of a scan that the end of a name stands for.
_VIEWS: Final[Mapping[str, Mapping[str, str]]] = {
    "changelog": {"mode": "changelog"},
    "binlog": {"mode": "binlog"},
    "lake": {"lake": "only"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """A table, how to reach it, and the options of its scan. Small and picklable.

    A pickle holds no password; where it is opened again, the environment or the profile gives it.

    Attributes:
        path: The table.
        config: How to reach its cluster.
        options: The options of the scan, checked.
    """

    path: TablePath
    config: Config = field(repr=False)
    options: ScanOptions = field(default_factory=ScanOptions)

    def scan(self, *, cancellation: Cancellation | None = None) -> Scan:
        """The scan of the table as it is now, over a connection that is shared.

        Args:
            cancellation: Ends the wait for the servers from another thread.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.
        """
        from fluss.scan.scan import Scan

        connection = connection_for(completed(self.config))
        asked = connection.table(self.path)
        return Scan(connection.engine.run(asked, cancellation=cancellation), self.options)

    def scan_as_known(self, table: TableInfo) -> Scan:
        """The scan of the table as it was once; asks nothing of a server that is connected.

        Only `splits_unless_changed` may plan it, or a scan that was narrowed from it.

        Args:
            table: The table as it was.
        """
        from fluss.scan.scan import Scan

        connection = connection_for(completed(self.config))
        return Scan(TableHandle(connection, table), self.options)

    def with_options(self, **options: Unpack[ScanArguments]) -> TableSource:
        """The same table with these options of its scan changed; None sets one back."""
        return replace(self, options=with_options(self.options, options))


@runtime_checkable
class HasSource(Protocol):
    """Something that stands for a table, such as a `Table` of a session."""

    def to_source(self) -> TableSource:
        """The table, how to reach it, and the options of its scans."""


TableName = HasSource | TableSource | TablePath | str


def source_of(
    table: TableName, options: Mapping[str, Any] | None = None, *, config: Settings = None
) -> TableSource:
    """Parse the table that a user of an engine names; asks no server.

    Args:
        table: `"database.table"`, a URL with a table in it, or a `Table`.
        options: The options of the scan; they override those of a URL or of a `Table`.
        config: How to reach the cluster; overrides a URL.

    Raises:
        InvalidNameError: It names no table.
        ConfigError: There is no option of a name; the hint names the nearest.
        InvalidValueError: A value is not one its option takes, or two contradict each other.
        UnsupportedOperationError: The scan would have no end.
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    _refuse_endless(given)
    if isinstance(table, HasSource):
        table = table.to_source()
    if isinstance(table, TableSource):
        settings = table.config if config is None else resolve(config).config
        return replace(table, config=settings, options=with_options(table.options, given))
    text, named = without_view(table) if isinstance(table, str) else (table, {})
    for option, value in named.items():
        _refuse_other(option, value, given.setdefault(option, value))
    if isinstance(text, str) and _URL.match(text):
        text = text.strip()
        url = parse_url(text)
        if url.database is None or url.table is None:
            raise InvalidNameError(
                f"The URL {hidden(text)!r} names no table.",
                hint="write fluss://host:9123/database.table",
            )
        return TableSource(
            path=TablePath(url.database, url.table),
            config=resolve(text, **written(config)).config,
            options=scan_options({**url.options, **given}),
        )
    return TableSource(
        path=table_path_of(text), config=resolve(config).config, options=scan_options(given)
    )


def _refuse_endless(given: Mapping[str, Any]) -> None:
    named = next((name for name in _ENDLESS if given.get(name)), None)
    if named is not None:
        raise endless(f"{named}=")


def endless(what: str) -> UnsupportedOperationError:
    """The error for a scan without an end where one with an end is needed."""
    return UnsupportedOperationError(
        f"{what} asks for a scan without an end, and that cannot be collected.",
        hint="without it the scan ends where the table does now; or iterate "
        "session.table(...).follow() and make a frame of each batch",
    )


def _refuse_other(option: str, named: str, given: Any) -> None:
    if given != named:
        view = next(view for view, options in _VIEWS.items() if options == {option: named})
        raise InvalidValueError(
            f"The name ends in ${view}, and {option}={str(given)!r} contradicts it.",
            hint="leave one of them out",
            option=option,
        )


def without_view(name: str) -> tuple[str, Mapping[str, str]]:
    """Split the name of a view into the name of its table and the options of its scan.

    Raises:
        InvalidNameError: There is no such view; the hint names the nearest.
    """
    found = _VIEW.search(name)
    if found is None:
        return name, {}
    options = _VIEWS.get(found.group(1).lower())
    if options is None:
        known = [f"${each}" for each in _VIEWS]
        raise InvalidNameError(
            f"A table has no {found.group()!r}.",
            hint=did_you_mean(found.group(), known) or f"there are {', '.join(known)}",
        )
    return name[: found.start()] + name[found.end() :], options
