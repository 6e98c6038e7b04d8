"""The awaited dialect, which is that of pyfluss 1.x: `import fluss.aio as fluss`.

Calls that wait are awaited, reads included; `get_admin` is plain. Connections and writers work with
`async with`, scanners with `async for`. A call that is awaited has started when it returns, needs a
running event loop (asyncio or trio), and continues if its result is not awaited. Only the classes
that differ are listed here; the others are those of `fluss`. Names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import fluss
from fluss import __version__ as __version__

if TYPE_CHECKING:
    from fluss import (
        EARLIEST_OFFSET as EARLIEST_OFFSET,
        LATEST_OFFSET as LATEST_OFFSET,
        AclBinding as AclBinding,
        AclBindingFilter as AclBindingFilter,
        ActiveKvSnapshots as ActiveKvSnapshots,
        AlterConfig as AlterConfig,
        AlterConfigOpType as AlterConfigOpType,
        AppendWriter as AppendWriter,
        ChangeType as ChangeType,
        ClusterHealth as ClusterHealth,
        ClusterHealthStatus as ClusterHealthStatus,
        ColumnRef as ColumnRef,
        Config as Config,
        ConfigEntry as ConfigEntry,
        DatabaseChange as DatabaseChange,
        DatabaseDescriptor as DatabaseDescriptor,
        DatabaseInfo as DatabaseInfo,
        DatabaseSummary as DatabaseSummary,
        DataField as DataField,
        DataTypes as DataTypes,
        ErrorCode as ErrorCode,
        FlussAdmin as FlussAdmin,
        FlussError as FlussError,
        FlussPrincipal as FlussPrincipal,
        GoalType as GoalType,
        KvFormat as KvFormat,
        KvSnapshotLease as KvSnapshotLease,
        KvSnapshotMetadata as KvSnapshotMetadata,
        KvSnapshots as KvSnapshots,
        LakeSnapshot as LakeSnapshot,
        LogFormat as LogFormat,
        Lookuper as Lookuper,
        OffsetSpec as OffsetSpec,
        OffsetType as OffsetType,
        OperationType as OperationType,
        PartitionInfo as PartitionInfo,
        PartitionSpec as PartitionSpec,
        PermissionType as PermissionType,
        Predicate as Predicate,
        PrefixLookuper as PrefixLookuper,
        ProducerOffsetsResult as ProducerOffsetsResult,
        RebalanceProgress as RebalanceProgress,
        RebalanceResultForBucket as RebalanceResultForBucket,
        RebalanceStatus as RebalanceStatus,
        RecordBatch as RecordBatch,
        RegisterResult as RegisterResult,
        RemoteLogManifestInfo as RemoteLogManifestInfo,
        Resource as Resource,
        ResourceType as ResourceType,
        ScanRecord as ScanRecord,
        ScanRecords as ScanRecords,
        Schema as Schema,
        SchemaInfo as SchemaInfo,
        ServerNode as ServerNode,
        ServerTag as ServerTag,
        TableAppend as TableAppend,
        TableBucket as TableBucket,
        TableChange as TableChange,
        TableDescriptor as TableDescriptor,
        TableInfo as TableInfo,
        TableLookup as TableLookup,
        TablePath as TablePath,
        TablePrefixLookup as TablePrefixLookup,
        TableStats as TableStats,
        TableUpsert as TableUpsert,
        UpsertWriter as UpsertWriter,
        WriteResultHandle as WriteResultHandle,
        col as col,
    )
    from fluss.dialects.awaited import (
        BatchScanner as BatchScanner,
        FlussConnection as FlussConnection,
        FlussTable as FlussTable,
        LogScanner as LogScanner,
        TableScan as TableScan,
    )
    from fluss.dialects.multi_table import (
        MultiTable as MultiTable,
        MultiTableLogScanner as MultiTableLogScanner,
        MultiTableRecord as MultiTableRecord,
        MultiTableRecords as MultiTableRecords,
        MultiTableScan as MultiTableScan,
        MultiTableWrite as MultiTableWrite,
        MultiTableWriter as MultiTableWriter,
        MultiTableWriteRecord as MultiTableWriteRecord,
    )

_OWN = frozenset({"BatchScanner", "FlussConnection", "FlussTable", "LogScanner", "TableScan"})
# Names of Java's client 1.0.0, which pyfluss does not have.
_OF_MANY_TABLES = frozenset(
    {"MultiTable", "MultiTableLogScanner", "MultiTableRecord", "MultiTableRecords"}
    | {"MultiTableScan", "MultiTableWrite", "MultiTableWriter", "MultiTableWriteRecord"}
)
# Names of `fluss` that pyfluss does not have.
_NOT_HERE = frozenset(
    {"AggFunction", "Column", "DataType", "ScanBatch", "ServerType", "Session"}
    | {"aio", "config", "connect", "errors"}
)
__all__ = sorted(({*fluss.__all__} - _NOT_HERE) | _OF_MANY_TABLES)  # noqa: PLE0605 - one list is enough


def __getattr__(name: str) -> Any:
    if name in _OWN:
        found = getattr(importlib.import_module("fluss.dialects.awaited"), name)
    elif name in _OF_MANY_TABLES:
        found = getattr(importlib.import_module("fluss.dialects.multi_table"), name)
    elif name in __all__:
        found = getattr(fluss, name)
    else:
        raise AttributeError(f"module 'fluss.aio' has no attribute {name!r}{_meant(name)}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)


def _meant(name: str) -> str:
    if name.startswith("_"):
        return ""
    from fluss.model.did_you_mean import did_you_mean

    hint = did_you_mean(name, __all__)
    return "" if hint is None else f"; {hint}"
