"""The rights that each request needs, as of Fluss 1.0: operations and resources.

Lists are filtered by their handlers, and FETCH_LOG refuses table by table; those need nothing here,
nor does what a client asks before it is known. A table id that does not exist needs nothing: its
handler refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from fluss.model.cluster.acls import CLUSTER_NAME, OperationType, Resource, ResourceType
from fluss.wire.api import ApiKey
from fluss_server.catalog.catalog import Catalog

Need: TypeAlias = tuple[OperationType, Resource]
Rights: TypeAlias = Callable[[Catalog, Any], Iterable[Need]]

CLUSTER: Final = Resource.stored(ResourceType.CLUSTER, CLUSTER_NAME)


def database(name: str) -> Resource:
    """A database, whatever its name is."""
    return Resource.stored(ResourceType.DATABASE, name)


def table(path: Any) -> Resource:
    """A table, by a message or a `TablePath` that names it."""
    return Resource.stored(ResourceType.TABLE, f"{path.database_name}.{path.table_name}")


def table_by_id(catalog: Catalog, table_id: int) -> Resource | None:
    """The table with this id; None where it does not exist."""
    found = catalog.find_table_by_id(table_id)
    return None if found is None else table(found.path)


def _of_cluster(operation: OperationType) -> Rights:
    return lambda _, __: [(operation, CLUSTER)]


def _of_database(operation: OperationType) -> Rights:
    return lambda _, request: [(operation, database(request.database_name))]


def _of_table(operation: OperationType) -> Rights:
    return lambda _, request: [(operation, table(request.table_path))]


def _of_ids(operation: OperationType, ids: Callable[[Any], Iterable[int]]) -> Rights:
    def needs(catalog: Catalog, request: Any) -> Iterable[Need]:
        found = (table_by_id(catalog, each) for each in ids(request))
        return [(operation, each) for each in found if each is not None]

    return needs


def _of_id(operation: OperationType) -> Rights:
    return _of_ids(operation, lambda request: [request.table_id])


def _new_table(_: Catalog, request: Any) -> Iterable[Need]:
    return [(OperationType.CREATE, database(request.table_path.database_name))]


def _scan_ids(request: Any) -> Iterable[int]:
    is_opened = request.HasField("bucket_scan_req")
    return [request.bucket_scan_req.table_id] if is_opened else []


def _producer_ids(request: Any) -> Iterable[int]:
    return [each.table_id for each in request.table_offsets]


def _leased_ids(request: Any) -> Iterable[int]:
    return [each.table_id for each in request.snapshots_to_lease]


def _released_ids(request: Any) -> Iterable[int]:
    return [each.table_id for each in request.buckets_to_release]


def _prepared_ids(request: Any) -> Iterable[int]:
    return [each.table_id for each in request.bucket_offsets]


def _tiered_ids(request: Any) -> Iterable[int]:
    told = (*request.tables_req, *request.lake_table_snapshot_metadata)
    return [each.table_id for each in told]


_READ, _WRITE = OperationType.READ, OperationType.WRITE
_DESCRIBE, _ALTER = OperationType.DESCRIBE, OperationType.ALTER

RIGHTS: Final[Mapping[int, Rights]] = MappingProxyType(
    {
        ApiKey.CREATE_DATABASE: _of_cluster(OperationType.CREATE),
        ApiKey.ALTER_DATABASE: _of_database(_ALTER),
        ApiKey.DROP_DATABASE: _of_database(OperationType.DROP),
        ApiKey.GET_DATABASE_INFO: _of_database(_DESCRIBE),
        ApiKey.CREATE_TABLE: _new_table,
        ApiKey.ALTER_TABLE: _of_table(_ALTER),
        ApiKey.DROP_TABLE: _of_table(OperationType.DROP),
        ApiKey.GET_TABLE_INFO: _of_table(_DESCRIBE),
        ApiKey.GET_TABLE_SCHEMA: _of_table(_DESCRIBE),
        ApiKey.LIST_PARTITION_INFOS: _of_table(_DESCRIBE),
        ApiKey.CREATE_PARTITION: _of_table(_WRITE),
        ApiKey.DROP_PARTITION: _of_table(_WRITE),
        ApiKey.PRODUCE_LOG: _of_id(_WRITE),
        ApiKey.PUT_KV: _of_id(_WRITE),
        ApiKey.LOOKUP: _of_id(_READ),
        ApiKey.PREFIX_LOOKUP: _of_id(_READ),
        ApiKey.LIMIT_SCAN: _of_id(_READ),
        ApiKey.SCAN_KV: _of_ids(_READ, _scan_ids),
        ApiKey.LIST_OFFSETS: _of_id(_DESCRIBE),
        ApiKey.GET_TABLE_STATS: _of_id(_DESCRIBE),
        ApiKey.GET_LATEST_KV_SNAPSHOTS: _of_table(_DESCRIBE),
        ApiKey.GET_KV_SNAPSHOT_METADATA: _of_id(_DESCRIBE),
        ApiKey.LIST_KV_SNAPSHOTS: _of_id(_DESCRIBE),
        ApiKey.LIST_REMOTE_LOG_MANIFESTS: _of_id(_DESCRIBE),
        ApiKey.ACQUIRE_KV_SNAPSHOT_LEASE: _of_ids(_READ, _leased_ids),
        ApiKey.RELEASE_KV_SNAPSHOT_LEASE: _of_ids(_READ, _released_ids),
        ApiKey.GET_LAKE_SNAPSHOT: _of_table(_DESCRIBE),
        # Fluss 1.0 wants nothing for these; a commit lets rows be deleted from the log.
        ApiKey.PREPARE_LAKE_TABLE_SNAPSHOT: _of_ids(_WRITE, _prepared_ids),
        ApiKey.COMMIT_LAKE_TABLE_SNAPSHOT: _of_ids(_WRITE, _tiered_ids),
        ApiKey.REGISTER_PRODUCER_OFFSETS: _of_ids(_WRITE, _producer_ids),
        ApiKey.DESCRIBE_CLUSTER_CONFIGS: _of_cluster(_DESCRIBE),
        ApiKey.ALTER_CLUSTER_CONFIGS: _of_cluster(_ALTER),
        ApiKey.ADD_SERVER_TAG: _of_cluster(_ALTER),
        ApiKey.REMOVE_SERVER_TAG: _of_cluster(_ALTER),
        ApiKey.ADD_SERVER_TAG_BY_RACK: _of_cluster(_ALTER),
        ApiKey.REMOVE_SERVER_TAG_BY_RACK: _of_cluster(_ALTER),
        ApiKey.REBALANCE: _of_cluster(_WRITE),
        ApiKey.LIST_REBALANCE_PROGRESS: _of_cluster(_DESCRIBE),
        ApiKey.CANCEL_REBALANCE: _of_cluster(_WRITE),
        ApiKey.GET_CLUSTER_HEALTH: _of_cluster(_DESCRIBE),
    }
)

# What needs nothing here, with the reason.
OPEN: Final[Mapping[int, str]] = MappingProxyType(
    {
        ApiKey.API_VERSIONS: "a client asks before it logs in",
        ApiKey.AUTHENTICATE: "it is the login",
        ApiKey.LIST_DATABASES: "the handler leaves out what the user may not describe",
        ApiKey.LIST_TABLES: "the handler leaves out what the user may not describe",
        ApiKey.DATABASE_EXISTS: "the handler says no where the user may not describe it",
        ApiKey.TABLE_EXISTS: "the handler says no where the user may not describe it",
        ApiKey.GET_METADATA: "the handler leaves out what the user may not describe",
        ApiKey.FETCH_LOG: "the handler refuses table by table",
        ApiKey.INIT_WRITER: "the handler wants one table that the user may write",
        ApiKey.LIST_ACLS: "the handler leaves out what the user may not describe",
        ApiKey.CREATE_ACLS: "the handler refuses entry by entry",
        ApiKey.DROP_ACLS: "the handler refuses entry by entry",
        ApiKey.GET_PRODUCER_OFFSETS: "the handler looks at the tables of what is stored",
        ApiKey.DELETE_PRODUCER_OFFSETS: "the handler looks at the tables of what is stored",
        ApiKey.GET_FILESYSTEM_SECURITY_TOKEN: "the token is empty",
        ApiKey.DROP_KV_SNAPSHOT_LEASE: "the handler looks at the tables of the lease",
        ApiKey.LAKE_TIERING_HEARTBEAT: "as in Fluss; what a worker commits needs rights",
    }
)
