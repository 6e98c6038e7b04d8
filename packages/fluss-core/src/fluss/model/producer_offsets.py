"""Offsets that a producer registers, so that it finds them after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fluss.model.paths import TableBucket


class RegisterResult(StrEnum):
    """What became of a registration: the first one of a producer stays."""

    CREATED = "CREATED"
    ALREADY_EXISTS = "ALREADY_EXISTS"

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


@dataclass(frozen=True, slots=True)
class ProducerOffsetsResult:
    """What a producer has registered.

    Attributes:
        producer_id: Its name.
        table_offsets: The offsets of each table: `{table id: {bucket: offset}}`.
        expiration_time: When they are forgotten, in milliseconds since 1970.
    """

    producer_id: str
    table_offsets: Mapping[int, Mapping[TableBucket, int]] = field(hash=False)
    expiration_time: int
