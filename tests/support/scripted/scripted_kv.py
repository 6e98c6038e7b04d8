"""A scripted cluster that stores a primary-key table and serves SCAN_KV, as servers of 1.0 do.

Sessions behave as measured there: only the first page has the log offset, the last one still names
its scanner although the session has ended, any call out of order ends it, and a close always
succeeds. `page_rows` is the number of rows of a page; `scan_faults` are codes for the next calls.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fluss.model.tables.table_options import KvFormat
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast import to_wire_batch
from fluss.records.kv.row_bytes import rows_from_batch
from fluss.records.kv.value_batch import write_value_batch, write_values
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import SERVED, ScriptedCluster
from tests.support.scripted.scripted_peer import Request, api_versions, success

SERVED_TOO = [ApiKey.SCAN_KV, ApiKey.GET_LATEST_KV_SNAPSHOTS]
UNKNOWN_SCANNER, INVALID_SCAN = 67, 68


@dataclass
class _Session:
    pages: deque[bytes]
    calls: int = 0


@dataclass
class ScriptedKv(ScriptedCluster):
    """One server, one primary-key table."""

    page_rows: int = 3
    stored: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    stored_at: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scan_faults: deque[int] = deque()
        self.scans: list[Any] = []
        self.sessions: dict[bytes, _Session] = {}

    def _answer(self, request: Request) -> bytes | None:
        if request.api_key == ApiKey.API_VERSIONS:
            return success(request, api_versions(*SERVED, *SERVED_TOO))
        return super()._answer(request)

    def _scan_kv(self, asked: Any) -> Any:
        self.scans.append(asked)
        if self.scan_faults and not asked.close_scanner:
            code = self.scan_faults.popleft()
            if code:
                return self._refused(asked, code)
        if asked.close_scanner:
            self.sessions.pop(asked.scanner_id, None)
            return pb.ScanKvResponse()
        if asked.HasField("bucket_scan_req"):
            return self._opened(asked)
        session = self.sessions.get(asked.scanner_id)
        if session is None:
            return pb.ScanKvResponse(error_code=UNKNOWN_SCANNER)
        session.calls += 1
        if asked.call_seq_id != session.calls:
            return self._refused(asked, INVALID_SCAN)
        return self._page(asked.scanner_id)

    def _get_latest_kv_snapshots(self, _: Any) -> Any:
        return pb.GetLatestKvSnapshotsResponse(table_id=self.table_id)

    def _refused(self, asked: Any, code: int) -> Any:
        self.sessions.pop(asked.scanner_id, None)
        return pb.ScanKvResponse(error_code=code, error_message="as the test wants")

    def _opened(self, asked: Any) -> Any:
        if asked.call_seq_id != 0 or asked.batch_size_bytes <= 0 or asked.HasField("scanner_id"):
            return pb.ScanKvResponse(error_code=INVALID_SCAN)
        if not self.stored:
            return pb.ScanKvResponse(has_more_results=False, log_offset=self.stored_at)
        scanner_id = f"scanner-{len(self.scans):024}".encode()
        rows = [self.stored[at : at + self.page_rows] for at in self._page_starts()]
        self.sessions[scanner_id] = _Session(pages=deque(map(self._encoded, rows)))
        answer = self._page(scanner_id)
        answer.log_offset = self.stored_at
        return answer

    def _page_starts(self) -> range:
        return range(0, len(self.stored), self.page_rows)

    def _page(self, scanner_id: bytes) -> Any:
        session = self.sessions[scanner_id]
        answer = pb.ScanKvResponse(
            scanner_id=scanner_id,
            records=session.pages.popleft(),
            has_more_results=bool(session.pages),
        )
        if not session.pages:
            del self.sessions[scanner_id]
        return answer

    def _encoded(self, rows: list[tuple[int, dict[str, Any]]]) -> bytes:
        """Encode a page; all its rows have the schema of the first one."""
        schema_id = rows[0][0]
        schema = self.schemas[schema_id]
        batch = pa.RecordBatch.from_pylist([row for _, row in rows], schema=schema.to_arrow())
        layout = BatchLayout.of_schema(schema)
        encoded = rows_from_batch(to_wire_batch(batch, layout), layout, KvFormat.COMPACTED)
        return b"".join(write_value_batch(write_values(encoded, schema_id=schema_id)))
