"""What a session administers beside databases and tables: access, servers, settings, snapshots.

The methods are those of `FlussAdmin`, under the same names; here they block the calling thread. A
table may be named as in all of a session's methods: in the database of its URL, too.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, Final, Literal, ParamSpec, Self, TypeVar

from fluss.admin.admin import AdminCore
from fluss.admin.snapshot_admin import KvSnapshotLeaseCore
from fluss.doors import at_door
from fluss.hints import Door
from fluss.model.paths import TableBucket, TablePath
from fluss.model.tables.changes import DatabaseChange

P = ParamSpec("P")
T = TypeVar("T")

_UNCHANGED: Final = object()


def _blocking(
    method: Callable[Concatenate[AdminCore, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SessionAdmin, P], T]:
    """Make the method that runs a method of the core, and waits for it."""

    def run(self: SessionAdmin, /, *args: P.args, **named: P.kwargs) -> T:
        return self._run(method(self._admin, *args, **named))

    _name_like(method, run)
    return run


def _blocking_for_table(
    method: Callable[Concatenate[AdminCore, TablePath | str, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SessionAdmin, TablePath | str, P], T]:
    """The same for a method whose first argument is a table, in the database of the URL, too."""

    def run(
        self: SessionAdmin, table_path: TablePath | str, /, *args: P.args, **named: P.kwargs
    ) -> T:
        return self._run(method(self._admin, self.path_of(table_path), *args, **named))

    _name_like(method, run)
    return run


def _name_like(method: Any, run: Any) -> None:
    wraps(method, assigned=("__name__", "__doc__"))(run)
    run.__qualname__ = f"Session.{method.__name__}"
    run.__signature__ = inspect.signature(method)


@at_door(Door.SESSION)
class KvSnapshotLeaseOfSession:
    """Keeps KV snapshots from being deleted; `Session.create_kv_snapshot_lease` makes it.

    Inside `with`, it is dropped at the end.
    """

    def __init__(
        self, run: Callable[[Coroutine[Any, Any, Any]], Any], core: KvSnapshotLeaseCore
    ) -> None:
        self._run = run
        self._core = core

    @property
    def lease_id(self) -> str:
        """Its name."""
        return self._core.lease_id

    @property
    def lease_duration_ms(self) -> int:
        """How long the snapshots are kept after the last `acquire_snapshots` or `renew`."""
        return self._core.lease_duration_ms

    def acquire_snapshots(self, snapshots: Mapping[TableBucket, int]) -> set[TableBucket]:
        """Keep snapshots: `{bucket: snapshot id}`; returns the buckets whose snapshot is missing.

        Servers of 0.9.1 report a missing snapshot as kept.
        """
        missing: set[TableBucket] = self._run(self._core.acquire_snapshots(snapshots))
        return missing

    def renew(self) -> None:
        """Keep what the lease keeps for another `lease_duration_ms`."""
        self._run(self._core.renew())

    def release_snapshots(self, buckets: Iterable[TableBucket]) -> None:
        """Keep the snapshots of these buckets no longer."""
        self._run(self._core.release_snapshots(buckets))

    def drop_lease(self) -> None:
        """End the lease; one that has ended is no error."""
        self._run(self._core.drop_lease())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> Literal[False]:
        self.drop_lease()
        return False

    def __repr__(self) -> str:
        return f"KvSnapshotLease({self.lease_id!r}, lease_duration_ms={self.lease_duration_ms})"


@at_door(Door.SESSION)
class SessionAdmin(ABC):
    """The administering methods of a `Session`."""

    @property
    @abstractmethod
    def _admin(self) -> AdminCore: ...

    @abstractmethod
    def _run(self, work: Coroutine[Any, Any, T]) -> T: ...

    @abstractmethod
    def path_of(self, name: TablePath | str | None = None) -> TablePath: ...

    def alter_database(
        self,
        name: str,
        *,
        set_properties: Mapping[str, str] | None = None,
        reset_properties: Sequence[str] = (),
        comment: Any = _UNCHANGED,
        ignore_if_not_exists: bool = False,
    ) -> None:
        """Change the properties or the comment of a database; needs Fluss 1.0.

        Args:
            name: The database.
            set_properties: Properties to set.
            reset_properties: Properties to remove.
            comment: Another comment; None removes it.
            ignore_if_not_exists: Whether a database that is not there is no error.

        Raises:
            DatabaseNotFoundError: There is none of this name, and that is not ignored.
            UnsupportedVersionError: The coordinator is older.
        """
        changes: list[DatabaseChange] = [
            *(DatabaseChange.set(key, value) for key, value in (set_properties or {}).items()),
            *map(DatabaseChange.reset, reset_properties),
        ]
        if comment is not _UNCHANGED:
            changes.append(DatabaseChange.update_comment(comment))
        self._run(
            self._admin.alter_database(name, changes, ignore_if_not_exists=ignore_if_not_exists)
        )

    list_database_summaries = _blocking(AdminCore.list_database_summaries)
    database_exists = _blocking(AdminCore.database_exists)
    table_exists = _blocking_for_table(AdminCore.table_exists)
    get_table_schema = _blocking_for_table(AdminCore.get_table_schema)
    get_table_stats = _blocking_for_table(AdminCore.get_table_stats)

    get_latest_lake_snapshot = _blocking_for_table(AdminCore.get_latest_lake_snapshot)
    get_lake_snapshot = _blocking_for_table(AdminCore.get_lake_snapshot)
    get_readable_lake_snapshot = _blocking_for_table(AdminCore.get_readable_lake_snapshot)
    get_latest_kv_snapshots = _blocking_for_table(AdminCore.get_latest_kv_snapshots)
    get_kv_snapshot_metadata = _blocking(AdminCore.get_kv_snapshot_metadata)
    list_kv_snapshots = _blocking(AdminCore.list_kv_snapshots)
    list_remote_log_manifests = _blocking(AdminCore.list_remote_log_manifests)

    def create_kv_snapshot_lease(
        self, lease_id: str, lease_duration_ms: int
    ) -> KvSnapshotLeaseOfSession:
        """A lease, which keeps KV snapshots from being deleted. No server is asked yet.

        Args:
            lease_id: Its name.
            lease_duration_ms: How long snapshots are kept after the last `acquire_snapshots` or
                `renew`.
        """
        core = self._admin.create_kv_snapshot_lease(lease_id, lease_duration_ms)
        return KvSnapshotLeaseOfSession(self._run, core)

    register_producer_offsets = _blocking(AdminCore.register_producer_offsets)
    get_producer_offsets = _blocking(AdminCore.get_producer_offsets)
    delete_producer_offsets = _blocking(AdminCore.delete_producer_offsets)

    list_acls = _blocking(AdminCore.list_acls)
    create_acls = _blocking(AdminCore.create_acls)
    drop_acls = _blocking(AdminCore.drop_acls)

    describe_cluster_configs = _blocking(AdminCore.describe_cluster_configs)
    alter_cluster_configs = _blocking(AdminCore.alter_cluster_configs)
    add_server_tag = _blocking(AdminCore.add_server_tag)
    remove_server_tag = _blocking(AdminCore.remove_server_tag)
    add_server_tag_by_rack = _blocking(AdminCore.add_server_tag_by_rack)
    remove_server_tag_by_rack = _blocking(AdminCore.remove_server_tag_by_rack)
    rebalance = _blocking(AdminCore.rebalance)
    list_rebalance_progress = _blocking(AdminCore.list_rebalance_progress)
    cancel_rebalance = _blocking(AdminCore.cancel_rebalance)
    get_cluster_health = _blocking(AdminCore.get_cluster_health)
