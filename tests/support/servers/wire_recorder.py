"""A recorder between clients and a cluster: it forwards and keeps all requests and responses.

It has one listening socket for each server of the cluster, and replaces the servers' addresses in
each response to GET_METADATA by those sockets, so that a client that uses `bootstrap` never
connects to a server itself. So any client can be recorded, also one in another process or language.
Nothing else is changed, delayed or reordered. It splits frames itself; bodies are decoded only on
demand.

    def test_a_key_is_looked_up(wire, database):  # the fixture of tests/support/servers/fix_wire.py
        table = fluss.connect(f"fluss://{wire.bootstrap}/{database}").table("events")
        with wire.recording() as seen:
            table.scan(filter=col("id") == 7).to_arrow()
        assert seen.counts() == {"LOOKUP": 1}
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from fluss.wire import messages as pb
from fluss.wire.api import ApiKey

SUCCESS = 0
SETTLE_S = 5.0
# Requests that a client sends on every new connection.
GREETINGS = frozenset({"API_VERSIONS", "AUTHENTICATE"})


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """One request and its response.

    Attributes:
        server: The real address of the server.
        api_key: The number of the API, which may be unknown here.
        request_body: The bytes after the frame's header.
        answer_kind: 0 success, 1 error, 2 failure; None while there is no response.
        answer_body: The bytes after its header, as the server sent them.
    """

    server: str
    api_key: int
    api_version: int
    request_body: bytes
    answer_kind: int | None = None
    answer_body: bytes = b""

    @property
    def api(self) -> str:
        """The name of the API."""
        return next((key.name for key in ApiKey if key == self.api_key), str(self.api_key))

    @property
    def request(self) -> Any:
        """The request as a message."""
        return ApiKey(self.api_key).request.FromString(self.request_body)

    @property
    def answer(self) -> Any:
        """The response as a message; an `ErrorResponse` for an error."""
        if self.answer_kind is None:
            raise LookupError(f"{self.api} has not been answered")
        known = ApiKey(self.api_key).response if self.answer_kind == SUCCESS else pb.ErrorResponse
        return known.FromString(self.answer_body)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAsked:
    """One bucket of a request that names buckets: a fetch, a lookup, a write, a limit scan.

    Attributes that a request of its kind does not have are None.

    Attributes:
        keys: How many keys are looked up.
        fetch_offset: Where a fetch begins.
        projected_fields: The positions of the columns that a fetch requests; None for all.
        has_filter: Whether a fetch has a filter for the server.
        limit: How many rows a limit scan requests.
        rows_bytes: How many bytes of rows were sent, in either direction.
        remote_segments: Start and end offsets of the remote segments that the response names.
    """

    api: str
    server: str
    table_id: int
    partition_id: int | None
    bucket_id: int
    keys: int | None = None
    fetch_offset: int | None = None
    fetch_bytes_max: int | None = None
    projected_fields: tuple[int, ...] | None = None
    has_filter: bool = False
    limit: int | None = None
    rows_bytes: int | None = None
    records: bytes = b""
    high_watermark: int | None = None
    remote_segments: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True, kw_only=True)
class Recording:
    """The exchanges that began while it was open, in the order of the requests."""

    exchanges: list[Exchange] = field(default_factory=list)

    def of(self, api: str) -> list[Exchange]:
        """Return the exchanges of one API."""
        return [each for each in self.exchanges if each.api == api]

    def counts(self) -> dict[str, int]:
        """Return how many requests of each API there were, without those of new connections."""
        return dict(Counter(each.api for each in self.exchanges if each.api not in GREETINGS))

    def buckets(self, *apis: str) -> list[BucketAsked]:
        """Return each requested bucket of fetches, lookups, limit scans and writes.

        Args:
            *apis: Only in requests of these.
        """
        selected = [each for each in self.exchanges if not apis or each.api in apis]
        return [asked for each in selected for asked in _buckets_in(each)]

    def reads(self) -> list[BucketAsked]:
        """Return the buckets of fetches for rows, without those for the high watermark alone."""
        return [each for each in self.buckets("FETCH_LOG") if (each.fetch_bytes_max or 0) > 1]

    @property
    def answer_bytes(self) -> int:
        """Return the size of all responses in bytes."""
        return sum(len(each.answer_body) for each in self.exchanges)


class WireRecorder:
    """Forwards and records the traffic between clients and a cluster.

    Args:
        bootstrap: An address of the cluster, or several.
    """

    def __init__(self, bootstrap: str) -> None:
        self._targets = [each.strip() for each in bootstrap.split(",")]
        self._lock = threading.Lock()
        self._answered = threading.Condition(self._lock)
        self._doors: dict[str, socket.socket] = {}
        self._sockets: set[socket.socket] = set()
        self._exchanges: list[Exchange] = []
        self._closed = False

    def __enter__(self) -> Self:
        self.bootstrap = ",".join(self.address_before(each) for each in self._targets)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            open_sockets = [*self._doors.values(), *self._sockets]
        for opened in open_sockets:
            _hang_up(opened)

    @contextlib.contextmanager
    def recording(self) -> Iterator[Recording]:
        """Record the requests until the block ends, and their responses."""
        seen = Recording()
        with self._lock:
            start = len(self._exchanges)
        yield seen
        with self._lock:
            seen.exchanges += self._exchanges[start:]
            # Prefetches without a waiting reader get responses, too.
            self._answered.wait_for(
                lambda: all(each.answer_kind is not None for each in seen.exchanges), SETTLE_S
            )

    def forget(self) -> None:
        """Discard what has been recorded, for instance the writes of the test's setup."""
        with self._lock:
            self._exchanges.clear()

    def address_before(self, server: str) -> str:
        """Return the recorder's address for a server."""
        with self._lock:
            if self._closed:
                raise ConnectionError("the recorder has ended")
            door = self._doors.get(server)
            if door is None:
                door = self._doors[server] = socket.create_server(("127.0.0.1", 0))
                _start(self._accept, door, server)
        host, port = door.getsockname()
        return f"{host}:{port}"

    # --- threads ------------------------------------------------------------------------------

    def _accept(self, door: socket.socket, server: str) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = door.accept()
                host, port = server.rsplit(":", 1)
                try:
                    target = socket.create_connection((host, int(port)), SETTLE_S)
                except OSError:
                    _hang_up(client)
                    continue
                target.settimeout(None)
                for end in (client, target):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._sockets |= {client, target}
                pending: dict[int, Exchange] = {}
                _start(self._pass_requests, client, target, server, pending)
                _start(self._pass_answers, target, client, pending)

    def _pass_requests(
        self,
        client: socket.socket,
        target: socket.socket,
        server: str,
        pending: dict[int, Exchange],
    ) -> None:
        with self._until_either_ends(client, target):
            for frame in _frames(client):
                api_key, version, request_id = struct.unpack_from(">hhi", frame)
                made = Exchange(
                    server=server,
                    api_key=api_key,
                    api_version=version,
                    request_body=bytes(frame[8:]),
                )
                with self._lock:
                    pending[request_id] = made
                    self._exchanges.append(made)
                target.sendall(struct.pack(">i", len(frame)) + frame)

    def _pass_answers(
        self, target: socket.socket, client: socket.socket, pending: dict[int, Exchange]
    ) -> None:
        with self._until_either_ends(target, client):
            for frame in _frames(target):
                kind = frame[0]
                if kind == 2:
                    asked, head = None, 1
                else:
                    head = 5
                    (request_id,) = struct.unpack_from(">i", frame, 1)
                    with self._lock:
                        asked = pending.pop(request_id, None)
                body = bytes(frame[head:])
                passed = body
                if asked is not None and asked.api_key == ApiKey.GET_METADATA and kind == SUCCESS:
                    passed = self._with_own_addresses(body)
                client.sendall(struct.pack(">i", head + len(passed)) + frame[:head] + passed)
                if asked is not None:
                    with self._answered:
                        asked.answer_body, asked.answer_kind = body, kind
                        self._answered.notify_all()

    @contextlib.contextmanager
    def _until_either_ends(self, *ends: socket.socket) -> Iterator[None]:
        try:
            with contextlib.suppress(OSError, EOFError):
                yield
        finally:
            for end in ends:
                _hang_up(end)
            with self._lock:
                self._sockets -= set(ends)

    def _with_own_addresses(self, body: bytes) -> bytes:
        metadata = pb.MetadataResponse.FromString(body)
        nodes = list(metadata.tablet_servers)
        if metadata.HasField("coordinator_server"):
            nodes.append(metadata.coordinator_server)
        for node in nodes:
            host, port = self.address_before(f"{node.host}:{node.port}").rsplit(":", 1)
            node.host, node.port = host, int(port)
        return metadata.SerializeToString()


# --- decoding of requests -------------------------------------------------------------------------


def _buckets_in(exchange: Exchange) -> Iterator[BucketAsked]:
    match exchange.api:
        case "FETCH_LOG":
            yield from _fetched(exchange)
        case "LOOKUP" | "PREFIX_LOOKUP":
            request = exchange.request
            for bucket in request.buckets_req:
                yield _asked(exchange, request, bucket, keys=len(bucket.keys))
        case "PUT_KV" | "PRODUCE_LOG":
            request = exchange.request
            for bucket in request.buckets_req:
                yield _asked(exchange, request, bucket, rows_bytes=len(bucket.records))
        case "LIMIT_SCAN":
            request = exchange.request
            size = len(exchange.answer.records) if exchange.answer_kind == SUCCESS else None
            yield _asked(exchange, request, request, limit=request.limit, rows_bytes=size)
        case "LIST_OFFSETS":
            request = exchange.request
            for bucket_id in request.bucket_id:
                yield BucketAsked(
                    api=exchange.api,
                    server=exchange.server,
                    table_id=request.table_id,
                    partition_id=_partition_of(request),
                    bucket_id=bucket_id,
                )


def _fetched(exchange: Exchange) -> Iterator[BucketAsked]:
    answers = {}
    if exchange.answer_kind == SUCCESS:
        for table in exchange.answer.tables_resp:
            for bucket in table.buckets_resp:
                answers[table.table_id, _partition_of(bucket), bucket.bucket_id] = bucket
    for table in exchange.request.tables_req:
        projected = tuple(table.projected_fields) if table.projection_pushdown_enabled else None
        for bucket in table.buckets_req:
            answer = answers.get((table.table_id, _partition_of(bucket), bucket.bucket_id))
            found = {} if answer is None else _found(answer)
            yield _asked(
                exchange,
                table,
                bucket,
                fetch_offset=bucket.fetch_offset,
                fetch_bytes_max=bucket.max_fetch_bytes,
                projected_fields=projected,
                has_filter=table.HasField("filter_predicate"),
                **found,
            )


def _found(answer: Any) -> dict[str, Any]:
    segments = answer.remote_log_fetch_info.remote_log_segments
    return {
        "records": answer.records,
        "rows_bytes": len(answer.records),
        "high_watermark": answer.high_watermark if answer.HasField("high_watermark") else None,
        "remote_segments": tuple(
            (each.remote_log_start_offset, each.remote_log_end_offset) for each in segments
        ),
    }


def _asked(exchange: Exchange, table: Any, bucket: Any, **facts: Any) -> BucketAsked:
    return BucketAsked(
        api=exchange.api,
        server=exchange.server,
        table_id=table.table_id,
        partition_id=_partition_of(bucket),
        bucket_id=bucket.bucket_id,
        **facts,
    )


def _partition_of(message: Any) -> int | None:
    return message.partition_id if message.HasField("partition_id") else None


# --- sockets --------------------------------------------------------------------------------------


def _frames(connection: socket.socket) -> Iterator[bytes]:
    with connection.makefile("rb") as stream:
        while head := stream.read(4):
            (length,) = struct.unpack(">i", head)
            frame = stream.read(length)
            if len(frame) != length:
                raise EOFError("the stream ended inside a frame")
            yield frame


def _start(work: Any, *arguments: Any) -> None:
    threading.Thread(target=work, args=arguments, name="wire-recorder", daemon=True).start()


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
