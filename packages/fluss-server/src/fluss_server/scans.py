"""Scans of rows by key that are under way: whose they are, what comes next, when they are given up.

A scan is a snapshot that costs nothing until others write, but may not be kept for ever: there
are limits per bucket and in all, and one that nobody asks about is closed. A page is given once;
whoever asks for another one than the next has lost the scan (Java: `TabletService.scanKv`,
`ScannerManager`).
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fluss.error_codes import ErrorCode
from fluss.model.paths import TableBucket
from fluss_server.fair_lock import FairLock
from fluss_server.server_errors import refuse

if TYPE_CHECKING:
    from fluss_server.kv.kv_pages import KvScan
    from fluss_server.tablets import Tablet

SCANS_PER_BUCKET_MAX: Final = 8
SCANS_MAX: Final = 200
TTL_MS: Final = 600_000
_EXPIRED_KEPT: Final = 1_000
_ID_BYTES: Final = 16


@dataclass(slots=True, kw_only=True)
class OpenScan:
    """A scan that somebody reads."""

    scan_id: bytes
    scan: KvScan
    tablet: Tablet
    sequence: int = 0
    used_ms: int
    turn: FairLock = field(default_factory=FairLock)

    @property
    def bucket(self) -> TableBucket:
        """What is scanned."""
        return self.tablet.bucket


class Scans:
    """All open scans of a server; used on its event loop."""

    def __init__(self) -> None:
        self._open: dict[bytes, OpenScan] = {}
        self._expired: OrderedDict[bytes, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def check_room(self, bucket: TableBucket) -> None:
        """Refuse one scan too many.

        Raises:
            FlussError: With code 69, after which the client tries again.
        """
        in_bucket = sum(each.bucket == bucket for each in self._open.values())
        if in_bucket >= SCANS_PER_BUCKET_MAX or len(self._open) >= SCANS_MAX:
            raise refuse(
                ErrorCode.TOO_MANY_SCANNERS,
                f"{in_bucket} scans of {bucket} and {len(self._open)} in all are open; "
                f"{SCANS_PER_BUCKET_MAX} and {SCANS_MAX} may be.",
            )

    def add(self, scan: KvScan, tablet: Tablet, *, now_ms: int) -> OpenScan:
        """Take a new scan in."""
        scan_id = secrets.token_hex(_ID_BYTES).encode()
        opened = OpenScan(scan_id=scan_id, scan=scan, tablet=tablet, used_ms=now_ms)
        self._open[scan_id] = opened
        return opened

    def find(self, scan_id: bytes) -> OpenScan | None:
        """The scan with this id, None where there is none."""
        return self._open.get(scan_id)

    def take(self, scan_id: bytes, sequence: int, *, now_ms: int) -> OpenScan:
        """The scan, for its next page.

        Raises:
            ScannerLostError: There is no such scan, or no more.
            FlussError: That page is not the next one; the scan is closed.
        """
        found = self._open.get(scan_id)
        if found is None:
            if scan_id in self._expired:
                raise refuse(ErrorCode.SCANNER_EXPIRED, "The scan has expired due to inactivity.")
            raise refuse(ErrorCode.UNKNOWN_SCANNER_ID, "There is no such scan.")
        if sequence != found.sequence + 1:
            self.close(scan_id)
            raise refuse(
                ErrorCode.INVALID_SCAN_REQUEST,
                f"The page {sequence} of the scan was asked for, where {found.sequence + 1} is next.",
            )
        found.sequence = sequence
        found.used_ms = now_ms
        return found

    def close(self, scan_id: bytes) -> None:
        """Close a scan; one that is not open is no mistake."""
        found = self._open.pop(scan_id, None)
        if found is not None:
            found.scan.close()

    def expire(self, *, now_ms: int) -> None:
        """Close the scans that nobody has asked about, and those of dropped buckets."""
        for scan_id, each in list(self._open.items()):
            is_old = now_ms - each.used_ms > TTL_MS
            if not each.turn.is_taken and (is_old or each.tablet.is_dropped):
                self._give_up(scan_id, now_ms)
        while self._expired and next(iter(self._expired.values())) < now_ms - 2 * TTL_MS:
            self._expired.popitem(last=False)

    def close_all(self) -> None:
        """Close every scan."""
        for scan_id in list(self._open):
            self.close(scan_id)

    def close_table(self, table_id: int, partition_id: int | None, *, now_ms: int) -> None:
        """Close the scans of a table, or of one of its partitions, because it was dropped."""
        for scan_id, each in list(self._open.items()):
            bucket = each.bucket
            if bucket.table_id == table_id and partition_id in {None, bucket.partition_id}:
                self._give_up(scan_id, now_ms)

    def _give_up(self, scan_id: bytes, now_ms: int) -> None:
        self.close(scan_id)
        self._expired[scan_id] = now_ms
        if len(self._expired) > _EXPIRED_KEPT:
            self._expired.popitem(last=False)
