"""The changes of one batch, and the log batch that records them.

All changes of one PUT_KV become one log batch in the latest schema, with the id and sequence of
their writer; each change takes one offset. A batch that changed nothing is written too, with no
record and one offset, because its sequence must be in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np

from fluss.model.change_type import ChangeType
from fluss.model.tables.table_options import KvFormat, LogFormat, TableOptions
from fluss.records.arrow.compression import BodyCodec
from fluss.records.arrow.received_bytes import ByteSource
from fluss.records.kv.row_bytes import rows_from_batch
from fluss.records.log.log_writer import LogBody, arrow_log_body, write_log_batch
from fluss.records.log.row_log import row_log_body_of_rows
from fluss_server.kv.stored_row_codec import StoredRowCodec

_INSERT: Final = int(ChangeType.Insert)
_BEFORE: Final = int(ChangeType.UpdateBefore)
_AFTER: Final = int(ChangeType.UpdateAfter)
_DELETE: Final = int(ChangeType.Delete)


@dataclass(slots=True)
class Changes:
    """The changes of one batch, in order.

    Args:
        logs_before_images: Whether the old row of an update is logged (`table.changelog.image`).
        change_types: The change type of each change.
        values: The stored row of each change.
        after: The changed keys with their rows afterwards; None for deleted keys.
        added: How many keys were added, minus those that were deleted.
    """

    logs_before_images: bool
    change_types: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    after: dict[bytes, bytes | None] = field(default_factory=dict)
    added: int = 0

    def insert(self, key: bytes, new: bytes) -> None:
        """Record a new key."""
        self.change_types.append(_INSERT)
        self.values.append(new)
        self.after[key] = new
        self.added += 1

    def update(self, key: bytes, old: bytes | None, new: bytes) -> None:
        """Record the update of a key; `old` is None where the old row was not read."""
        if self.logs_before_images and old is not None:
            self.change_types.append(_BEFORE)
            self.values.append(old)
        self.change_types.append(_AFTER)
        self.values.append(new)
        self.after[key] = new

    def insert_all(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Record new, distinct keys."""
        self.change_types += [_INSERT] * len(rows)
        self.values += [row for _, row in rows]
        self.after.update(rows)
        self.added += len(rows)

    def update_all(self, rows: Sequence[tuple[bytes, bytes]], olds: Sequence[bytes]) -> None:
        """Record updates of distinct keys with their old rows."""
        news = [row for _, row in rows]
        if self.logs_before_images:
            self.change_types += [_BEFORE, _AFTER] * len(rows)
            self.values += chain.from_iterable(zip(olds, news, strict=True))
        else:
            self.change_types += [_AFTER] * len(rows)
            self.values += news
        self.after.update(rows)

    def delete(self, key: bytes, old: bytes) -> None:
        """Record the delete of a key."""
        self.change_types.append(_DELETE)
        self.values.append(old)
        self.after[key] = None
        self.added -= 1


class ChangelogWriter:
    """Encodes changes in the table's log format."""

    def __init__(self, rows: StoredRowCodec, options: TableOptions) -> None:
        self._rows = rows
        self._format = options.log_format
        self._codec = BodyCodec(options.arrow_compression, options.zstd_level)

    def batch(self, changes: Changes, *, writer_id: int, batch_sequence: int) -> list[ByteSource]:
        """Return the log batch of these changes; the log sets its offset and time.

        Raises:
            CorruptDataError: A row does not match its schema.
        """
        body = self._body(changes) if changes.change_types else _EMPTY
        return write_log_batch(
            body,
            schema_id=self._rows.latest_id,
            writer_id=writer_id,
            batch_sequence=batch_sequence,
        )

    def _body(self, changes: Changes) -> LogBody:
        change_types = np.frombuffer(bytes(changes.change_types), dtype=np.uint8)
        batch = self._rows.batch_of(changes.values)
        if self._format is LogFormat.ARROW:
            return arrow_log_body(batch, self._codec, change_types=change_types)
        layout = self._rows.layouts[self._rows.latest_id]
        encoded = rows_from_batch(batch, layout, KvFormat(self._format.value))
        return row_log_body_of_rows(encoded, change_types=change_types)


_EMPTY: Final = LogBody(buffers=(), record_count=0, is_append_only=False)
