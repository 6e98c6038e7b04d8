"""The time to live of rows (`table.kv.ttl`): the tags of stored values, and which rows expired.

Stored values of a table with a TTL begin with the time of the row in 8 bytes, big endian, as in the
KV snapshots of Fluss 1.0 (layout 2; Java: `KvValueLayout`); on the wire values have no tag. A row
is removed once its time plus the TTL has come, without a change in the changelog. As in Fluss,
rows stay visible until they are removed, which `KvTablet.expire` does from time to time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Self

from fluss.model.tables.table_options import TableOptions
from fluss.model.types import data_type as t
from fluss_server.kv.stored_row_codec import StoredRowCodec

TAG_BYTES: Final = 8
# The time of a row whose time column is NULL: it never expires (Java: `Long.MAX_VALUE / 2`).
NEVER: Final = (2**63 - 1) // 2
_TAG = struct.Struct(">q")
_MILLIS: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - of local times


@dataclass(frozen=True, slots=True, eq=False)
class RowTtl:
    """Tags the values of one table; replaced when a schema is added.

    Args:
        ttl_ms: How long a row is kept after its time.
        rows: Decodes rows.
        position: The time column; None where the time of a row is that of its change.
        to_millis: Makes milliseconds since 1970 of a physical value of that column.
    """

    ttl_ms: int
    rows: StoredRowCodec
    position: int | None
    to_millis: Callable[[Any], int]

    @classmethod
    def of(cls, options: TableOptions, rows: StoredRowCodec) -> Self | None:
        """Return the TTL of a table; None where its rows do not expire."""
        ttl_ms, name = options.row_ttl_ms, options.row_ttl_column
        if ttl_ms is None:
            return None
        if name is None:
            return cls(ttl_ms, rows, None, int)
        column = rows.latest.column(name)
        return cls(ttl_ms, rows, rows.latest.column_index(name), _millis_of(column.data_type))

    def tagged(
        self, changes: Mapping[bytes, bytes | None], *, commit_ms: int
    ) -> dict[bytes, bytes | None]:
        """Return changed rows with their tags; None stays for deleted keys.

        Args:
            changes: The keys and their rows.
            commit_ms: The commit timestamp of the changes.
        """
        if self.position is None:
            tag = _TAG.pack(commit_ms)
            return {key: None if row is None else tag + row for key, row in changes.items()}
        return {
            key: None if row is None else _TAG.pack(self._time_of(row)) + row
            for key, row in changes.items()
        }

    def has_expired(self, stored: bytes, *, now_ms: int) -> bool:
        """Whether the row of a tagged value is to be removed."""
        return bool(_TAG.unpack_from(stored)[0] + self.ttl_ms <= now_ms)

    def _time_of(self, row: bytes) -> int:
        value = None if self.position is None else self.rows.read(row)[self.position]
        return NEVER if value is None else self.to_millis(value)


def _millis_of(data_type: t.DataType) -> Callable[[Any], int]:
    if not isinstance(data_type, t.TimestampFamily):
        return int
    per_second = t.UNITS_PER_SECOND[data_type.unit]
    is_local = data_type.arrow_zone is None

    def to_millis(value: int) -> int:
        millis = value * _MILLIS // per_second
        return _from_local(millis) if is_local else millis

    return to_millis


def _from_local(millis: int) -> int:
    """Make milliseconds since 1970 of a time without a zone, which is in the server's zone."""
    try:
        seconds = (_EPOCH + timedelta(seconds=millis // _MILLIS)).timestamp()
    except (OverflowError, ValueError, OSError):
        return millis  # years that the system's zones do not cover
    return int(seconds) * _MILLIS + millis % _MILLIS
