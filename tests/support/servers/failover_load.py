"""Clients of a replicated cluster that work while its servers fail, and a record of their calls.

Threads write, read, follow, look up and scan a log table and a primary-key table, each over its own
connection, and new sessions are opened all the time. Every call is recorded with its duration and
its error. `Load.verify` compares the final rows with what was acknowledged.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import fluss
from fluss.net.engine_thread import engine
from fluss.session import Session, Table
from fluss.wire import messages as pb

OPERATION_TIMEOUT_S = 90
PAUSE_S = 0.02
ROWS_AT_ONCE = 20
KEYS = 60
BUCKETS = 3
SYNC_S_MAX = 90.0
REPLICAS = {"table.replication.factor": "3"}
LOG = pa.schema([("n", pa.int64()), ("text", pa.string())])
KEYED = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of one worker."""

    kind: str
    begin: float
    seconds: float
    error: Exception | None


@dataclass
class Load:
    """The workers of one database; `running` starts them and waits for their end."""

    bootstrap: str
    calls: list[Call] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    acknowledged: int = 0
    written: int = 0
    doubtful: set[int] = field(default_factory=set)
    followed: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        # For each key the last number that was acknowledged, and the last that was sent.
        self._acked = dict.fromkeys(range(KEYS), 0)
        self._sent = dict.fromkeys(range(KEYS), 0)
        with self._session() as session:
            session.create_database("failover")
            log = session.create_table("failover.log", LOG, buckets=BUCKETS, properties=REPLICAS)
            keyed = session.create_table(
                "failover.keyed", KEYED, primary_key=["id"], buckets=BUCKETS, properties=REPLICAS
            )
            keyed.upsert({"id": list(range(KEYS)), "n": [0] * KEYS})
            log.append({"n": [-1], "text": ["first"]})

    def _session(self) -> Session:
        # Sessions with the same settings share a connection; different settings give each worker
        # its own.
        return fluss.connect(
            f"fluss://{self.bootstrap}",
            operation_timeout_ms=OPERATION_TIMEOUT_S * 1_000,
            retry_backoff_max_ms=1_000 + next(_numbers) % 500,
        )

    # --- workers ------------------------------------------------------------------------------

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the workers for the duration of the block."""
        workers = [
            threading.Thread(target=self._work, args=(each,), name=each.__name__, daemon=True)
            for each in (
                self._append,
                self._upsert,
                self._look_up,
                self._scan_log,
                self._scan_state,
                self._open_session,
                self._follow,
            )
        ]
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            self._stop.set()
            for worker in workers:
                worker.join(2 * OPERATION_TIMEOUT_S)
            self.wrong += [f"{each.name} hangs" for each in workers if each.is_alive()]

    def _work(self, job: Callable[[Session, Callable[..., Any]], Any]) -> None:
        kind = job.__name__.strip("_")

        def timed(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            begin, error = time.monotonic(), None
            try:
                return call(*arguments, **named)
            except Exception as caught:
                error = caught
                raise
            finally:
                seconds = time.monotonic() - begin
                self.calls.append(Call(kind=kind, begin=begin, seconds=seconds, error=error))

        with self._session() as session:
            while not self._stop.is_set():
                try:
                    job(session, timed)
                except fluss.FlussError as error:
                    self._note_if_unknown(error)
                self._stop.wait(PAUSE_S)

    def _note_if_unknown(self, error: Exception) -> None:
        if not any(each.error is error for each in self.calls[-500:]):
            self.wrong.append(f"an error outside of calls: {error!r}")

    def _append(self, session: Session, timed: Callable[..., Any]) -> None:
        numbers = list(range(self.written, self.written + ROWS_AT_ONCE))
        rows = {"n": numbers, "text": [f"row {each}" for each in numbers]}
        try:
            timed(session.append, "failover.log", rows)
        except fluss.FlussError:
            self.doubtful.update(numbers)
        else:
            self.acknowledged += ROWS_AT_ONCE
        self.written += ROWS_AT_ONCE

    def _upsert(self, session: Session, timed: Callable[..., Any]) -> None:
        key = next(_numbers) % KEYS
        number = self._sent[key] = self._sent[key] + 1
        timed(session.upsert, "failover.keyed", {"id": [key], "n": [number]})
        self._acked[key] = number

    def _look_up(self, session: Session, timed: Callable[..., Any]) -> None:
        keys = [next(_numbers) % KEYS, next(_numbers) % KEYS]
        table = session.table("failover.keyed")
        before = dict(self._acked)
        found = timed(table.lookup, [{"id": each} for each in keys])
        self._compare("lookup", dict(zip(keys, found.column("n").to_pylist(), strict=True)), before)

    def _scan_state(self, session: Session, timed: Callable[..., Any]) -> None:
        table = session.table("failover.keyed")
        before = dict(self._acked)
        found = timed(lambda: table.scan().to_arrow()).to_pydict()
        if sorted(found["id"]) != list(range(KEYS)):
            self.wrong.append(f"a state of the keys {sorted(found['id'])}")
        self._compare("state", dict(zip(found["id"], found["n"], strict=True)), before)

    def _compare(self, what: str, found: dict[int, int], before: dict[int, int]) -> None:
        for key, number in found.items():
            if not before[key] <= number <= self._sent[key]:
                self.wrong.append(
                    f"{what}: key {key} has {number}, of {before[key]} to {self._sent[key]}"
                )

    def _scan_log(self, session: Session, timed: Callable[..., Any]) -> None:
        table = session.table("failover.log")
        before = self.written
        scan = table.scan(with_metadata=["_bucket", "_log_offset"])
        self._check_log(timed(scan.to_arrow), at_least=before)

    def _open_session(self, session: Session, timed: Callable[..., Any]) -> None:
        del session

        def open_and_ask() -> None:
            with self._session() as opened:
                opened.table("failover.log")

        timed(open_and_ask)

    def _follow(self, session: Session, timed: Callable[..., Any]) -> None:
        with session.table("failover.log").follow(
            start="earliest", with_metadata=["_bucket", "_log_offset"]
        ) as follow:
            while not self._stop.is_set():
                self._take(timed(follow.poll, 0.5))
            # The last rows arrive immediately; so many polls without new rows mean the end.
            quiet = 0
            while quiet < 2:
                batches = timed(follow.poll, 1.0)
                quiet = 0 if batches else quiet + 1
                self._take(batches)

    def _take(self, batches: list[pa.RecordBatch]) -> None:
        for batch in batches:
            rows = batch.to_pydict()
            for bucket, offset, n in zip(
                rows["_bucket"], rows["_log_offset"], rows["n"], strict=True
            ):
                self.followed[bucket].append((offset, n))

    # --- what must hold -----------------------------------------------------------------------

    def _check_log(self, found: pa.Table, *, at_least: int) -> dict[int, list[tuple[int, int]]]:
        """Check that no row is lost, duplicated or reordered, and that offsets have no gap."""
        buckets: dict[int, list[tuple[int, int]]] = defaultdict(list)
        rows = found.to_pydict()
        for bucket, offset, n in zip(rows["_bucket"], rows["_log_offset"], rows["n"], strict=True):
            buckets[bucket].append((offset, n))
        for bucket, pairs in buckets.items():
            offsets, numbers = [each for each, _ in pairs], [each for _, each in pairs]
            if offsets != list(range(len(offsets))):
                self.wrong.append(f"bucket {bucket} of the log has holes or repeats offsets")
            if numbers != sorted(numbers):
                self.wrong.append(f"bucket {bucket} of the log is out of order")
        times = Counter(rows["n"])
        doubled = [each for each, count in times.items() if count > 1]
        lost = set(range(at_least)) - times.keys() - self.doubtful
        if doubled or lost:
            self.wrong.append(f"the log has lost {sorted(lost)[:9]} and doubled {doubled[:9]}")
        return buckets

    def failures(self) -> list[Call]:
        """Return the calls that failed before their deadline."""
        return [
            each
            for each in self.calls
            if each.error is not None and each.seconds < OPERATION_TIMEOUT_S
        ]

    def verify(self) -> None:
        """Compare the final rows with what was acknowledged, after all workers have ended."""
        with self._session() as session:
            log, keyed = session.table("failover.log"), session.table("failover.keyed")
            scan = log.scan(with_metadata=["_bucket", "_log_offset"])
            buckets = self._check_log(scan.to_arrow(), at_least=self.written)
            if dict(self.followed) != dict(buckets):
                self.wrong.append("what was followed is not what was written")
            state = keyed.scan().to_arrow().to_pydict()
            rows = dict(zip(state["id"], state["n"], strict=True))
            self._compare("state", rows, dict(self._acked))
            if rows != _replayed(keyed):
                self.wrong.append("the state is not what its changelog leads to")
        assert not self.wrong, "\n".join(self.wrong)

    def longest(self, begin: float, end: float) -> dict[str, float]:
        """Return the longest call of each kind that was in flight in a span of time."""
        found: dict[str, float] = {}
        for call in self.calls:
            if call.begin < end and call.begin + call.seconds > begin:
                found[call.kind] = max(found.get(call.kind, 0.0), call.seconds)
        return found

    # --- replicas -----------------------------------------------------------------------------

    def wait_for_replicas(self) -> None:
        """Wait until all replicas are in sync, before the next leader is killed."""
        with self._session() as session:
            cluster = session.table("failover.log").__fluss_table__().connection.cluster
            deadline = time.monotonic() + SYNC_S_MAX
            for name in ("log", "keyed"):
                table = session.table(f"failover.{name}")
                ends = table.offsets().to_pydict()
                expected = dict(zip(ends["bucket"], ends["end"], strict=True))
                for server in range(3):
                    while not _has(cluster, server, table, expected):
                        assert time.monotonic() < deadline, f"server {server} does not catch up"
                        time.sleep(0.3)
        time.sleep(
            2.0
        )  # the leader learns it from the next fetch, and reports it to the coordinator


def _has(cluster: Any, server: int, table: Table, expected: dict[int, int]) -> bool:
    request = pb.ListOffsetsRequest(
        follower_server_id=-1, offset_type=1, table_id=table.info.table_id, bucket_id=list(expected)
    )
    try:
        answer = engine().run(cluster.ask_server(server, request, pb.ListOffsetsResponse))
    except fluss.FlussError:
        engine().run(cluster.refresh())
        return False
    return all(
        not each.HasField("error_code") and each.offset >= expected[each.bucket_id]
        for each in answer.buckets_resp
    )


def _replayed(keyed: Table) -> dict[int, int]:
    rows: dict[int, int] = {}
    for batch in keyed.scan(mode="changelog", order="bucket"):
        changes = batch.to_pydict()
        for kind, key, number in zip(
            changes["_change_type"], changes["id"], changes["n"], strict=True
        ):
            if kind in {"insert", "update_after"}:
                rows[key] = number
            elif kind == "delete":
                rows.pop(key, None)
    return rows
