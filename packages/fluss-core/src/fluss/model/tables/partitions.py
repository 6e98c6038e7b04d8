"""Partitions: the values of their keys, and the names made of those values.

A partition's name is its values joined with `$`, in the order of the table's partition keys; the
qualified name `key=value/key=value` is for messages (Java: `ResolvedPartitionSpec`,
`PartitionUtils`). How a typed value becomes such a text is `rows.keys.partition_text`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fluss.errors import InvalidNameError, InvalidSchemaError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.names import check_name, check_new_name
from fluss.model.string_map import StringMap
from fluss.model.types import data_type as t

SEPARATOR = "$"
# For partition keys of these types, the partition's name determines the exact value.
LOSSLESS_IN_PARTITION_NAME: Final = (
    t.BooleanType,
    t.TinyIntType,
    t.SmallIntType,
    t.IntType,
    t.BigIntType,
    t.StringType,
    t.DateType,
)


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The value of each partition key, as text: `PartitionSpec({"region": "EU"})`.

    Raises:
        InvalidNameError: When a value cannot be part of a partition's name.
    """

    spec_map: StringMap

    def __init__(self, spec_map: Mapping[str, str] | PartitionSpec) -> None:
        given = spec_map.spec_map if isinstance(spec_map, PartitionSpec) else spec_map
        for key, value in given.items():
            check_name(f"value of the partition key {key!r}", value)
        object.__setattr__(self, "spec_map", StringMap(given, what="partition spec"))

    def get_spec_map(self) -> dict[str, str]:
        """Return the value of each partition key."""
        return dict(self.spec_map)

    def __str__(self) -> str:
        return qualified_partition_name(self.spec_map)


def partition_values(spec: PartitionSpec, partition_keys: Sequence[str]) -> tuple[str, ...]:
    """Return the values in the order of the table's partition keys.

    Raises:
        InvalidSchemaError: When a key is missing, or is none of the table's.
    """
    for key in spec.spec_map:
        if key not in partition_keys:
            raise InvalidSchemaError(
                f"{key!r} is not a partition key of the table; those are "
                f"{', '.join(partition_keys) or 'none, it is not partitioned'}.",
                hint=did_you_mean(key, partition_keys),
                key=key,
            )
    for key in partition_keys:
        if key not in spec.spec_map:
            raise InvalidSchemaError(
                f"The partition {spec} lacks the partition key {key!r}.",
                hint=f"give a value for each of {', '.join(partition_keys)}",
                key=key,
            )
    return tuple(spec.spec_map[key] for key in partition_keys)


def partition_name(spec: PartitionSpec, partition_keys: Sequence[str]) -> str:
    """Return the name of the partition: its values joined with `$`.

    Raises:
        InvalidSchemaError: When the keys are not the table's.
    """
    return SEPARATOR.join(partition_values(spec, partition_keys))


def check_new_partition(spec: PartitionSpec) -> None:
    """Refuse values that begin like Fluss's own names, which a new partition cannot have."""
    for key, value in spec.spec_map.items():
        check_new_name(f"value of the partition key {key!r}", value)


def parse_partition_name(name: str, partition_keys: Sequence[str]) -> PartitionSpec:
    """Return the values that a partition's name is made of.

    Raises:
        InvalidNameError: When the name does not have one value for each partition key.
    """
    values = name.split(SEPARATOR)
    if len(values) != len(partition_keys):
        raise InvalidNameError(
            f"The partition name {name!r} has {len(values)} values, "
            f"the table has {len(partition_keys)} partition keys ({', '.join(partition_keys)}).",
            hint=f"join one value for each key with {SEPARATOR!r}",
            name=name,
        )
    return PartitionSpec(dict(zip(partition_keys, values, strict=True)))


def qualified_partition_name(spec: Mapping[str, str]) -> str:
    """`key=value/key=value`, for messages."""
    return "/".join(f"{key}={value}" for key, value in spec.items())


def parse_qualified_partition_name(name: str) -> PartitionSpec:
    """Return the values in a qualified name.

    Raises:
        InvalidNameError: When the name is not `key=value/key=value`.
    """
    pairs: dict[str, str] = {}
    for part in name.split("/"):
        key, equals, value = part.partition("=")
        if not equals or not key or key in pairs:
            raise InvalidNameError(
                f"{name!r} does not name a partition: {part!r} is not one key and its value.",
                hint="write key=value, and '/' between several, for example 'year=2026/region=EU'",
                name=name,
            )
        pairs[key] = value
    return PartitionSpec(pairs)


@dataclass(frozen=True, slots=True, repr=False)
class PartitionInfo:
    """One partition of a table, as the cluster knows it.

    Attributes:
        partition_id: Its number.
        partition_name: The values of its partition keys, joined with `$`.
        partition_spec: The same values by their keys.
        remote_data_dir: Where its remote data is, if the server reports it.
        bucket_count: How many buckets it has; None on servers before 1.0, where all partitions
            have as many as the table (`TableInfo.num_buckets`).
    """

    partition_id: int
    partition_name: str
    partition_spec: PartitionSpec | None = field(default=None, kw_only=True)
    remote_data_dir: str | None = field(default=None, kw_only=True)
    bucket_count: int | None = field(default=None, kw_only=True)

    def get_partition_id(self) -> int:
        """Return the number of the partition."""
        return self.partition_id

    def get_partition_name(self) -> str:
        """Return the values of the partition, joined with `$`."""
        return self.partition_name

    def get_bucket_count(self) -> int | None:
        """Return how many buckets the partition has; None on servers that do not report it."""
        return self.bucket_count

    def __repr__(self) -> str:
        count = "" if self.bucket_count is None else f", bucket_count={self.bucket_count}"
        return (
            f"PartitionInfo(partition_id={self.partition_id}, "
            f"partition_name={self.partition_name!r}{count})"
        )
