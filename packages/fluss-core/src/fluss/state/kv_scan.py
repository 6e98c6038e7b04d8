"""All rows of a bucket of a primary-key table, as value batches: LIMIT_SCAN and SCAN_KV.

LIMIT_SCAN answers in one message, with the rows of some moment between request and answer;
of a log it gives the last rows, as log batches. SCAN_KV (1.0) gives pages of a snapshot that the
server keeps for the scan, with the offset of the changelog at which it was taken. The rows are not
decoded here.
"""

from __future__ import annotations

import logging
from typing import Final

import anyio

from fluss.errors import FlussError, error_from_code, unusable_answer
from fluss.model.paths import PhysicalTablePath, TableBucket
from fluss.net.cluster_client import Cluster
from fluss.wire import messages
from fluss.wire.api import ApiKey
from fluss.wire.byte_buffers import Buffer
from fluss.wire.messages import write_message
from fluss.wire.zero_copy import scan_batches as wire

log = logging.getLogger("fluss.kv_scan")

ROWS_MAX: Final = 2**31 - 1
CLOSE_WAIT_S_MAX: Final = 0.5


async def limit_scan(
    cluster: Cluster, path: PhysicalTablePath, bucket: TableBucket, *, limit: int
) -> wire.LimitScanResponse:
    """Return the first rows of a keyed bucket, or the last rows of a log; the answer says which.

    Raises:
        FlussError: The bucket cannot be read.
    """

    async def attempt() -> wire.LimitScanResponse:
        leader = await cluster.leader(path, bucket)
        request = messages.LimitScanRequest(
            table_id=bucket.table_id,
            partition_id=bucket.partition_id,
            bucket_id=bucket.bucket_id,
            limit=limit,
            routing_bucket_count=cluster.view.routing_count(bucket),
        )
        body = [write_message(request)]
        answer = wire.LIMIT_SCAN_RESPONSE.read(
            await cluster.send(leader.server_id, ApiKey.LIMIT_SCAN, body)
        )
        _check(cluster, path, bucket, answer)
        return answer

    return await cluster.retrying(attempt)


class KvScan:
    """One SCAN_KV of one bucket, page by page. Lives on the engine's loop.

    The server handles one request at a time and drops the scan at the first that is out of order.
    So a page whose answer is lost cannot be requested again: the reader must start a new scan.

    Attributes:
        log_offset: The offset of the changelog at which the snapshot stands, after `open`.
    """

    def __init__(
        self, cluster: Cluster, path: PhysicalTablePath, bucket: TableBucket, *, page_bytes: int
    ) -> None:
        self._page_bytes = page_bytes
        self._cluster = cluster
        self._path = path
        self._bucket = bucket
        self._server_id = -1
        self._scanner_id: bytes | None = None
        self._calls = 0
        self._first_page: Buffer = b""
        self.log_offset = -1

    async def open(self) -> None:
        """Have the server take its snapshot; retries while it has too many scans open.

        Raises:
            FlussError: The bucket cannot be read.
        """

        async def attempt() -> wire.ScanKvResponse:
            leader = await self._cluster.leader(self._path, self._bucket)
            self._server_id = leader.server_id
            request = messages.ScanKvRequest(call_seq_id=0, batch_size_bytes=self._page_bytes)
            request.bucket_scan_req.table_id = self._bucket.table_id
            request.bucket_scan_req.bucket_id = self._bucket.bucket_id
            if self._bucket.partition_id is not None:
                request.bucket_scan_req.partition_id = self._bucket.partition_id
            count = self._cluster.view.routing_count(self._bucket)
            if count is not None:
                request.bucket_scan_req.routing_bucket_count = count
            return await self._ask(request)

        answer = await self._cluster.retrying(attempt)
        if answer.log_offset is None:
            raise unusable_answer("SCAN_KV", "its first page names no offset of the log")
        self.log_offset = answer.log_offset
        self._first_page = self._taken(answer)

    async def next_page(self) -> Buffer | None:
        """Return the next rows as a value batch; None after the last.

        Raises:
            ScannerLostError: The server has dropped the scan.
        """
        page, self._first_page = self._first_page, b""
        while not len(page):
            if self._scanner_id is None:
                return None
            self._calls += 1
            request = messages.ScanKvRequest(
                scanner_id=self._scanner_id,
                call_seq_id=self._calls,
                batch_size_bytes=self._page_bytes,
            )
            page = self._taken(await self._ask(request))
        return page

    async def close(self) -> None:
        """End the scan on the server. Idempotent."""
        scanner_id, self._scanner_id = self._scanner_id, None
        if scanner_id is None:
            return
        # The server drops idle scans, too, so this need not succeed.
        with anyio.move_on_after(CLOSE_WAIT_S_MAX):
            try:
                await self._ask(messages.ScanKvRequest(scanner_id=scanner_id, close_scanner=True))
            except FlussError as error:
                log.debug("closing a scan of %s: %s", self._bucket, error.message)

    def _taken(self, answer: wire.ScanKvResponse) -> Buffer:
        # The last page still names the scanner, whose session has already ended.
        self._scanner_id = answer.scanner_id if answer.has_more_results else None
        return answer.records[0] if answer.records else b""

    async def _ask(self, request: messages.ScanKvRequest) -> wire.ScanKvResponse:
        body = [write_message(request)]
        answer = wire.SCAN_KV_RESPONSE.read(
            await self._cluster.send(self._server_id, ApiKey.SCAN_KV, body)
        )
        _check(self._cluster, self._path, self._bucket, answer)
        return answer


def _check(
    cluster: Cluster,
    path: PhysicalTablePath,
    bucket: TableBucket,
    answer: wire.LimitScanResponse | wire.ScanKvResponse,
) -> None:
    if answer.error_code is None:
        return
    error = error_from_code(
        answer.error_code,
        answer.error_message,
        table=str(path.table_path),
        bucket=bucket.bucket_id,
    )
    if error.refresh_metadata:
        cluster.view.forget_leader(bucket)
    raise error
