"""FETCH_LOG messages: requests, answers, undecoded batches, errors.

Only the headers of fetched batches are read here; `log.decode` decodes the records on the reader's
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fluss.errors import (
    CorruptBatchError,
    CorruptDataError,
    FlussError,
    ProtocolError,
    error_from_code,
    unusable_answer,
)
from fluss.log.plan_fetch import Fetch, Position
from fluss.model.paths import TableBucket
from fluss.net.plan_routing import ClusterView
from fluss.records.arrow.projection import Projection
from fluss.records.log.log_batch import iter_log_headers
from fluss.records.log.log_header import LogBatchHeader, Magic1
from fluss.wire import messages
from fluss.wire.api import CLIENT_IS_NO_FOLLOWER
from fluss.wire.byte_buffers import Buffer
from fluss.wire.messages import write_message
from fluss.wire.zero_copy.fetch_log import FETCH_LOG_RESPONSE, FetchedBucket

# Headers are kept for the reader where batches have this size on average, or there are few: then
# they take little memory beside the batches.
_HEADERS_KEPT_PER_BYTES: Final = 4 * 1024
_HEADERS_KEPT_MIN: Final = 16

REMOTE_FIRST: Final = 1  # of FetchLogRequest.read_preference; servers take anything else for 0


PlacedHeader: TypeAlias = tuple[int, LogBatchHeader]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fetched:
    """Batches of one bucket as they were received.

    Attributes:
        position: The position they were fetched for.
        data: The bytes; the last batch may be cut off.
        start: The first requested offset; the first batch may begin before it.
        stop: One past the last requested offset, where it is known.
        projected: Whether they hold the projected columns only, with stale checksums.
        headers: The headers of the batches, with their positions; None where they must be read
            again. A scan needs each of them three times, and reading one takes 3 to 6 µs.
    """

    position: Position
    data: Buffer
    start: int
    stop: int | None
    projected: bool
    headers: tuple[PlacedHeader, ...] | None = None

    @property
    def bucket(self) -> TableBucket:
        """The bucket the batches are of."""
        return self.position.bucket

    def placed_headers(self, magic_1: Magic1) -> Iterable[PlacedHeader]:
        """The headers of the batches, with their positions in `data`.

        Raises:
            CorruptBatchError: A header is damaged. Those before it have been handed out.
        """
        if self.headers is not None:
            return self.headers
        return iter_log_headers(self.data, magic_1=magic_1)

    def part(self, start: int, end: int, headers: Sequence[PlacedHeader] | None) -> Fetched:
        """The batches between two positions.

        Args:
            start: Where the first begins.
            end: Where the last ends.
            headers: Their headers, with positions in all bytes; None where they are not known.
        """
        return Fetched(
            position=self.position,
            data=self.data[start:end],
            start=self.start,
            stop=self.stop,
            projected=self.projected,
            headers=None if headers is None else tuple((at - start, each) for at, each in headers),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTarget:
    """What is fetched of a table: which columns, and which schemas have them all.

    Servers with statistics may leave out batches in which no row matches `pruning`, a predicate
    over the fields of one schema.
    """

    table_id: int
    positions: tuple[int, ...] | None  # ascending; None for whole batches
    has_all_columns: Callable[[int], bool]  # whether batches of a schema id have every column
    # How batches of a schema id are projected here; None where they are read whole.
    projection_of: Callable[[int], Projection | None] = lambda _: None
    pruning: messages.PbPredicate | None = None
    pruning_schema_id: int | None = None

    def projects(self, fetch: Fetch) -> bool:
        """Whether the answer to a request holds the projected columns only."""
        return fetch.pushes_projection and self.positions is not None


def write_fetch(fetch: Fetch, targets: Mapping[int, FetchTarget], view: ClusterView) -> bytes:
    """The body of a request for buckets of some tables.

    Args:
        fetch: The buckets.
        targets: What is fetched of each table, by its id.
        view: Knows the bucket counts by which servers check the request.
    """
    request = messages.FetchLogRequest(
        follower_server_id=CLIENT_IS_NO_FOLLOWER,
        max_bytes=fetch.bytes_max,
        max_wait_ms=fetch.wait_ms_max,
        min_bytes=fetch.bytes_min,
        read_preference=REMOTE_FIRST if fetch.prefers_remote else None,
    )
    tables: dict[int, messages.PbFetchLogReqForTable] = {}
    for position in fetch.positions:
        table_id = position.bucket.table_id
        table = tables.get(table_id)
        if table is None:
            table = tables[table_id] = _write_table(request, fetch, targets[table_id])
        table.buckets_req.add(
            partition_id=position.bucket.partition_id,
            bucket_id=position.bucket.bucket_id,
            fetch_offset=position.offset,
            max_fetch_bytes=position.bytes_to_ask(fetch.bytes_max_for_bucket),
            routing_bucket_count=view.routing_count(position.bucket),
        )
    return write_message(request)


def _write_table(
    request: messages.FetchLogRequest, fetch: Fetch, target: FetchTarget
) -> messages.PbFetchLogReqForTable:
    projects = target.projects(fetch)
    table = request.tables_req.add(table_id=target.table_id, projection_pushdown_enabled=projects)
    if projects and target.positions is not None:
        table.projected_fields.extend(target.positions)
    if target.pruning is not None and target.pruning_schema_id is not None:
        table.filter_predicate.CopyFrom(target.pruning)
        table.filter_schema_id = target.pruning_schema_id
    return table


def read_fetch(body: memoryview) -> Mapping[TableBucket, FetchedBucket]:
    """Read an answer, by bucket.

    Raises:
        ProtocolError: The bytes are no such answer.
    """
    return {
        TableBucket.with_partition(table.table_id, each.partition_id, each.bucket_id): each
        for table in FETCH_LOG_RESPONSE.read(body).tables_resp
        for each in table.buckets_resp
    }


@dataclass(slots=True)
class Headers:
    """Facts from the headers of the whole batches in a buffer.

    Attributes:
        size: How many bytes they take.
        next_offset: One past the last offset; None where there is no whole batch.
        schema_ids: The schemas they were written with, and `last_schema_id` that of the last.
        batches: How many there are.
        rows: How many rows they have together.
        placed: The headers and the positions of the batches; None where there are too many.
        error: What is wrong with the batch after them.
    """

    size: int = 0
    next_offset: int | None = None
    schema_ids: set[int] = field(default_factory=set)
    last_schema_id: int | None = None
    batches: int = 0
    rows: int = 0
    placed: list[PlacedHeader] | None = field(default_factory=list)
    error: CorruptDataError | None = None


def read_headers(data: Buffer, *, magic_1: Magic1) -> Headers:
    """Read the headers of the batches in a buffer, up to the first that is damaged."""
    found = Headers()
    try:
        for at, header in iter_log_headers(data, magic_1=magic_1):
            found.size = at + header.size_bytes
            found.next_offset = header.next_offset
            found.last_schema_id = header.schema_id
            found.schema_ids.add(header.schema_id)
            found.batches += 1
            found.rows += header.record_count
            if found.placed is not None:
                found.placed.append((at, header))
                kept = len(found.placed)
                if kept > _HEADERS_KEPT_MIN and kept * _HEADERS_KEPT_PER_BYTES > found.size:
                    found.placed = None
    except CorruptDataError as corrupt:
        found.error = corrupt
    return found


def size_before(data: Buffer, schema_ids: Collection[int], *, magic_1: Magic1) -> int:
    """How many bytes precede the first batch that was written with one of these schemas."""
    return next(
        (
            at
            for at, header in iter_log_headers(data, magic_1=magic_1)
            if header.schema_id in schema_ids
        ),
        len(data),
    )


def error_of(position: Position, found: FetchedBucket) -> FlussError:
    """The error that the server answered for a bucket."""
    return error_from_code(
        found.error_code or 0,
        found.error_message,
        **position.facts,
    )


def unanswered(position: Position) -> ProtocolError:
    """The error for an answer that leaves a bucket out."""
    return unusable_answer("FETCH_LOG", f"it leaves out bucket {position.bucket.bucket_id}")


def unreadable(position: Position, why: str) -> CorruptBatchError:
    """The error for a batch after which a bucket cannot be read."""
    return CorruptBatchError(
        f"In bucket {position.bucket.bucket_id} of {position.path} at offset {position.offset}: "
        f"{why}",
        what="log batch",
        at=0,
        why=why,
        **position.facts,
    )
