"""Looks up placed keys with several large requests in flight, and returns the answers.

Requests are encoded and answers decoded on the calling thread, while the servers work on the next
ones. The number of keys per request is adapted to the size of the answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fluss.errors import FlussError
from fluss.lookup.bulk_requests import (
    BucketLeader,
    BulkLookups,
    KeyRun,
    Limit,
    PartitionBucket,
    Values,
)
from fluss.lookup.key_frames import PlacedKeys
from fluss.net.cancellation import Cancellation
from fluss.net.engine_thread import Engine
from fluss.net.handoff import BlockingSink
from fluss.write.placement import Share

REQUESTS_IN_FLIGHT_MAX = 4
KEYS_PER_REQUEST_FIRST = 1_024
KEYS_PER_REQUEST_MAX = 8_192
REQUEST_BYTES_MAX = 4 * 1024 * 1024
# So that answers stay far below the largest frame, whatever the rows are.
ANSWER_BYTES_AIM = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answered:
    """The values of the ordered keys from `start` on."""

    start: int
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stretch:
    """Ordered keys of one bucket."""

    leader: BucketLeader
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sent:
    caller: BlockingSink[memoryview]
    cancel: Callable[[], None]
    limit: Limit
    runs: Sequence[KeyRun]


class LookupPipeline:
    """Looks up keys on a blocking thread; for one caller at a time.

    Args:
        engine: The engine that the connection lives on.
        bulk: Sends the requests.
        cancellation: Ends the lookup from another thread.
    """

    def __init__(
        self, engine: Engine, bulk: BulkLookups, cancellation: Cancellation | None = None
    ) -> None:
        self._engine = engine
        self._bulk = bulk
        self._cancellation = cancellation
        self._keys_max = KEYS_PER_REQUEST_FIRST

    def look_up(self, keys: PlacedKeys) -> Iterator[Answered]:
        """Yield the answers for all keys, not in order.

        Raises:
            FlussError: A server did not answer in time.
        """
        leaders = self._engine.run(
            self._bulk.leaders([_place_of(each) for each in keys.shares]),
            cancellation=self._cancellation,
        )
        by_server: dict[int, deque[_Stretch]] = {}
        for share in keys.shares:
            leader = leaders[_place_of(share)]
            if leader is None:
                nothing = Values.none(share.stop - share.start)
                yield Answered(start=share.start, values=nothing)
                continue
            stretch = _Stretch(leader=leader, start=share.start, stop=share.stop)
            by_server.setdefault(leader.server_id, deque()).append(stretch)
        yield from self._pipelined(keys, by_server)

    def _pipelined(
        self, keys: PlacedKeys, by_server: dict[int, deque[_Stretch]]
    ) -> Iterator[Answered]:
        window: deque[_Sent] = deque()
        in_flight_max = REQUESTS_IN_FLIGHT_MAX * len(by_server)
        turns = deque(by_server.items())  # servers take turns, so that all are busy
        try:
            while turns or window:
                if turns and len(window) < in_flight_max:
                    server_id, stretches = turns.popleft()
                    window.append(self._send(keys, server_id, stretches))
                    if stretches:
                        turns.append((server_id, stretches))
                else:
                    yield from self._received(window.popleft())
        finally:
            for sent in window:
                sent.cancel()

    def _send(self, keys: PlacedKeys, server_id: int, stretches: deque[_Stretch]) -> _Sent:
        taken = _taken(stretches, keys, self._keys_max)
        runs = [
            KeyRun(leader=each.leader, keys=keys.keys(each.start, each.stop), start=each.start)
            for each in taken
        ]
        caller: BlockingSink[memoryview] = BlockingSink()
        limit = Limit()
        work = self._bulk.ask(server_id, self._bulk.request(runs), limit)
        cancel = self._engine.start(work, caller)
        return _Sent(caller=caller, cancel=cancel, limit=limit, runs=runs)

    def _received(self, sent: _Sent) -> Iterator[Answered]:
        try:
            answer = sent.caller.wait_for_result(sent.cancel, self._cancellation)
            self._learn(sum(len(each.keys) for each in sent.runs), answer.nbytes)
            answers: Sequence[Values | FlussError] = self._bulk.answers(answer, sent.runs)
        except FlussError as error:
            if self._cancellation is not None:
                self._cancellation.check()
            answers = [error] * len(sent.runs)
        for run, values in zip(sent.runs, answers, strict=True):
            if isinstance(values, FlussError):
                answer_again = self._bulk.retry(run, sent.limit, values)
                values = self._engine.run(answer_again, cancellation=self._cancellation)  # noqa: PLW2901 - the final result
            yield Answered(start=run.start, values=values)

    def _learn(self, keys: int, answer_bytes: int) -> None:
        fitting = ANSWER_BYTES_AIM * keys // max(answer_bytes, 1)
        self._keys_max = max(1, min(fitting, KEYS_PER_REQUEST_MAX))


def _place_of(share: Share) -> PartitionBucket:
    return share.path, share.bucket_id, share.bucket_count


def _taken(stretches: deque[_Stretch], keys: PlacedKeys, keys_max: int) -> list[_Stretch]:
    """Take the stretches of one request from the front; at least one key."""
    taken: list[_Stretch] = []
    keys_left, bytes_left = keys_max, REQUEST_BYTES_MAX
    while stretches and keys_left:
        first = stretches.popleft()
        stop = keys.fitting(first.start, min(first.stop, first.start + keys_left), bytes_left)
        if stop == first.start:
            if taken:
                stretches.appendleft(first)
                break
            stop += 1
        taken.append(_Stretch(leader=first.leader, start=first.start, stop=stop))
        keys_left -= stop - first.start
        bytes_left -= keys.size(first.start, stop)
        if stop < first.stop:
            stretches.appendleft(_Stretch(leader=first.leader, start=stop, stop=first.stop))
    return taken
