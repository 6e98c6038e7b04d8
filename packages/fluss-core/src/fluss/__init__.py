"""Apache Fluss for Python: the public names, and nothing else.

Here reads block and return their result, and calls that create, flush or administer are awaited;
`fluss.aio` is the dialect in which reads are awaited too. Names are loaded on first use, so
importing this package costs almost nothing; they are documented in their modules.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluss import aio as aio, errors as errors, typed as typed
    from fluss.dialects.batch_scanner import BatchScanner as BatchScanner
    from fluss.dialects.fluss_connection import (
        FlussAdmin as FlussAdmin,
        FlussConnection as FlussConnection,
        FlussTable as FlussTable,
    )
    from fluss.dialects.kv_snapshot_lease import (
        KvSnapshotLease as KvSnapshotLease,
    )
    from fluss.dialects.log_scanner import LogScanner as LogScanner
    from fluss.dialects.lookupers import (
        Lookuper as Lookuper,
        PrefixLookuper as PrefixLookuper,
        TableLookup as TableLookup,
        TablePrefixLookup as TablePrefixLookup,
    )
    from fluss.dialects.scan_records import (
        RecordBatch as RecordBatch,
        ScanBatch as ScanBatch,
        ScanRecord as ScanRecord,
        ScanRecords as ScanRecords,
    )
    from fluss.dialects.table_scan import TableScan as TableScan
    from fluss.dialects.writers import (
        AppendWriter as AppendWriter,
        TableAppend as TableAppend,
        TableUpsert as TableUpsert,
        UpsertWriter as UpsertWriter,
    )
    from fluss.error_codes import ErrorCode as ErrorCode
    from fluss.errors import FlussError as FlussError
    from fluss.model.change_type import ChangeType as ChangeType
    from fluss.model.cluster.acls import (
        AclBinding as AclBinding,
        AclBindingFilter as AclBindingFilter,
        FlussPrincipal as FlussPrincipal,
        OperationType as OperationType,
        PermissionType as PermissionType,
        Resource as Resource,
        ResourceType as ResourceType,
    )
    from fluss.model.cluster.configs import (
        AlterConfig as AlterConfig,
        AlterConfigOpType as AlterConfigOpType,
        ConfigEntry as ConfigEntry,
    )
    from fluss.model.cluster.rebalance import (
        GoalType as GoalType,
        RebalanceProgress as RebalanceProgress,
        RebalanceResultForBucket as RebalanceResultForBucket,
        RebalanceStatus as RebalanceStatus,
        ServerTag as ServerTag,
    )
    from fluss.model.cluster.replica_health import (
        ClusterHealth as ClusterHealth,
        ClusterHealthStatus as ClusterHealthStatus,
    )
    from fluss.model.offsets import (
        EARLIEST_OFFSET as EARLIEST_OFFSET,
        LATEST_OFFSET as LATEST_OFFSET,
        OffsetSpec as OffsetSpec,
        OffsetType as OffsetType,
    )
    from fluss.model.options.config import Config as Config
    from fluss.model.paths import TableBucket as TableBucket, TablePath as TablePath
    from fluss.model.predicates.predicate import (
        ColumnRef as ColumnRef,
        Predicate as Predicate,
        col as col,
    )
    from fluss.model.producer_offsets import (
        ProducerOffsetsResult as ProducerOffsetsResult,
        RegisterResult as RegisterResult,
    )
    from fluss.model.schema.aggregation import AggFunction as AggFunction
    from fluss.model.schema.column import Column as Column
    from fluss.model.schema.schema import Schema as Schema
    from fluss.model.servers import (
        LakeSnapshot as LakeSnapshot,
        ServerNode as ServerNode,
        ServerType as ServerType,
    )
    from fluss.model.tables.changes import (
        DatabaseChange as DatabaseChange,
        TableChange as TableChange,
    )
    from fluss.model.tables.database import (
        DatabaseDescriptor as DatabaseDescriptor,
        DatabaseInfo as DatabaseInfo,
        DatabaseSummary as DatabaseSummary,
    )
    from fluss.model.tables.descriptor import TableDescriptor as TableDescriptor
    from fluss.model.tables.partitions import (
        PartitionInfo as PartitionInfo,
        PartitionSpec as PartitionSpec,
    )
    from fluss.model.tables.snapshots import (
        ActiveKvSnapshots as ActiveKvSnapshots,
        KvSnapshotMetadata as KvSnapshotMetadata,
        KvSnapshots as KvSnapshots,
        RemoteLogManifestInfo as RemoteLogManifestInfo,
        SchemaInfo as SchemaInfo,
        TableStats as TableStats,
    )
    from fluss.model.tables.table_info import TableInfo as TableInfo
    from fluss.model.tables.table_options import KvFormat as KvFormat, LogFormat as LogFormat
    from fluss.model.types.data_type import DataField as DataField, DataType as DataType
    from fluss.model.types.factory import DataTypes as DataTypes
    from fluss.session import Session as Session, config as config, connect as connect
    from fluss.typed.markers import (
        AutoIncrement as AutoIncrement,
        BucketKey as BucketKey,
        ColumnName as ColumnName,
        Comment as Comment,
        Key as Key,
        NotStored as NotStored,
        Partition as Partition,
        table as table,
    )
    from fluss.write.write_result import WriteResultHandle as WriteResultHandle

__version__ = "0.1.0"

_HOMES = {
    "dialects.batch_scanner": ("BatchScanner",),
    "dialects.fluss_connection": ("FlussAdmin", "FlussConnection", "FlussTable"),
    "dialects.log_scanner": ("LogScanner",),
    "dialects.lookupers": ("Lookuper", "PrefixLookuper", "TableLookup", "TablePrefixLookup"),
    "dialects.scan_records": ("RecordBatch", "ScanBatch", "ScanRecord", "ScanRecords"),
    "dialects.table_scan": ("TableScan",),
    "write.write_result": ("WriteResultHandle",),
    "dialects.writers": (
        "AppendWriter",
        "TableAppend",
        "TableUpsert",
        "UpsertWriter",
    ),
    "error_codes": ("ErrorCode",),
    "errors": ("FlussError",),
    "model.schema.aggregation": ("AggFunction",),
    "model.change_type": ("ChangeType",),
    "model.servers": ("LakeSnapshot", "ServerNode", "ServerType"),
    "model.schema.column": ("Column",),
    "model.options.config": ("Config",),
    "model.types.factory": ("DataTypes",),
    "model.tables.database": ("DatabaseDescriptor", "DatabaseInfo", "DatabaseSummary"),
    "model.offsets": ("EARLIEST_OFFSET", "LATEST_OFFSET", "OffsetSpec", "OffsetType"),
    "model.tables.partitions": ("PartitionInfo", "PartitionSpec"),
    "model.paths": ("TableBucket", "TablePath"),
    "model.predicates.predicate": ("ColumnRef", "Predicate", "col"),
    "model.schema.schema": ("Schema",),
    "model.tables.descriptor": ("TableDescriptor",),
    "model.tables.table_info": ("TableInfo",),
    "model.tables.table_options": ("KvFormat", "LogFormat"),
    "model.types.data_type": ("DataField", "DataType"),
    "dialects.kv_snapshot_lease": ("KvSnapshotLease",),
    "model.cluster.acls": (
        "AclBinding",
        "AclBindingFilter",
        "FlussPrincipal",
        "OperationType",
        "PermissionType",
        "Resource",
        "ResourceType",
    ),
    "model.cluster.configs": ("AlterConfig", "AlterConfigOpType", "ConfigEntry"),
    "model.cluster.replica_health": ("ClusterHealth", "ClusterHealthStatus"),
    "model.cluster.rebalance": (
        "GoalType",
        "RebalanceProgress",
        "RebalanceResultForBucket",
        "RebalanceStatus",
        "ServerTag",
    ),
    "model.producer_offsets": ("ProducerOffsetsResult", "RegisterResult"),
    "model.tables.changes": ("DatabaseChange", "TableChange"),
    "model.tables.snapshots": (
        "ActiveKvSnapshots",
        "KvSnapshotMetadata",
        "KvSnapshots",
        "RemoteLogManifestInfo",
        "SchemaInfo",
        "TableStats",
    ),
    "session": ("Session", "config", "connect"),
    "typed.markers": (
        "AutoIncrement",
        "BucketKey",
        "ColumnName",
        "Comment",
        "Key",
        "NotStored",
        "Partition",
        "table",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_HOME_OF |= {"aio": "aio", "errors": "errors", "typed": "typed"}

__all__ = sorted([*_HOME_OF, "__version__"])  # noqa: PLE0605 - one list is enough


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'fluss' has no attribute {name!r}{_meant(name)}")
    module = importlib.import_module(f"fluss.{home}")
    found = module if name == home else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)


def _meant(name: str) -> str:
    if name.startswith("_"):
        return ""
    from fluss.model.did_you_mean import did_you_mean

    hint = did_you_mean(name, _HOME_OF)
    return "" if hint is None else f"; {hint}"


def _refuse_mixed_installation() -> None:
    # Both distributions install a package of this name into one folder: the second overwrites the
    # `__init__` of the first, and removing one breaks the other.
    try:
        beside = os.listdir(os.path.dirname(__file__))  # noqa: PTH120, PTH208 - pathlib would cost more than all the rest
    except OSError:
        return  # in a zip file, as Spark ships it to workers
    if any(each.startswith("_fluss.") for each in beside):
        raise ImportError(
            "pyfluss and fluss-core are installed in the same place, and both are imported as "
            "'fluss'. Programs written for pyfluss run with `import fluss.aio as fluss`. Keep one:\n"
            "  pip uninstall pyfluss fluss-core, then install it again",
            name="fluss",
        )


_refuse_mixed_installation()
