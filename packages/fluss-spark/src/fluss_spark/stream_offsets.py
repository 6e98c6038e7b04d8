"""Where a micro-batch ends, as Spark keeps it in its checkpoint; and how much one takes.

An offset says for every bucket where the next micro-batch begins, and of which table: a table that
was dropped and created again is another one. `state` lists the buckets whose state has not been
given yet, with the offset it is of; `tasks` says in how many tasks the micro-batch was read, so
that one that is run again has the same rows in the same tasks, on whatever machine. `table` is the
table's name, for those who read progress reports; nothing depends on it.

Where a query begins is not kept by Spark before its first micro-batch is done: it asks again when
that one is repeated. So the answer is no place but a word, `BEGIN`, and the end of the first
micro-batch says where it began, `from`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from fluss.errors import FlussError, InvalidValueError
from fluss.model.options.bounds import Cursor
from fluss.model.paths import TableBucket
from fluss_spark.read_bounds import OFFSETS, STATE, TABLE_ID, offsets_of

TABLE = "table"
TASKS = "tasks"
FROM = "from"
# What the first micro-batch begins at, whenever Spark asks.
BEGIN: Final[Mapping[str, Any]] = {"begin": True}

Ends = dict[TableBucket, int]


@dataclass(frozen=True, kw_only=True)
class StreamOffset:
    """A place in a stream.

    Args:
        table_id: The table.
        offsets: For each bucket the first offset that has not been given.
        pending: For each bucket whose state is still to come, the offset that the state is of.
        tasks: In how many tasks the micro-batch that ends here was read.
        begun: Where the micro-batch that ends here began, where it was the query's first.
    """

    table_id: int
    offsets: Ends = field(default_factory=dict)
    pending: Ends = field(default_factory=dict)
    tasks: int | None = None
    begun: StreamOffset | None = None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        """What a checkpoint says, checked: it may be of another source.

        Raises:
            InvalidValueError: It is.
        """
        try:
            table_id = int(said[TABLE_ID])
            tasks, begun = said.get(TASKS), said.get(FROM)
            return cls(
                table_id=table_id,
                offsets=offsets_of(said[OFFSETS], table_id),
                pending=offsets_of(said.get(STATE, {}), table_id),
                tasks=None if tasks is None else int(tasks),
                begun=None if begun is None else cls.of({TABLE_ID: table_id, **begun}),
            )
        except (KeyError, TypeError, ValueError, AttributeError, FlussError) as error:
            raise InvalidValueError(
                f"The checkpoint's offset {str(said)[:200]} is none of a Fluss table.",
                hint="use another checkpoint location for this query",
            ) from error

    def to_json(self) -> dict[str, Any]:
        """What the checkpoint is to say."""
        said: dict[str, Any] = {TABLE_ID: self.table_id, OFFSETS: _places(self.offsets)}
        if self.pending:
            said[STATE] = _places(self.pending)
        if self.tasks is not None:
            said[TASKS] = self.tasks
        if self.begun is not None:
            said[FROM] = self.begun.to_json()
        return said

    def cursor(self) -> Cursor:
        """Where to read on; buckets that came since are read from their beginning."""
        return Cursor.of(self.table_id, self.offsets)

    def with_states(self, rows_max: int | None) -> StreamOffset:
        """Behind the states of as many buckets as fit, and of one at least."""
        given: Ends = {}
        rows = 0
        for bucket, pin in sorted(self.pending.items()):
            if given and rows_max is not None and rows + pin > rows_max:
                break
            given[bucket] = pin
            rows += pin
        left = {each: pin for each, pin in self.pending.items() if each not in given}
        return replace(self, offsets={**self.offsets, **given}, pending=left, begun=None)


def shared_out(begins: Mapping[TableBucket, int], ends: Ends, rows_max: int | None) -> Ends:
    """Ends such that no more than so many offsets lie before them, shared by what buckets have."""
    waiting = {bucket: max(0, end - begins[bucket]) for bucket, end in ends.items()}
    total = sum(waiting.values())
    if rows_max is None or total <= rows_max:
        return {bucket: begins[bucket] + count for bucket, count in waiting.items()}
    shares = {bucket: count * rows_max // total for bucket, count in waiting.items()}
    left = rows_max - sum(shares.values())
    for bucket in sorted(waiting, key=lambda each: waiting[each] - shares[each], reverse=True):
        if not left:
            break
        taken = min(left, 1, waiting[bucket] - shares[bucket])
        shares[bucket] += taken
        left -= taken
    return {bucket: begins[bucket] + share for bucket, share in shares.items()}


def _places(offsets: Ends) -> dict[str, int]:
    return {
        f"{each.bucket_id}"
        if each.partition_id is None
        else f"{each.partition_id}/{each.bucket_id}": offset
        for each, offset in sorted(offsets.items())
    }
