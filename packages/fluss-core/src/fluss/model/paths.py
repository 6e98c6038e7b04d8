"""Addresses of data: the path of a table, the path of a partition, a bucket.

Paths consist of names that users choose; buckets are numbers that the cluster assigns. Leaders are
not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import total_ordering
from typing import Any, Self

from fluss.errors import InvalidNameError
from fluss.model.names import check_name, check_new_name, without_login


@dataclass(frozen=True, slots=True, order=True, repr=False)
class TablePath:
    """A table's name in its database: `TablePath("sales", "orders")`.

    Raises:
        InvalidNameError: When a name is not one that Fluss could have given.
    """

    database_name: str
    table_name: str

    def __post_init__(self) -> None:
        check_name("database name", self.database_name)
        check_name("table name", self.table_name)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the path that `database.table` names.

        Raises:
            InvalidNameError: When the text is not two names with a dot between them.
        """
        database, dot, table = text.partition(".")
        if not dot or "." in table:
            shown = without_login(text)
            raise InvalidNameError(
                f"{shown!r} is not the path of a table.",
                hint="write database.table, for example 'fluss.events'",
                name=shown,
            )
        return cls(database, table)

    def check_new(self) -> None:
        """Refuse names that begin like Fluss's own, which a new table cannot have."""
        check_new_name("database name", self.database_name)
        check_new_name("table name", self.table_name)

    @property
    def database(self) -> str:
        """The name of the database."""
        return self.database_name

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.table_name

    def table_path_str(self) -> str:
        """`database.table`."""
        return f"{self.database_name}.{self.table_name}"

    def __str__(self) -> str:
        return self.table_path_str()

    def __repr__(self) -> str:
        return f"TablePath({self.database_name!r}, {self.table_name!r})"


@dataclass(frozen=True, slots=True)
class PhysicalTablePath:
    """The unit that is written to: a table, or one partition of it."""

    table_path: TablePath
    partition_name: str | None = None

    def __post_init__(self) -> None:
        if self.partition_name is not None:
            for value in self.partition_name.split("$"):
                check_name("partition value", value)

    def __str__(self) -> str:
        if self.partition_name is None:
            return str(self.table_path)
        return f"{self.table_path}(p={self.partition_name})"


@total_ordering
@dataclass(frozen=True, slots=True, repr=False)
class TableBucket:
    """One bucket of a table or of one of its partitions; the unit of order and of parallelism."""

    table_id: int
    bucket: int
    partition_id: int | None = field(default=None, kw_only=True)

    @staticmethod
    def with_partition(table_id: int, partition_id: int | None, bucket: int) -> TableBucket:
        """Return a bucket of a partition."""
        return TableBucket(table_id, bucket, partition_id=partition_id)

    new_with_partition = with_partition

    @property
    def bucket_id(self) -> int:
        """The number of the bucket in its table or partition."""
        return self.bucket

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, TableBucket):
            return NotImplemented
        return self._place() < other._place()

    def _place(self) -> tuple[int, int, int]:
        # Partition ids begin at 0; a table's own buckets come before those of partitions.
        partition_id = -1 if self.partition_id is None else self.partition_id
        return (self.table_id, partition_id, self.bucket)

    def __repr__(self) -> str:
        partition = "" if self.partition_id is None else f"partition_id={self.partition_id}, "
        return f"TableBucket(table_id={self.table_id}, {partition}bucket={self.bucket})"
