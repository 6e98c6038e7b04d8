"""What a class of rows says beyond the types of its fields: `Annotated[int, fluss.Key]`.

A marker is used as it is (`Key`) or called where it takes an argument (`Comment("in euros")`). The
type of a column is given the same way, as a text or a type: `Annotated[int, "INT"]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from fluss.model.names import check_column_name
from fluss.model.options.argument_types import Names
from fluss.model.paths import TablePath

Row = TypeVar("Row")

_ATTRIBUTE: Final = "__fluss_table_options__"


class Key:
    """Marks a field as a column of the primary key: `id: Annotated[int, fluss.Key]`."""


class Partition:
    """Marks a field as a column whose values divide the table into partitions."""


class BucketKey:
    """Marks a field as a column that chooses the bucket of a row."""


class AutoIncrement:
    """Marks a field as a column that the servers count up; its value is read, never written."""


class NotStored:
    """Marks a field that is no column: it is not written, and has its default when it is read."""


MARKERS: Final = (Key, Partition, BucketKey, AutoIncrement, NotStored)


@dataclass(frozen=True, slots=True)
class Comment:
    """Describes a column: `price: Annotated[float, fluss.Comment("in euros")]`.

    Args:
        text: The description.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ColumnName:
    """Names the column of a field, where it has another name than the field.

    Args:
        name: The name of the column.
    """

    name: str

    def __post_init__(self) -> None:
        check_column_name(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What `table` says of the table of a class; None where it says nothing."""

    name: str | None = None
    primary_key: Names | None = None
    partition_by: Names | None = None
    bucket_key: Names | None = None
    buckets: int | None = None
    properties: Mapping[str, Any] | None = None
    comment: str | None = None


def table(
    name: TablePath | str,
    *,
    primary_key: Names | None = None,
    partition_by: Names | None = None,
    bucket_key: Names | None = None,
    buckets: int | None = None,
    properties: Mapping[str, Any] | None = None,
    comment: str | None = None,
) -> Callable[[type[Row]], type[Row]]:
    """Return a decorator that names the table of a class of rows, and describes it.

    `fluss apply` and `session.apply_tables` create and alter the tables of such classes. Keys and
    partitions may be marked at the fields instead.

    Args:
        name: `"database.table"`.
        primary_key: The columns of the primary key, where their order is not that of the fields.
        partition_by: The columns that divide it into partitions.
        bucket_key: The columns that choose the bucket; the primary key's by default.
        buckets: How many buckets it has, in each partition; the cluster's default otherwise.
        properties: Fluss's own properties, such as `table.log.ttl`, and those of users, such as
            `owner`.
        comment: A description of the table; the docstring of the class is none.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> import fluss
        >>> @fluss.table("shop.orders", buckets=3)
        ... @dataclass
        ... class Order:
        ...     id: Annotated[int, fluss.Key]
        ...     note: str | None = None
    """
    options = TableOptions(
        name=str(name),
        primary_key=primary_key,
        partition_by=partition_by,
        bucket_key=bucket_key,
        buckets=buckets,
        properties=properties,
        comment=comment,
    )

    def mark(cls: type[Row]) -> type[Row]:
        setattr(cls, _ATTRIBUTE, options)
        return cls

    return mark


def table_options_of(cls: type) -> TableOptions:
    """Return what `table` says of a class; a class does not inherit it."""
    found: TableOptions = vars(cls).get(_ATTRIBUTE, TableOptions())
    return found


def has_table(cls: object) -> bool:
    """Return whether this is a class that `table` was called for."""
    return isinstance(cls, type) and _ATTRIBUTE in vars(cls)
