"""Changes of tables and databases: what `alter_table` and `alter_database` take (Java's names)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fluss.errors import InvalidValueError

if TYPE_CHECKING:
    from fluss.model.schema.aggregation import AggFunction
    from fluss.model.types.data_type import DataType


class DatabaseChange:
    """A change of a database, made by one of its methods."""

    __slots__ = ()

    @staticmethod
    def set(key: str, value: str) -> SetOption:
        """Set a property."""
        return SetOption(key, value)

    @staticmethod
    def reset(key: str) -> ResetOption:
        """Remove a property."""
        return ResetOption(key)

    @staticmethod
    def update_comment(comment: str | None) -> UpdateComment:
        """Replace the comment; None removes it."""
        return UpdateComment(comment)


class TableChange:
    """A change of a table, made by one of its methods.

    Example:
        >>> TableChange.set("table.log.ttl", "3d")
        SetOption(key='table.log.ttl', value='3d')
    """

    __slots__ = ()

    @staticmethod
    def set(key: str, value: str) -> SetOption:
        """Set a property."""
        return SetOption(key, value)

    @staticmethod
    def reset(key: str) -> ResetOption:
        """Take a property back to its default."""
        return ResetOption(key)

    @staticmethod
    def add_column(
        name: str,
        data_type: DataType,
        comment: str | None = None,
        *,
        aggregation: AggFunction | None = None,
    ) -> AddColumn:
        """Add a column that may be NULL, at the end; Fluss has no other place."""
        return AddColumn(name, data_type, comment, aggregation)

    @staticmethod
    def drop_column(name: str) -> DropColumn:
        """Drop a column. No server up to Fluss 1.0 can."""
        return DropColumn(name)

    @staticmethod
    def rename_column(existing: str, new: str) -> RenameColumn:
        """Rename a column. No server up to Fluss 1.0 can."""
        return RenameColumn(existing, new)

    @staticmethod
    def modify_column(name: str, data_type: DataType, comment: str | None = None) -> ModifyColumn:
        """Change the type of a column. No server up to Fluss 1.0 can."""
        return ModifyColumn(name, data_type, comment)

    @staticmethod
    def modify_bucket_count(bucket_count: int) -> ModifyBucketCount:
        """Change the bucket count of partitions that are created from now on; needs Fluss 1.0."""
        return ModifyBucketCount(bucket_count)


@dataclass(frozen=True, slots=True)
class SetOption(TableChange, DatabaseChange):
    """Sets a property."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ResetOption(TableChange, DatabaseChange):
    """Takes a property back to its default."""

    key: str


@dataclass(frozen=True, slots=True)
class UpdateComment(DatabaseChange):
    """Replaces the comment of a database."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class AddColumn(TableChange):
    """Adds a column at the end."""

    name: str
    data_type: DataType
    comment: str | None = None
    aggregation: AggFunction | None = None


@dataclass(frozen=True, slots=True)
class DropColumn(TableChange):
    """Drops a column."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn(TableChange):
    """Renames a column."""

    existing: str
    new: str


@dataclass(frozen=True, slots=True)
class ModifyColumn(TableChange):
    """Changes the type of a column."""

    name: str
    data_type: DataType
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class ModifyBucketCount(TableChange):
    """Changes the bucket count of new partitions."""

    bucket_count: int

    def __post_init__(self) -> None:
        if isinstance(self.bucket_count, bool) or self.bucket_count < 1:
            raise InvalidValueError(f"A table has at least 1 bucket, not {self.bucket_count}.")
