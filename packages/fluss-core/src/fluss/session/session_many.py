"""The methods of a session for many tables at a time: one writer, and one reader."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from fluss.connection.connection import ClientConnection
from fluss.doors import at_door
from fluss.hints import Door
from fluss.model.options.scan_arguments import FollowArguments
from fluss.model.options.scan_options import FOLLOW_OPTIONS
from fluss.model.options.signatures import shows_options
from fluss.model.paths import TablePath
from fluss.session.follow_many import FollowMany, Places
from fluss.session.write_many import TableLike, WriteMany


@at_door(Door.SESSION)
class SessionMany(ABC):
    """The methods of a `Session` for many tables."""

    @abstractmethod
    def path_of(self, name: TablePath | str | None = None) -> TablePath: ...

    @abstractmethod
    def _open_connection(self) -> ClientConnection: ...

    def write_many(self, tables: Iterable[TableLike] | None = None) -> WriteMany:
        """Open one writer for many tables, with one flush: for routers and sinks of changes.

        Args:
            tables: The tables it writes to: names, tables, or classes that name theirs. It refuses
                others until they are added. None for every table, opened when it is first named.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.

        Example:
            >>> with session.write_many(["shop.orders", "shop.clicks"]) as writer:  # doctest: +SKIP
            ...     writer.upsert("shop.orders", {"id": 7, "price": 9.5})
            ...     writer.append("shop.clicks", {"url": "/"})
        """
        return WriteMany(self._open_connection(), tables, self.path_of)

    @shows_options(FOLLOW_OPTIONS)
    def follow_many(
        self,
        tables: Iterable[TableLike] | Mapping[TableLike, Mapping[str, Any]],
        *,
        start: Places = "latest",
        **options: Unpack[FollowArguments],
    ) -> FollowMany:
        """Follow the logs of many tables by one reader, with one poll and one cursor.

        Of primary-key tables it gives the changes, with `_change_type`.

        Args:
            tables: The tables: names, tables, or classes of rows, whose columns are read then. Or a
                dict of them, with the options of each.
            start: Where to begin; by default at the ends of the logs. A place for all tables, a
                dict of places by table, or the cursor of such a reader: it reads tables that are
                not in the cursor from their beginning.
            **options: The options of the scans of all tables.

        Raises:
            TableNotFoundError: There is no such table; the hint names the nearest.

        Example:
            >>> for table, batch in session.follow_many(["db.a", "db.b"]):  # doctest: +SKIP
            ...     print(table, batch.num_rows)
        """
        given: dict[str, Any] = dict(options)
        return FollowMany(self._open_connection(), tables, self.path_of, start, given)
