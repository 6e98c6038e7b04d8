"""The rules for new tables, beyond those that every descriptor fulfils.

A client checks them before it sends, so that the error names the option and the remedy; the
embedded server checks them as Java does (`TableDescriptorValidation`). An unknown option may be
one of a newer server: a client lets it pass unless it looks mistyped, a server refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fluss.errors import ConfigError, InvalidSchemaError
from fluss.model.did_you_mean import did_you_mean, is_slip_of
from fluss.model.names import check_not_reserved
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_options import (
    PREFIX,
    ChangelogImage,
    DataLakeFormat,
    DeleteBehavior,
    KvFormat,
    LogFormat,
    MergeEngine,
    TableOptions,
)
from fluss.model.types.data_type import BigIntType, IntType, TimestampFamily

_VERSION_TYPES = (IntType, BigIntType, TimestampFamily)
_TTL_TYPES = (BigIntType, TimestampFamily)
_TTL_MS_MAX = 2**63 - 1


def check_new_table(descriptor: TableDescriptor, *, known_options_only: bool = False) -> None:
    """Refuse a descriptor that no server accepts for a new table.

    Args:
        descriptor: The new table.
        known_options_only: Whether a `table.*` option that is not known here is refused.

    Raises:
        ConfigError: When a property is unknown, or its value is invalid.
        InvalidNameError: When a column has a name that Fluss reserves.
        InvalidSchemaError: When properties do not fit the schema or each other.
    """
    check_properties(descriptor.properties, known_options_only=known_options_only)
    for name in descriptor.schema.column_names:
        check_not_reserved(name)
    options = descriptor.options
    _check_formats(options, has_primary_key=descriptor.has_primary_key)
    _check_merge_engine(options, descriptor.schema)
    _check_deletes(options, has_primary_key=descriptor.has_primary_key)
    _check_row_ttl(options, descriptor.schema)
    _check_lake_names(options)
    _check_statistics(options, descriptor.schema)
    _check_auto_partition(options, descriptor.partition_keys)


def check_properties(properties: Mapping[str, str], *, known_options_only: bool = False) -> None:
    """Refuse unknown properties and invalid values.

    Raises:
        ConfigError: Naming the key.
    """
    known = TableOptions.OPTIONS
    for key, value in properties.items():
        option = known.get(key)
        if option is not None:
            option.read(value)
        elif not key.startswith(PREFIX):
            raise ConfigError(
                f"{key!r} is not one of Fluss's table properties, which begin with {PREFIX!r}.",
                hint=f"put it into custom_properties={{{key!r}: …}}",
                key=key,
            )
        elif known_options_only or is_slip_of(key, known):
            raise ConfigError(
                f"There is no table property {key!r}.", hint=did_you_mean(key, known), key=key
            )


def _check_formats(options: TableOptions, *, has_primary_key: bool) -> None:
    kv_format, log_format = options.kv_format, options.log_format
    if has_primary_key and kv_format is KvFormat.COMPACTED and log_format is LogFormat.INDEXED:
        raise InvalidSchemaError(
            "A primary key table stored as COMPACTED cannot have a log written as INDEXED.",
            hint="use the log format ARROW or COMPACTED, or the kv format INDEXED",
        )


def _check_merge_engine(options: TableOptions, schema: Schema) -> None:
    engine = options.merge_engine
    if engine is not None and not schema.has_primary_key:
        raise InvalidSchemaError(
            f"The merge engine {engine} needs a primary key, and the table has none."
        )
    if engine is MergeEngine.VERSIONED:
        _check_version_column(options.version_column, schema)
    if engine is MergeEngine.AGGREGATION:
        if options.changelog_image is ChangelogImage.WAL:
            raise InvalidSchemaError(
                "The merge engine aggregation needs the full changelog, not wal.",
                hint=f"leave {TableOptions.changelog_image.key!r} out",
            )
        for column in schema.columns:
            if column.aggregation is not None:
                column.aggregation.check_parameters()
                column.aggregation.check_type(column.name, column.data_type)


def _check_version_column(name: str | None, schema: Schema) -> None:
    key = TableOptions.version_column.key
    if name is None:
        raise InvalidSchemaError(
            "The merge engine versioned does not say which column holds the version.",
            hint=f"set {key!r} to the name of the column",
        )
    data_type = schema.column(name).data_type
    if not isinstance(data_type, _VERSION_TYPES):
        raise InvalidSchemaError(
            f"The version column {name!r} is {data_type}; "
            "it has to be INT, BIGINT, TIMESTAMP or TIMESTAMP_LTZ.",
            column=name,
        )


def _check_deletes(options: TableOptions, *, has_primary_key: bool) -> None:
    behavior, engine = options.delete_behavior, options.merge_engine
    if behavior is None:
        return
    if not has_primary_key:
        raise InvalidSchemaError(
            f"{TableOptions.delete_behavior.key!r} is for tables with a primary key."
        )
    keeps_rows = engine in {MergeEngine.FIRST_ROW, MergeEngine.VERSIONED}
    if behavior is DeleteBehavior.ALLOW and keeps_rows:
        raise InvalidSchemaError(
            f"The merge engine {engine} cannot delete rows.",
            hint=f"set {TableOptions.delete_behavior.key!r} to ignore or disable",
        )


def _check_row_ttl(options: TableOptions, schema: Schema) -> None:
    ttl_ms, layout = options.row_ttl_ms, options.value_layout_version
    key, column_key = TableOptions.row_ttl_ms.key, TableOptions.row_ttl_column.key
    layout_key = TableOptions.value_layout_version.key
    if layout not in {None, 1, 2} or (layout is not None and (layout == 2) != (ttl_ms is not None)):  # noqa: PLR2004 - the layout with times
        raise InvalidSchemaError(
            f"{layout_key!r} is {layout}; it is 2 for tables with {key!r}, and 1 for others.",
            hint=f"leave {layout_key!r} out: the server sets it",
        )
    if ttl_ms is None:
        if options.row_ttl_column is not None:
            raise InvalidSchemaError(
                f"{column_key!r} is set, and {key!r} is not.",
                hint=f"set {key!r} to how long rows are kept, for example '7d'",
            )
        return
    if not schema.has_primary_key:
        raise InvalidSchemaError(
            f"{key!r} is for tables with a primary key.",
            hint="table.log.ttl is how long the rows of a log are kept",
        )
    if not 1 <= ttl_ms <= _TTL_MS_MAX:
        raise InvalidSchemaError(
            f"{key!r} is {ttl_ms} ms, which is less than 1 ms or exceeds 2^63 - 1 ms."
        )
    name = options.row_ttl_column
    if name is not None and not isinstance(schema.column(name).data_type, _TTL_TYPES):
        raise InvalidSchemaError(
            f"The time column {name!r} is {schema.column(name).data_type}; "
            "it has to be BIGINT (milliseconds since 1970), TIMESTAMP or TIMESTAMP_LTZ.",
            column=name,
        )


def _check_lake_names(options: TableOptions) -> None:
    named = options.datalake_database_name or options.datalake_table_name
    if named is not None and options.datalake_format is not DataLakeFormat.PAIMON:
        raise InvalidSchemaError(
            f"{TableOptions.datalake_database_name.key!r} and "
            f"{TableOptions.datalake_table_name.key!r} are for tables in a lake of Paimon.",
            hint=f"leave them out, or set {TableOptions.datalake_format.key!r} to paimon",
        )


def _check_statistics(options: TableOptions, schema: Schema) -> None:
    written = options.statistics_columns_text
    if written is None:
        return
    key = TableOptions.statistics_columns_text.key
    if schema.has_primary_key:
        raise InvalidSchemaError(f"{key!r} is for tables without a primary key.")
    if written.strip() == "*":
        return
    names = [each.strip() for each in written.split(",")]
    if not all(names):
        raise ConfigError(f"{key!r} is {written!r}.", hint="write '*' or names of columns", key=key)
    for name in names:
        data_type = schema.column(name).data_type
        if not data_type.has_statistics:
            raise InvalidSchemaError(
                f"The column {name!r} is {data_type}; there are no statistics of its kind.",
                hint=f"leave it out of {key!r}",
                column=name,
            )


def _check_auto_partition(options: TableOptions, keys: tuple[str, ...]) -> None:
    if not options.auto_partition_enabled:
        return
    if not keys:
        raise InvalidSchemaError(
            "Partitions are to be made by time, but the table is not partitioned.",
            hint=f"give it a partition key, or leave {TableOptions.auto_partition_enabled.key!r} out",
        )
    if len(keys) > 1:
        _check_several_keys(options, keys)


def _check_several_keys(options: TableOptions, keys: tuple[str, ...]) -> None:
    key_option = TableOptions.auto_partition_key.key
    if not options.auto_partition_key:
        raise InvalidSchemaError(
            f"The table has {len(keys)} partition keys, but does not name the one with the time.",
            hint=f"set {key_option!r} to one of {', '.join(keys)}",
        )
    if options.auto_partition_key not in keys:
        raise InvalidSchemaError(
            f"{key_option!r} is {options.auto_partition_key!r}, which is not a partition key.",
            hint=f"set it to one of {', '.join(keys)}",
        )
    precreate = TableOptions.auto_partition_precreate
    if options.is_set(precreate) and options.auto_partition_precreate > 0:
        raise InvalidSchemaError(
            "A table with several partition keys cannot have partitions made ahead.",
            hint=f"leave {precreate.key!r} out, or set it to 0",
        )
