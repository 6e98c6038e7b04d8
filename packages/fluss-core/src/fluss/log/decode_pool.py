"""Decodes fetched bytes in several threads, and returns the rows in their order.

Decompression and checksums release the GIL, so a few threads decode several times faster. Small
pieces, and pieces of small batches, are decoded on the caller's thread. The threads are shared by
all scanners of the process and end with it.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

from fluss.errors import FlussError
from fluss.log.decode import PIECE_BYTES, DecodedBatch, Decoder
from fluss.log.fetch_messages import Fetched
from fluss.records.log.log_batch import iter_log_places
from fluss.waiting import result_of

WORKERS_MAX = 4
# Below this, handing bytes to another thread costs more than it saves.
BYTES_MIN = 128 * 1024
# Smaller batches are mostly work of the interpreter, where threads wait for each other: a million
# rows in batches of 300 take two threads 1.0 s and one 0.7 s, in those of 3 000 0.16 and 0.20 s.
BATCH_BYTES_MIN = 32 * 1024
# How many pieces may wait, decoded or not, for an event loop to take them.
WAITING_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The result of decoding one piece.

    Attributes:
        batches: The rows before the first damaged batch.
        error: The error of the damaged batch.
        rest: The damaged batch and all after it.
    """

    batches: list[DecodedBatch]
    error: FlussError | None = None
    rest: Fetched | None = None


def pieces_of(fetched: Fetched, piece_bytes: int = PIECE_BYTES) -> list[Fetched]:
    """Cut batches into pieces of this size, or of one batch where that is larger."""
    data, headers = fetched.data, fetched.headers
    if len(data) <= piece_bytes:
        return [fetched]
    pieces = []
    start = first = 0
    for number, (at, size) in enumerate(_places_in(fetched), start=1):
        end = at + size
        if end - start >= piece_bytes or end == len(data):
            known = None if headers is None else headers[first:number]
            pieces.append(fetched.part(start, end, known))
            start, first = end, number
    return pieces


def _places_in(fetched: Fetched) -> Iterator[tuple[int, int]]:
    if fetched.headers is None:
        return iter_log_places(fetched.data)
    return ((at, header.size_bytes) for at, header in fetched.headers)


def decode_one(decoder: Decoder, fetched: Fetched) -> Decoded:
    """Decode one piece on this thread."""
    batches: list[DecodedBatch] = []
    try:
        batches.extend(decoder.decode(fetched))
    except FlussError as error:
        start = batches[-1].last_offset + 1 if batches else fetched.start
        return Decoded(batches=batches, error=error, rest=replace(fetched, start=start))
    return Decoded(batches=batches)


def decode_ahead(decoder: Decoder, fetched: Iterable[Fetched]) -> Iterator[Decoded]:
    """Decode fetches ahead of the caller."""
    waiting: deque[_Decoding] = deque()
    for batches in fetched:
        waiting.extend(
            _Decoding(decoder, piece) for piece in pieces_of(batches, decoder.piece_bytes)
        )
        while len(waiting) > _workers():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


async def decode_while_fetching(
    decoder: Decoder, source: AsyncIterable[list[Fetched]]
) -> AsyncGenerator[Decoded, None]:
    """Decode batches while a source fetches more, never on the event loop this runs on."""
    waiting: deque[Future[Decoded]] = deque()
    try:
        async for fetched in source:
            for batches in fetched:
                for piece in pieces_of(batches, decoder.piece_bytes):
                    waiting.append(_executor().submit(decode_one, decoder, piece))
            while len(waiting) > WAITING_MAX:
                yield await asyncio.wrap_future(waiting.popleft())
        while waiting:
            yield await asyncio.wrap_future(waiting.popleft())
    finally:
        for future in waiting:
            future.cancel()


class _Decoding:
    """One piece being decoded: by a worker, or by a caller that comes before a worker."""

    __slots__ = ("_decoder", "_fetched", "_future")

    def __init__(self, decoder: Decoder, fetched: Fetched) -> None:
        self._decoder = decoder
        self._fetched = fetched
        self._future: Future[Decoded] | None = None
        if _is_worth_a_thread(fetched):
            self._future = _executor().submit(decode_one, decoder, fetched)

    def result(self) -> Decoded:
        if self._future is None or self._future.cancel():
            return decode_one(self._decoder, self._fetched)
        return result_of(self._future)


def _is_worth_a_thread(fetched: Fetched) -> bool:
    if len(fetched.data) < BYTES_MIN:
        return False
    try:
        _, size = next(_places_in(fetched), (0, 0))
    except FlussError:
        return False  # raised when it is decoded
    return size >= BATCH_BYTES_MIN


@cache  # counting processors takes longer than handing over a piece
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
