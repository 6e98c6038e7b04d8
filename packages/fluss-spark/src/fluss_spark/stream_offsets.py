"""The offset of a stream, as Spark keeps it in its checkpoint, and the size of a micro-batch.

An offset has for every bucket where the next micro-batch starts, and the table's id: a table that
was dropped and created again is another one. `state` lists the buckets whose state has not been
read yet, with the offset of that state. `tasks` is in how many tasks the micro-batch was read, so
that a repeated one has the same rows in the same tasks, on any machine. `table` is the table's name
for progress reports; nothing depends on it.

Spark does not keep where a query starts before its first micro-batch is done: it asks again when
that one is repeated. So the answer is not an offset but a word, `BEGIN`, and the end of the first
micro-batch contains where it started, `from`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from fluss import TableBucket
from fluss.errors import FlussError, InvalidValueError
from fluss.scan import Cursor
from fluss_spark.read_bounds import OFFSETS, STATE, TABLE_ID, parse_offsets

TABLE = "table"
TASKS = "tasks"
FROM = "from"
# The start of the first micro-batch, whenever Spark asks.
BEGIN: Final[Mapping[str, Any]] = {"begin": True}

Ends = dict[TableBucket, int]


@dataclass(frozen=True, kw_only=True)
class StreamOffset:
    """A position in a stream.

    Args:
        table_id: The table.
        offsets: For each bucket the first offset that has not been read.
        pending: For each bucket whose state has not been read, the offset of that state.
        tasks: In how many tasks the micro-batch that ends here was read.
        first: Where the micro-batch that ends here started, if it was the query's first.
    """

    table_id: int
    offsets: Ends = field(default_factory=dict)
    pending: Ends = field(default_factory=dict)
    tasks: int | None = None
    first: StreamOffset | None = None

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Self:
        """Parse the offset of a checkpoint, which may belong to another source.

        Raises:
            InvalidValueError: The text is not an offset of this source.
        """
        try:
            table_id = int(json[TABLE_ID])
            tasks, first = json.get(TASKS), json.get(FROM)
            return cls(
                table_id=table_id,
                offsets=parse_offsets(json[OFFSETS], table_id),
                pending=parse_offsets(json.get(STATE, {}), table_id),
                tasks=None if tasks is None else int(tasks),
                first=None if first is None else cls.of({TABLE_ID: table_id, **first}),
            )
        except (KeyError, TypeError, ValueError, AttributeError, FlussError) as error:
            raise InvalidValueError(
                f"The checkpoint's offset {str(json)[:200]} is not one of a Fluss table.",
                hint="use another checkpoint location for this query",
            ) from error

    def to_json(self) -> dict[str, Any]:
        """Return the form for the checkpoint."""
        json: dict[str, Any] = {TABLE_ID: self.table_id, OFFSETS: _by_bucket_key(self.offsets)}
        if self.pending:
            json[STATE] = _by_bucket_key(self.pending)
        if self.tasks is not None:
            json[TASKS] = self.tasks
        if self.first is not None:
            json[FROM] = self.first.to_json()
        return json

    def cursor(self) -> Cursor:
        """Return where to continue; new buckets are read from their beginning."""
        return Cursor.of(self.table_id, self.offsets)

    def with_states(self, rows_max: int | None) -> StreamOffset:
        """Return the position after the states of as many buckets as fit, at least one."""
        taken: Ends = {}
        rows = 0
        for bucket, pin in sorted(self.pending.items()):
            if taken and rows_max is not None and rows + pin > rows_max:
                break
            taken[bucket] = pin
            rows += pin
        left = {bucket: pin for bucket, pin in self.pending.items() if bucket not in taken}
        return replace(self, offsets={**self.offsets, **taken}, pending=left, first=None)


def limited_ends(starts: Mapping[TableBucket, int], ends: Ends, rows_max: int | None) -> Ends:
    """Move ends back so that a micro-batch has at most `rows_max` offsets, in fair shares."""
    waiting = {bucket: max(0, end - starts[bucket]) for bucket, end in ends.items()}
    total = sum(waiting.values())
    if rows_max is None or total <= rows_max:
        return {bucket: starts[bucket] + count for bucket, count in waiting.items()}
    shares = {bucket: count * rows_max // total for bucket, count in waiting.items()}
    left = rows_max - sum(shares.values())
    for bucket in sorted(waiting, key=lambda each: waiting[each] - shares[each], reverse=True):
        if not left:
            break
        taken = min(left, 1, waiting[bucket] - shares[bucket])
        shares[bucket] += taken
        left -= taken
    return {bucket: starts[bucket] + share for bucket, share in shares.items()}


def _by_bucket_key(offsets: Ends) -> dict[str, int]:
    return {
        f"{bucket.bucket_id}"
        if bucket.partition_id is None
        else f"{bucket.partition_id}/{bucket.bucket_id}": offset
        for bucket, offset in sorted(offsets.items())
    }
