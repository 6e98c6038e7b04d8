"""The rules of CREATE TABLE: defaults are added, and invalid descriptors are refused.

The rules are those of `fluss.model.tables.table_rules`; the codes and defaults are those of Fluss's
coordinator (Java: `CoordinatorService.applySystemDefaults`, `TableDescriptorValidation`). The
catalog checks whether the name is free.
"""

from __future__ import annotations

from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, InvalidNameError
from fluss.model.schema.aggregation import AggFunctionType
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import MergeEngine, TableOptions
from fluss.model.tables.table_rules import check_new_table
from fluss_server.server_errors import request_error, with_code

BUCKETS_MAX: Final = 128_000  # max.bucket.num
PARTITIONS_MAX: Final = 1_000  # max.partition.num
DEFAULT_BUCKETS: Final = 1  # default.bucket.number
KV_FORMAT_VERSION: Final = "2"
TAGGED_VALUES: Final = "2"  # the layout of values of a table with a TTL of rows

_UNSUPPORTED: Final = frozenset({AggFunctionType.RBM32, AggFunctionType.RBM64})


def read_descriptor(text: bytes) -> TableDescriptor:
    """Read the descriptor of a CREATE_TABLE request.

    Raises:
        FlussError: The descriptor is invalid; the code is always 15.
    """
    try:
        return TableDescriptor.from_json(text)
    except FlussError as error:
        raise with_code(error, ErrorCode.INVALID_TABLE_EXCEPTION) from error


def with_defaults(
    requested: TableDescriptor,
    *,
    default_buckets: int = DEFAULT_BUCKETS,
    lake_format: str | None = None,
) -> TableDescriptor:
    """Return the descriptor with the defaults that the server adds.

    Args:
        requested: The descriptor as it was requested.
        default_buckets: How many buckets a table has that does not say it.
        lake_format: The format of the cluster's lake; None where it has none.
    """
    options = requested.options
    added: dict[str, str] = {}

    def default(option: str, value: str) -> None:
        if option not in requested.properties:
            added[option] = value

    default(TableOptions.replication_factor.key, "1")
    if lake_format is not None:
        default(TableOptions.datalake_format.key, lake_format)
    if len(requested.partition_keys) > 1 and _is_true(
        requested, TableOptions.auto_partition_enabled.key
    ):
        default(TableOptions.auto_partition_precreate.key, "0")
    if requested.has_primary_key:
        if _has_merge_engine(options):
            default(TableOptions.delete_behavior.key, "IGNORE")
        default(TableOptions.kv_format_version.key, KV_FORMAT_VERSION)
    if TableOptions.row_ttl_ms.key in requested.properties:
        default(TableOptions.value_layout_version.key, TAGGED_VALUES)
    count = requested.bucket_count if requested.bucket_count is not None else default_buckets
    properties = {**requested.properties, **added}
    return with_properties(requested, properties=properties).with_bucket_count(count)


def with_properties(
    table: TableDescriptor,
    *,
    properties: dict[str, str] | None = None,
    custom_properties: dict[str, str] | None = None,
) -> TableDescriptor:
    """Return the table with other properties."""
    return TableDescriptor(
        table.schema,
        partition_keys=table.partition_keys,
        bucket_count=table.bucket_count,
        bucket_keys=table.bucket_keys,
        comment=table.comment,
        properties=table.properties if properties is None else properties,
        custom_properties=(
            table.custom_properties if custom_properties is None else custom_properties
        ),
    )


def check_table(table: TableDescriptor, *, lake_format: str | None = None) -> None:
    """Refuse an invalid table.

    Args:
        table: The table.
        lake_format: The format of the cluster's lake; None where it has none.

    Raises:
        FlussError: The table is invalid; the code is the one that Fluss's coordinator returns.
    """
    _check_buckets(table)
    _check_time_key(table)
    if TableOptions.row_ttl_ms.key in table.properties and not table.has_primary_key:
        raise request_error(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            f"{TableOptions.row_ttl_ms.key!r} is for tables with a primary key.",
        )
    try:
        check_new_table(table, known_options_only=True)
    except InvalidNameError as error:
        raise with_code(error, ErrorCode.INVALID_TABLE_EXCEPTION) from error
    except FlussError as error:
        raise with_code(error, ErrorCode.INVALID_CONFIG_EXCEPTION) from error
    if table.options.datalake_enabled:
        _check_lake(table, lake_format)
    for column in table.schema.columns:
        if column.aggregation is not None and column.aggregation.type in _UNSUPPORTED:
            raise request_error(
                ErrorCode.INVALID_CONFIG_EXCEPTION,
                f"The embedded server does not combine bitmaps: the column {column.name!r} has the "
                f"aggregation function {column.aggregation.type}.",
                hint="Run Fluss itself for tables with rbm32 or rbm64.",
            )


def _check_lake(table: TableDescriptor, lake_format: str | None) -> None:
    if lake_format is None:
        raise request_error(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            f"{TableOptions.datalake_enabled.key!r} is set, but this cluster has no lake.",
            hint="Start the embedded server with one: fluss server --lake",
        )
    own = table.options.datalake_format
    if own is not None and str(own) != lake_format:
        # 0.9.1 creates such a table, whose rows are in other buckets than the lake expects.
        raise request_error(
            ErrorCode.INVALID_CONFIG_EXCEPTION,
            f"{TableOptions.datalake_format.key!r} is {own}, and the lake of this cluster is "
            f"{lake_format}.",
            hint=f"Leave {TableOptions.datalake_format.key!r} out.",
        )


def check_replication(table: TableDescriptor) -> None:
    """Refuse more replicas than there are servers, as Fluss does when it assigns buckets."""
    factor = table.options.replication_factor
    if factor is not None and factor > 1:
        raise request_error(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {factor} larger than available tablet servers: 1.",
            hint="The embedded server is one node; leave table.replication.factor out.",
        )


def _check_buckets(table: TableDescriptor) -> None:
    if (table.bucket_count or 0) > BUCKETS_MAX:
        raise request_error(
            ErrorCode.BUCKET_MAX_NUM_EXCEPTION,
            f"Bucket count {table.bucket_count} exceeds the maximum limit {BUCKETS_MAX}.",
        )


def _check_time_key(table: TableDescriptor) -> None:
    """Check the time key of several partition keys; Fluss has a separate code for it."""
    keys = table.partition_keys
    if len(keys) <= 1 or not _is_true(table, TableOptions.auto_partition_enabled.key):
        return
    key = table.options.auto_partition_key
    if key not in keys:
        raise request_error(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            f"{TableOptions.auto_partition_key.key!r} is {key!r}, which is none of the partition keys "
            f"{', '.join(keys)}.",
        )
    if table.options.auto_partition_precreate > 0:
        raise request_error(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            "A table with several partition keys cannot have partitions made ahead; "
            f"{TableOptions.auto_partition_precreate.key!r} has to be 0.",
        )


def _is_true(table: TableDescriptor, key: str) -> bool:
    return table.properties.get(key, "").lower() == "true"


def _has_merge_engine(options: TableOptions) -> bool:
    try:
        return options.merge_engine in set(MergeEngine)
    except FlussError:
        return False  # not a merge engine; `check_table` refuses it
