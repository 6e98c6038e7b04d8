"""Converts arguments of users: paths of tables, configs, positions of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fluss.error_codes import ErrorCode
from fluss.errors import (
    ConfigError,
    FlussError,
    InvalidNameError,
    InvalidValueError,
    SchemaMismatchError,
)
from fluss.model.options.config import Config
from fluss.model.paths import TablePath
from fluss.model.tables.table_info import TableInfo


def table_path_of(path: TablePath | str) -> TablePath:
    """Return a table's path, given as one or as `database.table`.

    Raises:
        InvalidNameError: It is neither.
    """
    if isinstance(path, TablePath):
        return path
    if isinstance(path, str):
        return TablePath.parse(path)
    raise InvalidNameError(
        f"A table is named by a TablePath or a text, not by {path!r}.",
        hint="write TablePath('database', 'table') or 'database.table'",
    )


def config_of(config: Config | Mapping[str, Any] | None) -> Config:
    """Return a config, given as one or as its properties.

    Raises:
        ConfigError: It is neither, or has an unknown option.
    """
    if isinstance(config, Config):
        return config
    if config is None or isinstance(config, Mapping):
        return Config(config)
    # The value is not shown: it may be an address with a password in it.
    raise ConfigError(
        f"A connection is made with a Config, not with a {type(config).__name__}.",
        hint='write Config({"bootstrap.servers": "127.0.0.1:9123"})',
    )


def check_bucket_id(
    table: TableInfo, bucket_id: int, *, count: int | None = None, partition: str | None = None
) -> None:
    """Refuse a bucket that a table, or one of its partitions, does not have.

    Args:
        table: The table.
        bucket_id: The bucket.
        count: How many buckets there are; None for as many as the table has.
        partition: The partition, for the message.

    Raises:
        InvalidValueError: The number is too large or negative.
    """
    count = table.num_buckets if count is None else count
    if not 0 <= bucket_id < count:
        where = "" if partition is None else f"The partition {partition!r} of "
        raise InvalidValueError(
            f"{where}{table.table_path} has no bucket {bucket_id}.",
            hint=f"Its buckets are 0 to {count - 1}.",
            table=str(table.table_path),
            bucket=bucket_id,
        )


def check_partitioned(table: TableInfo, *, expected: bool, hint: str) -> None:
    """Refuse a table with partitions where there must be none, or the reverse.

    Raises:
        FlussError: The call is for the other kind of tables; the hint names the right one.
    """
    name = str(table.table_path)
    if table.is_partitioned() and not expected:
        what = f"{name} is partitioned: its buckets are those of a partition."
        raise FlussError(what, hint=hint, table=name)
    if expected and not table.is_partitioned():
        code = int(ErrorCode.TABLE_NOT_PARTITIONED_EXCEPTION)
        raise FlussError(f"{name} is not partitioned.", code, hint=hint, table=name)


def positions_of(table: TableInfo, indices: Iterable[Any]) -> tuple[int, ...]:
    """Check positions of columns of a table.

    Raises:
        SchemaMismatchError: There is no column there, or one is named twice.
    """
    names = table.schema.column_names
    positions = tuple(indices)
    for position in positions:
        if (
            isinstance(position, bool)
            or not isinstance(position, int)
            or not 0 <= position < len(names)
        ):
            raise SchemaMismatchError(
                f"There is no column {position!r} in {table.table_path}.",
                hint=f"Its columns are 0 to {len(names) - 1}: {', '.join(names)}.",
                column=position,
            )
    if len(set(positions)) < len(positions):
        raise SchemaMismatchError(
            f"A column is named twice: {', '.join(names[each] for each in positions)}.",
            hint="Name each column once.",
        )
    return positions


def positions_by_name(table: TableInfo, names: Iterable[str]) -> tuple[int, ...]:
    """Return the positions of columns by their names.

    Raises:
        InvalidSchemaError: There is no such column; the hint names the nearest.
        SchemaMismatchError: One is named twice.
    """
    listed = [names] if isinstance(names, str) else names
    return positions_of(table, table.schema.column_indexes(listed))
