"""Remote segments of a scripted cluster: where their files are, and the token for their store."""

import json

from fluss.wire import messages as pb


class Store:
    """A directory of segments, and a server whose answers name them."""

    def __init__(self, cluster, directory):
        self.cluster = cluster
        self.directory = directory
        self.segments = []
        self.start_positions = {}
        cluster.on_fetch = self.answer

    def move(self, count, *, write=None):
        """Move the next `count` batches of bucket 0 into a segment of their own."""
        log = self.cluster.logs[0]
        at = sum(each[2] for each in self.segments)
        batches = log[at : at + count]
        data = b"".join(each.data for each in batches)
        name = f"{batches[0].base:020d}.log"
        (write or self._write)(f"segment{len(self.segments)}/{name}", data)
        position = 0
        for each in batches:
            self.start_positions[each.base] = position
            position += len(each.data)
        self.segments.append((batches[0].base, batches[-1].end, count, len(data)))

    def _write(self, name, data):
        path = self.directory / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)

    def path(self, index):
        base = self.segments[index][0]
        return self.directory / f"segment{index}" / f"{base:020d}.log"

    def answer(self, asked):
        offset = max(asked.tables_req[0].buckets_req[0].fetch_offset, 0)
        left = [(index, each) for index, each in enumerate(self.segments) if each[1] > offset]
        if not left:
            return "as usual"
        answer = pb.FetchLogResponse()
        bucket = answer.tables_resp.add(table_id=self.cluster.table_id).buckets_resp.add(
            bucket_id=0, high_watermark=self.cluster.end(0)
        )
        info = bucket.remote_log_fetch_info
        info.remote_log_tablet_dir = str(self.directory)
        info.first_start_pos = self.start_positions[
            max(b for b in self.start_positions if b <= offset)
        ]
        for index, (base, end, _, size) in left:
            info.remote_log_segments.add(
                remote_log_segment_id=f"segment{index}",
                remote_log_start_offset=base,
                remote_log_end_offset=end,
                segment_size_in_bytes=size,
            )
        return answer


def token_answer(parts, *, expires_ms=None, **facts):
    """A handler of the request for a token. In the names of facts, `__` stands for a dot."""

    def answer(_):
        made = pb.GetFileSystemSecurityTokenResponse(
            schema="s3", token=json.dumps(parts).encode() if parts else b""
        )
        if expires_ms is not None:
            made.expiration_time = expires_ms
        for key, value in facts.items():
            made.addition_info.add(key=key.replace("__", "."), value=value)
        return made

    return answer
