"""Decodes several fetches at a time, and gives them in their order.

Decompression and checksums release the GIL, so that a few threads decode as many times faster; what
is small is decoded where it is asked for. The threads are shared by all scanners of the process and
end with it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from fluss.client.decode import DecodedBatch, Decoder
from fluss.engine.fetcher import Fetched
from fluss.errors import FlussError

WORKERS_MAX = 4
# Below this, handing a fetch to another thread costs more than it saves.
BYTES_MIN = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What became of one fetch.

    Attributes:
        batches: The rows, up to the first damage.
        error: The damage.
        rest: What to decode again to meet it again, and nothing else.
    """

    batches: list[DecodedBatch]
    error: FlussError | None = None
    rest: Fetched | None = None


def decode_one(decoder: Decoder, fetched: Fetched) -> Decoded:
    """Decode one fetch, here and now."""
    batches: list[DecodedBatch] = []
    try:
        batches.extend(decoder.decode(fetched))
    except FlussError as error:
        start = batches[-1].last_offset + 1 if batches else fetched.start
        return Decoded(batches=batches, error=error, rest=replace(fetched, start=start))
    return Decoded(batches=batches)


def decode_ahead(decoder: Decoder, fetched: Iterable[Fetched]) -> Iterator[Decoded]:
    """Decode fetches ahead of whoever takes them, as many at a time as there are workers."""
    waiting: deque[Future[Decoded]] = deque()
    for each in fetched:
        waiting.append(_start(decoder, each))
        if len(waiting) > _workers():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _start(decoder: Decoder, fetched: Fetched) -> Future[Decoded]:
    if len(fetched.data) >= BYTES_MIN:
        return _executor().submit(decode_one, decoder, fetched)
    done: Future[Decoded] = Future()
    done.set_result(decode_one(decoder, fetched))
    return done


def _workers() -> int:
    return min(WORKERS_MAX, os.cpu_count() or 1)


_shared: ThreadPoolExecutor | None = None


def _executor() -> ThreadPoolExecutor:
    global _shared  # noqa: PLW0603 - one pool per process is the point
    if _shared is None:
        _shared = ThreadPoolExecutor(_workers(), thread_name_prefix="fluss-decode")
    return _shared


def _forget_in_child() -> None:
    global _shared  # noqa: PLW0603 - its threads stayed in the parent
    _shared = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
