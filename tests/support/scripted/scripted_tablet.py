"""One scripted server that leads all buckets of one table and receives writes.

It serves what a writer needs: versions, metadata, writer ids, and a log for each bucket that checks
sequences as a real one does. `faults` are responses for the next write requests, in order.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from fluss.model.paths import TablePath
from fluss.records.kv.kv_batch import read_kv_batch
from fluss.records.log.log_batch import iter_log_batches
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_peer import ScriptedPeer, api_versions, error, success

TABLE_ID = 7
SILENCE = "silence"


class ScriptedTablet(ScriptedPeer):
    """A coordinator and tablet server in one."""

    def __init__(self, path: TablePath, *, buckets: int = 1) -> None:
        super().__init__(self._answer)
        self.path = path
        self.buckets = buckets
        # A code for every bucket of the request, SILENCE, or a function of the bucket's response.
        self.faults: deque[Any] = deque()
        self.init_faults: deque[int] = deque()
        self.writes: list[Any] = []
        self.log: dict[int, list[tuple[int, int, int]]] = {each: [] for each in range(buckets)}
        self.writer_ids = iter(range(100))

    def _answer(self, request: Any) -> bytes | None:
        match request.api_key:
            case ApiKey.API_VERSIONS:
                keys = [1000, 1012, 1014, 1016, 1026, 1007]
                return success(request, api_versions(*keys))
            case ApiKey.GET_METADATA:
                return success(request, self._metadata().SerializeToString())
            case ApiKey.INIT_WRITER:
                if self.init_faults:
                    return error(request, self.init_faults.popleft(), "not now")
                answer = pb.InitWriterResponse(writer_id=next(self.writer_ids))
                return success(request, answer.SerializeToString())
            case ApiKey.PRODUCE_LOG:
                return self._write(request, pb.ProduceLogRequest, pb.ProduceLogResponse)
            case ApiKey.PUT_KV:
                return self._write(request, pb.PutKvRequest, pb.PutKvResponse)
        return error(request, 2, "unknown")

    def _metadata(self) -> Any:
        answer = pb.MetadataResponse()
        answer.coordinator_server.CopyFrom(
            pb.PbServerNode(node_id=0, host=self.host, port=self.port)
        )
        answer.tablet_servers.add(node_id=0, host=self.host, port=self.port)
        table = answer.table_metadata.add(
            table_id=TABLE_ID, schema_id=1, table_json=b"{}", created_time=0, modified_time=0
        )
        table.table_path.database_name = self.path.database_name
        table.table_path.table_name = self.path.table_name
        for bucket in range(self.buckets):
            table.bucket_metadata.add(bucket_id=bucket, leader_id=0, leader_epoch=0)
        return answer

    def _write(self, request: Any, kind: Any, answer_kind: Any) -> bytes | None:
        asked = kind.FromString(request.body)
        self.writes.append(asked)
        fault = self.faults.popleft() if self.faults else None
        if fault == SILENCE:
            return None
        answer = answer_kind()
        for bucket in asked.buckets_req:
            found = answer.buckets_resp.add(bucket_id=bucket.bucket_id)
            if isinstance(fault, int):
                found.error_code = fault
                found.error_message = "as the test says"
                continue
            self._append(bucket, found, is_kv=kind is pb.PutKvRequest)
            if fault is not None:
                fault(answer, found)
        return success(request, answer.SerializeToString())

    def _append(self, bucket: Any, found: Any, *, is_kv: bool) -> None:
        log = self.log[bucket.bucket_id]
        if is_kv:
            batch = read_kv_batch(bucket.records)
            writer_id, sequence, count = batch.writer_id, batch.batch_sequence, len(batch)
        else:
            (one,) = iter_log_batches(bucket.records)
            writer_id, sequence = one.header.writer_id, one.header.batch_sequence
            count = one.record_count
        last = max((each for id_, each, _ in log if id_ == writer_id), default=-1)
        if writer_id >= 0 and sequence <= last:
            pass  # a duplicate: repeat the first response
        elif writer_id >= 0 and sequence != last + 1:
            found.error_code = 31
            found.error_message = (
                f"Out of order batch sequence for writer {writer_id} : {sequence} "
                f"(incoming batch seq.), {last} (current batch seq.)"
            )
            return
        else:
            log.append((writer_id, sequence, count))
        offset = sum(each for id_, number, each in log if (id_, number) < (writer_id, sequence))
        if is_kv:
            found.log_end_offset = offset + count
        else:
            found.base_offset = offset

    def forget_writers(self) -> None:
        """Lose the state of all writers, as a bucket does after a week without them."""
        self.log = {each: [] for each in self.log}
