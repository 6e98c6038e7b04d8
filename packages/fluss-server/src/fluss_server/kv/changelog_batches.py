"""The changes of one batch, and the log batch that says them.

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
from fluss.records.arrow.arrow_body import BodyCodec
from fluss.records.arrow.received_bytes import ByteSource
from fluss.records.kv.row_bytes import rows_from_batch
from fluss.records.log.log_writer import LogBody, arrow_log_body, write_log_batch
from fluss.records.log.row_log import row_log_body_of_rows
from fluss_server.kv.stored_rows_codec import TableRows

_INSERT: Final = int(ChangeType.Insert)
_BEFORE: Final = int(ChangeType.UpdateBefore)
_AFTER: Final = int(ChangeType.UpdateAfter)
_DELETE: Final = int(ChangeType.Delete)


@dataclass(slots=True)
class Changes:
    """What one batch changes, in order.

    Args:
        says_before: Whether the rows before an update are said (`table.changelog.image`).
        kinds: The kind of each change.
        values: Its stored row.
        after: The keys changed, with what they have afterwards.
        added: How many keys there are more than before.
    """

    says_before: bool
    kinds: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    after: dict[bytes, bytes | None] = field(default_factory=dict)
    added: int = 0

    def insert(self, key: bytes, new: bytes) -> None:
        """A key that was not there."""
        self.kinds.append(_INSERT)
        self.values.append(new)
        self.after[key] = new
        self.added += 1

    def update(self, key: bytes, old: bytes | None, new: bytes) -> None:
        """A key that was there; nobody looked at its row where `old` is None."""
        if self.says_before and old is not None:
            self.kinds.append(_BEFORE)
            self.values.append(old)
        self.kinds.append(_AFTER)
        self.values.append(new)
        self.after[key] = new

    def insert_all(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Keys that were not there, each once."""
        self.kinds += [_INSERT] * len(rows)
        self.values += [row for _, row in rows]
        self.after.update(rows)
        self.added += len(rows)

    def update_all(self, rows: Sequence[tuple[bytes, bytes]], olds: Sequence[bytes]) -> None:
        """Keys that were there, each once, with what they had."""
        news = [row for _, row in rows]
        if self.says_before:
            self.kinds += [_BEFORE, _AFTER] * len(rows)
            self.values += chain.from_iterable(zip(olds, news, strict=True))
        else:
            self.kinds += [_AFTER] * len(rows)
            self.values += news
        self.after.update(rows)

    def delete(self, key: bytes, old: bytes) -> None:
        """A key that is gone."""
        self.kinds.append(_DELETE)
        self.values.append(old)
        self.after[key] = None
        self.added -= 1


class ChangelogWriter:
    """Writes changes as the table's log format has it."""

    def __init__(self, rows: TableRows, options: TableOptions) -> None:
        self._rows = rows
        self._format = options.log_format
        self._codec = BodyCodec(options.arrow_compression, options.zstd_level)

    def batch(self, changes: Changes, *, writer_id: int, batch_sequence: int) -> list[ByteSource]:
        """The log batch of these changes; offset and time are the log's to set.

        Raises:
            CorruptDataError: A row is not what its schema says.
        """
        body = self._body(changes) if changes.kinds else _EMPTY
        return write_log_batch(
            body,
            schema_id=self._rows.latest_id,
            writer_id=writer_id,
            batch_sequence=batch_sequence,
        )

    def _body(self, changes: Changes) -> LogBody:
        kinds = np.frombuffer(bytes(changes.kinds), dtype=np.uint8)
        batch = self._rows.batch_of(changes.values)
        if self._format is LogFormat.ARROW:
            return arrow_log_body(batch, self._codec, change_types=kinds)
        layout = self._rows.layouts[self._rows.latest_id]
        encoded = rows_from_batch(batch, layout, KvFormat(self._format.value))
        return row_log_body_of_rows(encoded, change_types=kinds)


_EMPTY: Final = LogBody(buffers=(), record_count=0, is_append_only=False)
