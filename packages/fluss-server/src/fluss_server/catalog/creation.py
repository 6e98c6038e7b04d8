"""What becomes of a table descriptor when a table is created: defaults put in, nonsense refused.

The rules are those of `fluss.model.tables.table_rules`, the codes and defaults those of Fluss's
coordinator (Java: `CoordinatorService.applySystemDefaults`, `TableDescriptorValidation`). Whether
the name is free is the catalog's question.
"""

from __future__ import annotations

from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, InvalidNameError
from fluss.model.schema.aggregation import AggFunctionType
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import MergeEngine, TableOptions
from fluss.model.tables.table_rules import check_new_table
from fluss_server.server_errors import refuse, with_code

BUCKETS_MAX: Final = 128_000  # max.bucket.num
PARTITIONS_MAX: Final = 1_000  # max.partition.num
DEFAULT_BUCKETS: Final = 1  # default.bucket.number
KV_FORMAT_VERSION: Final = "2"

_NOT_BUILT: Final = frozenset({AggFunctionType.RBM32, AggFunctionType.RBM64})


def read_descriptor(text: bytes) -> TableDescriptor:
    """The descriptor in a CREATE_TABLE request.

    Raises:
        FlussError: With code 15, whatever is wrong with it.
    """
    try:
        return TableDescriptor.from_json(text)
    except FlussError as error:
        raise with_code(error, ErrorCode.INVALID_TABLE_EXCEPTION) from error


def completed(asked: TableDescriptor, *, default_buckets: int = DEFAULT_BUCKETS) -> TableDescriptor:
    """The descriptor with everything that the server adds by itself."""
    options = asked.options
    added: dict[str, str] = {}

    def default(option: str, value: str) -> None:
        if option not in asked.properties:
            added[option] = value

    default(TableOptions.replication_factor.key, "1")
    if len(asked.partition_keys) > 1 and _says_true(asked, TableOptions.auto_partition_enabled.key):
        default(TableOptions.auto_partition_precreate.key, "0")
    if asked.has_primary_key:
        if _merges(options):
            default(TableOptions.delete_behavior.key, "IGNORE")
        default(TableOptions.kv_format_version.key, KV_FORMAT_VERSION)
    count = asked.bucket_count if asked.bucket_count is not None else default_buckets
    properties = {**asked.properties, **added}
    return with_other(asked, properties=properties).with_bucket_count(count)


def with_other(
    table: TableDescriptor,
    *,
    properties: dict[str, str] | None = None,
    custom_properties: dict[str, str] | None = None,
) -> TableDescriptor:
    """The same table with other properties."""
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


def check(table: TableDescriptor) -> None:
    """Refuse what no table can be.

    Raises:
        FlussError: With the code that Fluss's coordinator answers.
    """
    _check_buckets(table)
    _check_time_key(table)
    try:
        check_new_table(table, known_options_only=True)
    except InvalidNameError as error:
        raise with_code(error, ErrorCode.INVALID_TABLE_EXCEPTION) from error
    except FlussError as error:
        raise with_code(error, ErrorCode.INVALID_CONFIG_EXCEPTION) from error
    if table.options.datalake_enabled:
        raise refuse(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            f"{TableOptions.datalake_enabled.key!r} is set, but this cluster has no lake.",
        )
    for column in table.schema.columns:
        if column.aggregation is not None and column.aggregation.type in _NOT_BUILT:
            raise refuse(
                ErrorCode.INVALID_CONFIG_EXCEPTION,
                f"The embedded server does not combine bitmaps: the column {column.name!r} has the "
                f"aggregation function {column.aggregation.type}.",
                hint="Run Fluss itself for tables with rbm32 or rbm64.",
            )


def check_replication(table: TableDescriptor) -> None:
    """Refuse more copies than there are servers, as Fluss does where buckets get their places."""
    factor = table.options.replication_factor
    if factor is not None and factor > 1:
        raise refuse(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {factor} larger than available tablet servers: 1.",
            hint="The embedded server is one node; leave table.replication.factor out.",
        )


def _check_buckets(table: TableDescriptor) -> None:
    if (table.bucket_count or 0) > BUCKETS_MAX:
        raise refuse(
            ErrorCode.BUCKET_MAX_NUM_EXCEPTION,
            f"Bucket count {table.bucket_count} exceeds the maximum limit {BUCKETS_MAX}.",
        )


def _check_time_key(table: TableDescriptor) -> None:
    """Which of several partition keys is the time: Fluss answers these with another code."""
    keys = table.partition_keys
    if len(keys) <= 1 or not _says_true(table, TableOptions.auto_partition_enabled.key):
        return
    key = table.options.auto_partition_key
    if key not in keys:
        raise refuse(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            f"{TableOptions.auto_partition_key.key!r} is {key!r}, which is none of the partition keys "
            f"{', '.join(keys)}.",
        )
    if table.options.auto_partition_precreate > 0:
        raise refuse(
            ErrorCode.INVALID_TABLE_EXCEPTION,
            "A table with several partition keys cannot have partitions made ahead; "
            f"{TableOptions.auto_partition_precreate.key!r} has to be 0.",
        )


def _says_true(table: TableDescriptor, key: str) -> bool:
    return table.properties.get(key, "").lower() == "true"


def _merges(options: TableOptions) -> bool:
    try:
        return options.merge_engine in set(MergeEngine)
    except FlussError:
        return False  # not one of them; the check that follows says so
