"""The open KV scans of a server: their owners, their next page, their expiry.

A scan is a snapshot that costs nothing until rows change, but it must not live for ever: there are
limits per bucket and in all, and an idle scan is closed. A page is read once; a request for any
page but the next closes the scan (Java: `TabletService.scanKv`, `ScannerManager`).
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fluss.error_codes import ErrorCode
from fluss.model.paths import TableBucket
from fluss_server.fair_lock import FairLock
from fluss_server.server_errors import request_error

if TYPE_CHECKING:
    from fluss_server.kv.kv_scan import KvScan
    from fluss_server.tablets import Tablet

SCANS_PER_BUCKET_MAX: Final = 8
SCANS_MAX: Final = 200
TTL_MS: Final = 600_000
_EXPIRED_KEPT: Final = 1_000
_ID_BYTES: Final = 16


@dataclass(slots=True, kw_only=True)
class OpenScan:
    """A scan that a client reads."""

    scan_id: bytes
    scan: KvScan
    tablet: Tablet
    sequence: int = 0
    used_ms: int
    lock: FairLock = field(default_factory=FairLock)

    @property
    def bucket(self) -> TableBucket:
        """The scanned bucket."""
        return self.tablet.bucket


class OpenScans:
    """All open scans of a server; used on its event loop."""

    def __init__(self) -> None:
        self._open: dict[bytes, OpenScan] = {}
        self._expired: OrderedDict[bytes, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def check_limits(self, bucket: TableBucket) -> None:
        """Refuse a scan beyond the limits.

        Raises:
            FlussError: There are too many scans. The code is 69, after which the client retries.
        """
        in_bucket = sum(each.bucket == bucket for each in self._open.values())
        if in_bucket >= SCANS_PER_BUCKET_MAX or len(self._open) >= SCANS_MAX:
            raise request_error(
                ErrorCode.TOO_MANY_SCANNERS,
                f"{in_bucket} scans of {bucket} and {len(self._open)} in all are open; "
                f"{SCANS_PER_BUCKET_MAX} and {SCANS_MAX} may be.",
            )

    def add(self, scan: KvScan, tablet: Tablet, *, now_ms: int) -> OpenScan:
        """Register a new scan."""
        scan_id = secrets.token_hex(_ID_BYTES).encode()
        opened = OpenScan(scan_id=scan_id, scan=scan, tablet=tablet, used_ms=now_ms)
        self._open[scan_id] = opened
        return opened

    def find(self, scan_id: bytes) -> OpenScan | None:
        """Return the scan with this id; None where it is not open."""
        return self._open.get(scan_id)

    def take(self, scan_id: bytes, sequence: int, *, now_ms: int) -> OpenScan:
        """Return a scan to read its next page.

        Raises:
            ScannerLostError: The scan does not exist, or has expired.
            FlussError: That page is not the next one; the scan is closed.
        """
        found = self._open.get(scan_id)
        if found is None:
            if scan_id in self._expired:
                raise request_error(
                    ErrorCode.SCANNER_EXPIRED, "The scan has expired due to inactivity."
                )
            raise request_error(ErrorCode.UNKNOWN_SCANNER_ID, "There is no such scan.")
        if sequence != found.sequence + 1:
            self.close(scan_id)
            raise request_error(
                ErrorCode.INVALID_SCAN_REQUEST,
                f"Page {sequence} of the scan was requested, and {found.sequence + 1} is the next one.",
            )
        found.sequence = sequence
        found.used_ms = now_ms
        return found

    def close(self, scan_id: bytes) -> None:
        """Close a scan; unknown ids are ignored."""
        found = self._open.pop(scan_id, None)
        if found is not None:
            found.scan.close()

    def expire(self, *, now_ms: int) -> None:
        """Close idle scans, and those of dropped buckets."""
        for scan_id, scan in list(self._open.items()):
            is_old = now_ms - scan.used_ms > TTL_MS
            if not scan.lock.is_held and (is_old or scan.tablet.is_dropped):
                self._expire_scan(scan_id, now_ms)
        while self._expired and next(iter(self._expired.values())) < now_ms - 2 * TTL_MS:
            self._expired.popitem(last=False)

    def close_all(self) -> None:
        """Close every scan."""
        for scan_id in list(self._open):
            self.close(scan_id)

    def close_table(self, table_id: int, partition_id: int | None, *, now_ms: int) -> None:
        """Close the scans of a dropped table or partition."""
        for scan_id, scan in list(self._open.items()):
            bucket = scan.bucket
            if bucket.table_id == table_id and partition_id in {None, bucket.partition_id}:
                self._expire_scan(scan_id, now_ms)

    def _expire_scan(self, scan_id: bytes, now_ms: int) -> None:
        self.close(scan_id)
        self._expired[scan_id] = now_ms
        if len(self._expired) > _EXPIRED_KEPT:
            self._expired.popitem(last=False)
