"""One bucket of a primary-key table: batches are applied in order, and asked about by key.

`put` decides what a batch changes, writes that to the changelog, and then to the pending changes;
only then is it true. So a batch that fails changes nothing, and a crash leaves a store that is
behind its changelog, never before it. Whoever calls holds the bucket's turn; nothing here locks or
waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from fluss.error_codes import ErrorCode
from fluss.model.tables.table_options import ChangelogImage
from fluss.records.arrow.received_bytes import ByteSource
from fluss.records.kv.kv_batch import read_kv_batch
from fluss.records.log.log_header import NO_BATCH_SEQUENCE, NO_WRITER_ID
from fluss_server.kv.auto_increment import Sequence as Numbers, TakeRange, numbers_of
from fluss_server.kv.batch_applier import apply, check_numbered, key_positions, records_of
from fluss_server.kv.changelog_batches import ChangelogWriter, Changes
from fluss_server.kv.key_codec import TableKeys
from fluss_server.kv.kv_pages import KvScan, value_batch_of
from fluss_server.kv.kv_recovery import replay
from fluss_server.kv.kv_store import KvStore, StoreState
from fluss_server.kv.merge_engines import KeepNew, delete_behavior, row_merger
from fluss_server.kv.stored_rows_codec import TableRows
from fluss_server.kv.write_cache import PendingChanges, rows_in_order
from fluss_server.put_request import OVERWRITE, KvTable, PutOrder
from fluss_server.server_errors import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fluss_server.log.bucket_log import BucketLog

# What is pending is held in memory, and read from the changelog again after a crash.
PENDING_BYTES_MAX: Final = 24 * 1024 * 1024
PENDING_MS_MAX: Final = 10_000


class KvTablet:
    """The rows of one bucket; called by one thread at a time."""

    def __init__(
        self, store: KvStore, log: BucketLog, table: KvTable, take_range: TakeRange | None
    ) -> None:
        """Serve a bucket whose store is up to its changelog; `open` sees to that."""
        self._store = store
        self._log = log
        self._take_range = take_range
        self._pending = PendingChanges()
        self._has_pending = False
        self._unsynced_since_ms: int | None = None
        self._row_count = store.state.row_count
        self._numbers: Numbers | None = None
        self.change_table(table)

    @classmethod
    def open(
        cls,
        *,
        directory: Path,
        log: BucketLog,
        table: KvTable,
        take_range: TakeRange | None = None,
        identity: bytes = b"",
    ) -> Self:
        """Open or make the rows in a directory, and apply what only the changelog has.

        Args:
            directory: Where the rows are.
            log: The bucket's changelog.
            table: The table.
            take_range: The counter of its auto-increment column, where it has one.
            identity: Whose rows they are.

        Raises:
            FlussError: KV_STORAGE_EXCEPTION: the rows or their changelog are damaged.
        """
        store = KvStore(directory, identity)
        try:
            rows = TableRows(table.schemas, table.info.options.kv_format)
            replay(
                store, log, rows, TableKeys(table.info, table.partition_name), table.info.options
            )
        except BaseException:
            store.close()
            raise
        return cls(store, log, table, take_range)

    def change_table(self, table: KvTable) -> None:
        """From now on the table is this one: it got a schema, or other options."""
        self._options = table.info.options
        self._rows = TableRows(table.schemas, self._options.kv_format)
        self._keys = TableKeys(table.info, table.partition_name)
        self._writer = ChangelogWriter(self._rows, self._options)
        if self._numbers is None:
            self._numbers = numbers_of(table.info.schema, self._options, self._take_range)

    # --- writing --------------------------------------------------------------------------------

    def put(self, records: ByteSource, order: PutOrder, *, now_ms: int) -> int:
        """Apply one batch of PUT_KV; one that was applied before is not applied again.

        Args:
            records: The batch.
            order: Which columns it writes, and how.
            now_ms: The time that its changes are stamped with.

        Returns:
            The offset behind its changes.

        Raises:
            CorruptDataError: The batch or one of its rows is damaged.
            FlussError: The table does not take it; `error_code` is the one that Java answers.
        """
        batch = read_kv_batch(records)
        if batch.schema_id not in self._rows.schemas:
            text = (
                f"Invalid schema id: {batch.schema_id}, latest schema id: {self._rows.latest_id}."
            )
            raise refuse(ErrorCode.SCHEMA_NOT_EXIST, text)
        if self._numbers is not None:
            check_numbered(self._rows.latest, self._numbers, order.target_columns)
        overwrite = order.agg_mode == OVERWRITE
        merger = row_merger(
            self._rows, self._options, order.target_columns or None, overwrite=overwrite
        )
        given = records_of(batch)
        image = self._options.changelog_image
        changes = Changes(says_before=image is ChangelogImage.FULL)
        # With image `wal` nobody needs to know what was there, where the new row stands anyway.
        blind = (
            image is ChangelogImage.WAL and isinstance(merger, KeepNew) and self._numbers is None
        )
        behavior = delete_behavior(self._options, overwrite=overwrite)
        present = self._present([key for key, row in given if row is None or not blind])
        apply(
            given,
            changes,
            merger=merger,
            behavior=behavior,
            present=present,
            number=None if self._numbers is None else self._numbers.fill(self._rows),
            is_blind=blind,
        )
        # Only now, as in Java: a batch that the table does not take is refused for that reason.
        written = self._log.writers.judge(batch.writer_id, batch.batch_sequence)
        if written is not None:
            return written.next_offset
        return self._append(changes, batch.writer_id, batch.batch_sequence, now_ms)

    def lookup_or_insert(
        self, keys: Sequence[bytes], order: PutOrder, *, now_ms: int
    ) -> list[bytes]:
        """The stored row of each key; one that has only the key is inserted where there is none.

        Args:
            keys: The keys.
            order: How the request is meant; its columns do not matter here.
            now_ms: The time of the inserts.

        Raises:
            FlussError: A column besides the key must not be NULL, the key does not tell all, or the
                table's merge engine takes whole rows only.
        """
        del order
        present = self._present(keys)
        # One that is asked for twice is written twice, as Java does; most engines do not mind.
        missing = [key for key in keys if present[key] is None]
        if missing:
            key = key_positions(self._rows.latest)
            merger = row_merger(self._rows, self._options, key, overwrite=False)
            changes = Changes(says_before=True)
            apply(
                list(zip(missing, self._keys.rows_of(missing, self._rows), strict=True)),
                changes,
                merger=merger,
                behavior=delete_behavior(self._options, overwrite=False),
                present=present,
                number=None if self._numbers is None else self._numbers.fill(self._rows),
                is_blind=False,
            )
            self._append(changes, NO_WRITER_ID, NO_BATCH_SEQUENCE, now_ms)
        return [row for row in (present[key] for key in keys) if row is not None]

    def _append(self, changes: Changes, writer_id: int, batch_sequence: int, now_ms: int) -> int:
        batch = self._writer.batch(changes, writer_id=writer_id, batch_sequence=batch_sequence)
        appended = self._log.append_changes(batch, now_ms=now_ms)
        self._pending.apply(changes.after)
        self._has_pending = True
        if self._unsynced_since_ms is None:
            self._unsynced_since_ms = now_ms
        self._row_count += changes.added
        return appended.next_offset

    # --- asking ---------------------------------------------------------------------------------

    @property
    def row_count(self) -> int:
        """How many keys there are; with changelog image `wal` nobody counts."""
        if self._options.changelog_image is not ChangelogImage.FULL:
            text = "Row count is disabled for this table, because its changelog image is WAL."
            raise refuse(ErrorCode.INVALID_TABLE_EXCEPTION, text)
        return self._row_count

    @property
    def applied_offset(self) -> int:
        """The log must be kept from here on: the store does not have what follows on disk."""
        return self._store.synced_offset

    def lookup(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The stored row of each key, None where there is none."""
        present = self._present(keys)
        return [present[key] for key in keys]

    def prefix_lookup(self, prefixes: Sequence[bytes]) -> list[list[bytes]]:
        """For each prefix the stored rows of all keys that begin so, in the order of their keys."""
        return [self._with_prefix(each) for each in prefixes]

    def limit_scan(self, limit: int) -> Sequence[ByteSource]:
        """The rows of the first keys, as a value batch."""
        first = zip(range(limit), self._from_key(b""), strict=False)
        return value_batch_of([row for _, (_, row) in first])

    def open_scan(self, *, limit: int | None) -> KvScan:
        """All rows of this moment, to be read page by page while others write."""
        self._write_pending()
        return KvScan(self._store.snapshot(), log_offset=self._log.end_offset, limit=limit)

    def _present(self, keys: Sequence[bytes]) -> dict[bytes, bytes | None]:
        unknown = self._pending.unknown(keys)
        stored = dict(zip(unknown, self._store.get(unknown), strict=True))
        if len(stored) == len(keys):
            return stored
        changed = self._pending.rows
        return {key: changed[key] if key in changed else stored[key] for key in keys}

    def _with_prefix(self, prefix: bytes) -> list[bytes]:
        found: list[bytes] = []
        for key, row in self._from_key(prefix):
            if not key.startswith(prefix):
                break
            found.append(row)
        return found

    def _from_key(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        return rows_in_order(self._pending.from_key(start), self._store.from_key(start))

    # --- the store ------------------------------------------------------------------------------

    def wants_flush(self, *, now_ms: int) -> bool:
        """Whether changes that are not on disk have become many, or old."""
        if self._unsynced_since_ms is None:
            return False
        is_old = now_ms - self._unsynced_since_ms >= PENDING_MS_MAX
        return is_old or self._pending.size_bytes > PENDING_BYTES_MAX

    def flush(self) -> None:
        """Move pending changes into the store, and the store onto the disk."""
        self._write_pending()
        self._store.sync()
        self._unsynced_since_ms = None

    def close(self) -> None:
        """Flush, and close the store."""
        try:
            self.flush()
        finally:
            self._store.close()

    def _write_pending(self) -> None:
        if not self._has_pending:
            return
        state = StoreState(applied_offset=self._log.end_offset, row_count=self._row_count)
        self._store.write(self._pending.rows, state)
        self._pending.clear()
        self._has_pending = False
