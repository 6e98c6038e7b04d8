"""The ledger: a second record of what a data directory must contain, beside catalog and logs.

One file with fixed positions that are overwritten: a head, and a slot for each bucket that has a
log. The head records the newest state of the catalog, which reveals a catalog that lost its last
changes. A slot records up to where a log has been acknowledged, which reveals a log that lost its
end, or all of it. A slot is written by one small write into the page cache, which survives
SIGKILL.

=====  ==================================================================================
head   magic (4), CRC-32C of what follows (4), state (4), pages of slots (4), data directory
       (16), run (16), start of the system (16), catalog: sequence (8) and check (16), next
       table id (8), next partition id (8), next writer id (8)
slot   CRC-32C of what follows (4), its own number (4), table (8), partition (8, -1 for
       none), bucket (4), 0 (4), generation of the log's list of segments (8), end offset
       (8), segment (8), bytes of it (8), CRC-32C of its headers (4); zeros where it is free
=====  ==================================================================================

This file does not compare: `data_directory` compares the catalog with the ledger, and
`log.log_inventory` compares a log with it.
"""

from __future__ import annotations

import os
import struct
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Final, Self

from crc32c import crc32c

from fluss.model.paths import TableBucket
from fluss_server.damage_errors import DamagedDataError, damaged, fresh_copy, removed
from fluss_server.ledger_marks import LogMark, NextNumbers
from fluss_server.log import log_files as files
from fluss_server.system_boot import NO_BOOT, boot_id

_PAGE_BYTES: Final = 4096
_SLOT_BYTES: Final = 128
_SLOTS_IN_PAGE: Final = _PAGE_BYTES // _SLOT_BYTES
_MAGIC: Final = b"FLG1"
_CRC = struct.Struct("<4sI")
_HEAD = struct.Struct("<II16s16s16sq16sqqq")
_SLOT_CRC = struct.Struct("<I")
_SLOT = struct.Struct("<IqqiiqqqqI")
_FREE: Final = bytes(_SLOT_CRC.size + _SLOT.size)
_NO_PARTITION: Final = -1
NO_CHECK: Final = bytes(16)


class DirectoryState(IntEnum):
    """The state in which the last server left the directory."""

    NEW = 0  # its creation or upgrade is not finished
    RUNNING = 1  # it runs, or did not stop cleanly
    CLEAN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The part of the ledger about the directory as a whole."""

    state: DirectoryState = DirectoryState.NEW
    pages: int = 0
    directory_id: bytes = NO_CHECK
    run_id: bytes = NO_CHECK
    boot: bytes = NO_BOOT
    sequence: int = 0
    check: bytes = NO_CHECK
    next_numbers: NextNumbers = field(default_factory=NextNumbers)

    def to_bytes(self) -> bytes:
        """Encode the head."""
        body = _HEAD.pack(
            self.state,
            self.pages,
            self.directory_id,
            self.run_id,
            self.boot,
            self.sequence,
            self.check,
            self.next_numbers.table_id,
            self.next_numbers.partition_id,
            self.next_numbers.writer_id,
        )
        return _CRC.pack(_MAGIC, crc32c(body)) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Head | None:
        """Decode a head; None where its bytes are damaged."""
        if len(data) < _CRC.size + _HEAD.size:
            return None
        magic, crc = _CRC.unpack_from(data)
        body = data[_CRC.size : _CRC.size + _HEAD.size]
        if magic != _MAGIC or crc32c(body) != crc:
            return None
        state, pages, directory, run, boot, sequence, check, *next_numbers = _HEAD.unpack(body)
        return cls(
            state=DirectoryState(state),
            pages=pages,
            directory_id=directory,
            run_id=run,
            boot=boot,
            sequence=sequence,
            check=check,
            next_numbers=NextNumbers(
                table_id=next_numbers[0], partition_id=next_numbers[1], writer_id=next_numbers[2]
            ),
        )


class Ledger:
    """The open file. Any thread may write a slot, one thread at a time for each slot.

    Args:
        path: The file.
        descriptor: Its descriptor.
        head: The head that was read from it.
        is_durable: Whether the head is synced.
    """

    def __init__(self, path: Path, descriptor: int, head: Head, *, is_durable: bool) -> None:
        self.path = path
        self.found_head = head
        self._head = head
        self._descriptor = descriptor
        self._is_durable = is_durable
        self._lock = threading.RLock()
        self._slots: dict[TableBucket, int] = {}
        self._marks: dict[TableBucket, LogMark] = {}
        self._free: list[int] = []
        self._failure: DamagedDataError | None = None

    @classmethod
    def create(cls, path: Path, *, is_durable: bool, directory_id: bytes | None = None) -> Self:
        """Create the file; the directory gets a new id unless one is passed."""
        head = Head(directory_id=directory_id or uuid.uuid4().bytes)
        files.replace_file(path, head.to_bytes().ljust(_PAGE_BYTES, b"\0"), durable=is_durable)
        if is_durable:
            files.sync_directory(path.parent)
        return cls(path, files.open_existing(path), head, is_durable=is_durable)

    @classmethod
    def open(cls, path: Path, *, is_durable: bool) -> Self:
        """Open the file of a directory.

        Raises:
            DamagedDataError: The file is damaged.
            OSError: The file is missing, or the disk refused.
        """
        descriptor = files.open_existing(path)
        try:
            data = files.read(descriptor, 0, os.fstat(descriptor).st_size)
            made = cls(path, descriptor, _read_head(path, data), is_durable=is_durable)
            made._read_slots(data)
        except BaseException:
            os.close(descriptor)
            raise
        return made

    @property
    def directory_id(self) -> bytes:
        """The id that the directory got when it was created."""
        return self._head.directory_id

    @property
    def marks_are_exact(self) -> bool:
        """Whether everything that the last server wrote is on disk, synced or not.

        The writes of a killed server are in the page cache; those before a power cut may be lost.
        """
        found = self.found_head
        if found.state is DirectoryState.NEW:
            return False
        return found.state is DirectoryState.CLEAN or (
            found.boot != NO_BOOT and found.boot == boot_id()
        )

    # --- the head -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Record that a server runs; no other server may write here from now on.

        Raises:
            OSError: The disk refused.
        """
        self._write_head(state=DirectoryState.RUNNING, run_id=uuid.uuid4().bytes, boot=boot_id())

    def seal(self, sequence: int, check: bytes, next_numbers: NextNumbers) -> None:
        """Record a state of the catalog, which the catalog has already committed.

        Raises:
            OSError: The disk refused.
        """
        self._write_head(sequence=sequence, check=check, next_numbers=next_numbers)

    def end(self) -> None:
        """Record a clean stop: every log is closed.

        Raises:
            OSError: The disk refused.
        """
        self._write_head(state=DirectoryState.CLEAN)

    def check(self) -> None:
        """Refuse to continue where the file no longer belongs to this server.

        Raises:
            DamagedDataError: It was removed or replaced, or another server has begun to write
                here.
        """
        if self._failure is None:
            self._failure = self._find_failure()
        self.refuse_if_failed()

    def refuse_if_failed(self) -> None:
        """Refuse to write where the last `check` failed.

        Raises:
            DamagedDataError: The error of that check.
        """
        if self._failure is not None:
            raise fresh_copy(self._failure)

    def _find_failure(self) -> DamagedDataError | None:
        try:
            is_in_place = os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except OSError:
            is_in_place = False
        if not is_in_place:
            return removed(self.path, "nothing more is written to its directory")
        head = Head.from_bytes(files.read(self._descriptor, 0, _PAGE_BYTES))
        if head is None or head.run_id != self._head.run_id:
            return DamagedDataError(
                f"Another server writes to the directory of {self.path}, so this one writes nothing "
                "more to it.",
                hint="Stop both servers, and start one.",
                path=str(self.path),
            )
        return None

    def _write_head(self, **changes: object) -> None:
        with self._lock:
            head = replace(self._head, **changes)  # type: ignore[arg-type]
            files.write_at(self._descriptor, 0, head.to_bytes())
            if self._is_durable:
                files.sync(self._descriptor)
            self._head = head

    # --- slots ----------------------------------------------------------------------------------

    def buckets(self) -> Iterator[TableBucket]:
        """Iterate over the buckets that have a log."""
        return iter(list(self._slots))

    def entry(self, bucket: TableBucket) -> LedgerEntry:
        """Return the entry of one bucket."""
        return LedgerEntry(self, bucket, self._marks.get(bucket))

    def write_slot(self, slot: int, data: bytearray) -> None:
        """Overwrite a slot.

        Raises:
            OSError: The disk refused.
        """
        files.write_at(self._descriptor, _slot_position(slot), data)

    def forget(self, table_id: int, partition_id: int | None = None) -> None:
        """Free the slots of a table or partition that was dropped."""
        with self._lock:
            for bucket in list(self._slots):
                if bucket.table_id == table_id and partition_id in {None, bucket.partition_id}:
                    slot = self._slots.pop(bucket)
                    self._marks.pop(bucket, None)
                    files.write_at(self._descriptor, _slot_position(slot), _FREE)
                    self._free.append(slot)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def claim(self, bucket: TableBucket) -> int:
        """Return the number of a bucket's slot; assign a free one where it has none.

        Raises:
            OSError: The disk refused.
        """
        with self._lock:
            known = self._slots.get(bucket)
            if known is not None:
                return known
            pages = self._head.pages
            is_full = not self._free
            if is_full:
                files.write_at(self._descriptor, (1 + pages) * _PAGE_BYTES, bytes(_PAGE_BYTES))
                first = pages * _SLOTS_IN_PAGE
                self._free += range(first + _SLOTS_IN_PAGE - 1, first - 1, -1)
            slot = self._slots[bucket] = self._free.pop()
            if is_full:
                # After the page: the file is never shorter than the head records. Under the lock:
                # another thread that needs a page takes the next one.
                self._write_head(pages=pages + 1)
        return slot

    def _read_slots(self, data: bytes) -> None:
        for slot in range(self._head.pages * _SLOTS_IN_PAGE):
            at = _slot_position(slot)
            if data[at : at + len(_FREE)] == _FREE:
                self._free.append(slot)
                continue
            (crc,) = _SLOT_CRC.unpack_from(data, at)
            start = at + _SLOT_CRC.size
            number, table_id, partition_id, bucket_id, _, *mark = _SLOT.unpack_from(data, start)
            if crc32c(data[start : start + _SLOT.size]) != crc or number != slot:
                why = f"is damaged at byte {at}: a slot has a wrong checksum"
                raise damaged(self.path, why, at=at)
            bucket = TableBucket(
                table_id,
                bucket_id,
                partition_id=None if partition_id == _NO_PARTITION else partition_id,
            )
            self._slots[bucket] = slot
            self._marks[bucket] = LogMark(
                generation=mark[0],
                end_offset=mark[1],
                segment=mark[2],
                size=mark[3],
                headers_crc=mark[4],
            )
        self._free.reverse()


class LedgerEntry:
    """One bucket's part of the ledger.

    Args:
        ledger: The ledger.
        bucket: The bucket.
        mark: The mark of the last server; None where the bucket had no log.
    """

    __slots__ = ("_body", "_bucket", "_ledger", "_partition", "_slot", "_slot_bytes", "mark")

    def __init__(self, ledger: Ledger, bucket: TableBucket, mark: LogMark | None) -> None:
        self._ledger = ledger
        self._bucket = bucket
        partition_id = bucket.partition_id
        self._partition = _NO_PARTITION if partition_id is None else partition_id
        self._slot: int | None = None
        # The log serializes the writes.
        self._slot_bytes = bytearray(_SLOT_CRC.size + _SLOT.size)
        self._body = memoryview(self._slot_bytes)[_SLOT_CRC.size :]
        self.mark = mark

    @property
    def directory_id(self) -> bytes:
        """The id of the data directory."""
        return self._ledger.directory_id

    @property
    def is_exact(self) -> bool:
        """Whether the log must reach its mark; after a power cut it may end before."""
        return self._ledger.marks_are_exact

    @property
    def path(self) -> Path:
        """The ledger's file, for messages."""
        return self._ledger.path

    def write(self, mark: LogMark) -> None:
        """Record how far the log has been acknowledged.

        Raises:
            OSError: The disk refused.
        """
        if self._slot is None:
            self._slot = self._ledger.claim(self._bucket)
        bucket = self._bucket
        _SLOT.pack_into(
            self._body,
            0,
            self._slot,
            bucket.table_id,
            self._partition,
            bucket.bucket,
            0,
            mark.generation,
            mark.end_offset,
            mark.segment,
            mark.size,
            mark.headers_crc,
        )
        _SLOT_CRC.pack_into(self._slot_bytes, 0, crc32c(self._body))
        self._ledger.write_slot(self._slot, self._slot_bytes)

    def check(self) -> None:
        """Refuse to write where the directory no longer belongs to this server.

        Raises:
            DamagedDataError: The error of the ledger's last check.
        """
        self._ledger.refuse_if_failed()


def _read_head(path: Path, data: bytes) -> Head:
    head = Head.from_bytes(data)
    if head is None:
        raise damaged(path, "is damaged at byte 0: its head has a wrong checksum", at=0)
    size = (1 + head.pages) * _PAGE_BYTES
    if len(data) < size:
        raise damaged(path, f"ends at byte {len(data)} where it had {size}", at=len(data))
    return head


def _slot_position(slot: int) -> int:
    return _PAGE_BYTES + slot * _SLOT_BYTES
