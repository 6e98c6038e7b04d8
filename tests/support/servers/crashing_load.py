"""Writers that run until their server is killed, and a check of the rows after its restart.

The writer and its sequence determine a batch, so an unacknowledged batch is sent again after the
crash as an idempotent writer does it, and the rows can be compared one by one. Each writer has its
own keys.
"""

from __future__ import annotations

import threading
from random import Random
from typing import Any

from fluss.records.kv.value_batch import read_value_batch
from fluss.records.log.log_batch import LogBatch, iter_log_batches
from fluss.records.log.log_records import read_log_records
from fluss.wire import messages as pb
from tests.support.differential.differential_reads import ALL_BYTES
from tests.support.differential.differential_servers import ServerUnderComparison
from tests.support.differential.differential_tables import KINDS, DifferentialTable, Row, layout_of

WRITERS = (3, 4)
ROWS = 20
KEYS_OF_WRITER = 15
DELETES = 0.3
INSERT, BEFORE, AFTER, DELETE = 1, 2, 3, 4

KIND_BY_NAME = {each.name: each for each in KINDS}


class Load:
    """Two tables under load, over many crashes."""

    def __init__(self) -> None:
        self.log, self.keyed = (
            DifferentialTable(KIND_BY_NAME["log"]),
            DifferentialTable(KIND_BY_NAME["keyed"]),
        )
        # The number of acknowledged batches of each writer.
        self.acknowledged: dict[tuple[str, int], int] = {
            (table, writer): 0 for table in ("log", "keyed") for writer in WRITERS
        }
        self.failures: list[str] = []

    @property
    def count(self) -> int:
        """Return how many batches have been acknowledged, of all writers, in all rounds."""
        return sum(self.acknowledged.values())

    def create(self, client: ServerUnderComparison) -> None:
        for table in (self.log, self.keyed):
            request = pb.CreateTableRequest(
                table_path=client.path(table.name),
                table_json=table.descriptor.to_json().encode(),
                ignore_if_exists=True,
            )
            client.call(request)

    def start(self, bootstrap: str) -> list[threading.Thread]:
        """Start the writers; their threads end with the server."""
        jobs = [(self._append, each) for each in WRITERS] + [(self._put, each) for each in WRITERS]
        threads = [
            threading.Thread(target=_until_it_ends, args=(bootstrap, job, writer))
            for job, writer in [*jobs, (self._scan, 0)]
        ]
        for thread in threads:
            thread.start()
        return threads

    def _append(self, client: ServerUnderComparison, writer: int) -> None:
        sequence = self.acknowledged["log", writer]
        batch = self.log.log_batch(
            log_rows(writer, sequence), schema_id=1, writer=(writer, sequence)
        )
        request = pb.ProduceLogRequest(
            acks=-1, table_id=client.table_id(self.log.name), timeout_ms=10_000
        )
        request.buckets_req.add(bucket_id=0, records=batch)
        (answer,) = client.call(request).buckets_resp
        self._note("log", writer, answer)

    def _put(self, client: ServerUnderComparison, writer: int) -> None:
        sequence = self.acknowledged["keyed", writer]
        batch = self.keyed.kv_batch(
            changes(writer, sequence), schema_id=1, writer=(writer, sequence)
        )
        request = pb.PutKvRequest(
            acks=-1, table_id=client.table_id(self.keyed.name), timeout_ms=10_000
        )
        request.buckets_req.add(bucket_id=0, records=batch)
        (answer,) = client.call(request).buckets_resp
        self._note("keyed", writer, answer)

    def _scan(self, client: ServerUnderComparison, _: int) -> None:
        """Scan, which writes pending rows to the store ahead of its last flush."""
        request = pb.ScanKvRequest(batch_size_bytes=1 << 20, call_seq_id=0)
        request.bucket_scan_req.table_id = client.table_id(self.keyed.name)
        request.bucket_scan_req.bucket_id = 0
        answer = client.call(request)
        if answer.HasField("error_code"):
            self.failures.append(answer.error_message)

    def _note(self, table: str, writer: int, answer: Any) -> None:
        if answer.HasField("error_code"):
            self.failures.append(answer.error_message)
        else:
            self.acknowledged[table, writer] += 1

    # --- afterwards -----------------------------------------------------------------------------

    def check(self, client: ServerUnderComparison) -> None:
        """Check that each acknowledged batch is there once, and that rows by key match."""
        assert not self.failures, self.failures[:3]
        self._check_log(_batches_of(client, self.log))
        self._check_keyed(client)

    def _check_log(self, batches: list[LogBatch]) -> None:
        found = self._check_headers("log", batches)
        layout = layout_of(self.log.newest)
        for batch in batches[-50:]:  # the others have been checked after earlier crashes
            rows, _ = read_log_records(batch, layout, self.log.log_format)
            expected = log_rows(batch.header.writer_id, batch.header.batch_sequence)
            assert rows.column(0).to_pylist() == [row[0] for row in expected]
        assert sum(each.record_count for each in batches) == ROWS * sum(found.values())

    def _check_keyed(self, client: ServerUnderComparison) -> None:
        batches = _batches_of(client, self.keyed)
        found = self._check_headers("keyed", batches)
        replayed: dict[int, Any] = {}
        layout = layout_of(self.keyed.newest)
        for batch in batches:
            if not batch.record_count:
                continue
            rows, kinds = read_log_records(batch, layout, self.keyed.log_format)
            assert kinds is not None
            columns = (rows.column(0).to_pylist(), rows.column(2).to_pylist(), kinds.tolist())
            for key, number, kind in zip(*columns, strict=True):
                before = replayed.get(key)
                assert before == number if kind in {BEFORE, DELETE} else True
                assert (before is None) == (kind == INSERT) or kind == AFTER
                if kind == DELETE:
                    del replayed[key]
                elif kind != BEFORE:
                    replayed[key] = number
        assert replayed == _model(found)
        assert state_of(client, self.keyed) == replayed

    def _check_headers(self, table: str, batches: list[LogBatch]) -> dict[int, int]:
        """Check each writer's batches: no duplicates, no gaps, at most one more than known."""
        found: dict[int, int] = dict.fromkeys(WRITERS, 0)
        offset = 0
        for batch in batches:
            header = batch.header
            assert header.base_offset == offset
            offset = header.next_offset
            assert header.batch_sequence == found[header.writer_id]
            found[header.writer_id] += 1
        for writer, count in found.items():
            assert count - self.acknowledged[table, writer] in {0, 1}, (table, writer)
        return found


def _until_it_ends(bootstrap: str, job: Any, writer: int) -> None:
    try:
        client = ServerUnderComparison(bootstrap, "fluss")
        try:
            while True:
                job(client, writer)
        finally:
            client.close()
    except OSError:
        return


def log_rows(writer: int, sequence: int) -> list[Row]:
    return [(sequence * ROWS + each, f"row {each}", writer, None) for each in range(ROWS)]


def changes(writer: int, sequence: int) -> list[tuple[Row, bool]]:
    chance = Random(writer << 32 | sequence)
    keys = [chance.randrange(KEYS_OF_WRITER) for _ in range(chance.randrange(1, 9))]
    return [
        ((1_000 * writer + key, "name", sequence, None), chance.random() < DELETES) for key in keys
    ]


def _model(found: dict[int, int]) -> dict[int, int]:
    rows: dict[int, int] = {}
    for writer, count in found.items():
        for sequence in range(count):
            for row, is_delete in changes(writer, sequence):
                if is_delete:
                    rows.pop(row[0], None)
                else:
                    rows[row[0]] = row[2]
    return rows


def _batches_of(client: ServerUnderComparison, table: DifferentialTable) -> list[LogBatch]:
    found: list[LogBatch] = []
    offset = 0
    while True:
        request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=ALL_BYTES)
        asked = request.tables_req.add(
            table_id=client.table_id(table.name), projection_pushdown_enabled=False
        )
        asked.buckets_req.add(bucket_id=0, fetch_offset=offset, max_fetch_bytes=ALL_BYTES)
        ((bucket,),) = (each.buckets_resp for each in client.call(request).tables_resp)
        assert not bucket.HasField("error_code"), bucket.error_message
        if not bucket.records:
            return found
        found += iter_log_batches(bucket.records, tail="refuse")
        offset = found[-1].next_offset


def state_of(client: ServerUnderComparison, table: DifferentialTable) -> dict[int, Any]:
    """Return the third column of every row by the first one."""
    request = pb.LimitScanRequest(
        table_id=client.table_id(table.name), bucket_id=0, limit=1_000_000
    )
    frames = read_value_batch(client.call(request).records)
    data = frames.data.tobytes()
    rows = [
        table.read_value(data[start:end])
        for start, end in zip(frames.starts.tolist(), frames.ends.tolist(), strict=True)
    ]
    return {row[0]: row[2] for row in rows}
