"""Follows the logs of many tables: one reader, one request per server for all, one cursor.

Each table is read as `scan.follow` reads one. One limit holds for the fetched and unreturned bytes
of all tables. Batches are returned in turn, so a table with many rows does not delay one with few.
A table that cannot be read does not stop the others. Its error is raised when it occurs; the table
is not read any more, and each later call that gets no rows within its timeout raises the error
again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa

from fluss.connection.connection import ClientConnection, TableHandle
from fluss.errors import ClosedError, FlussError, InvalidValueError, PartitionNotFoundError
from fluss.hints import Hint, HintKey
from fluss.log.decode import Decoder
from fluss.log.fetch_messages import Fetched
from fluss.log.many_log_scan import ManyLogScan
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.many_cursor import ManyCursor
from fluss.model.options.scan_options import ScanOptions
from fluss.scan.followed_table import FollowedTable, Ready
from fluss.scan.scan_stats import ScanStats

T = TypeVar("T")

TABLES_MAX: Final = 10_000
# How many tables are planned concurrently, and how many are checked for partitions per poll.
PLANNED_AT_ONCE: Final = 16
LISTED_PER_POLL: Final = 8
_THREADS_FROM: Final = 4


class TableBatch(NamedTuple):
    """Rows of one table."""

    table: str
    batch: pa.RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Member:
    """A followed table, with the decoder of its batches."""

    followed: FollowedTable
    decoder: Decoder

    @classmethod
    def of(cls, core: TableHandle, options: ScanOptions) -> _Member:
        followed = FollowedTable(core, options, ScanStats())
        decoder = Decoder(core, followed.columns(), followed.pushed)
        return cls(followed=followed, decoder=decoder)


@dataclass(slots=True, eq=False)
class FollowManyCore:
    """Follows many tables. One thread at a time may use it.

    Args:
        connection: The connection of all of them.
    """

    connection: ClientConnection
    _scan: ManyLogScan = field(init=False)
    _members: dict[str, _Member] = field(default_factory=dict)
    _by_id: dict[int, str] = field(default_factory=dict)
    _failed: dict[str, FlussError] = field(default_factory=dict)
    _fetched: deque[Fetched] = field(default_factory=deque)
    _ready: deque[tuple[str, Ready]] = field(default_factory=deque)
    _unlisted: deque[str] = field(default_factory=deque)
    is_closed: bool = False

    def __post_init__(self) -> None:
        self._scan = ManyLogScan(self.connection)

    # --- tables -------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self._members)

    def stats(self) -> dict[str, ScanStats]:
        """What was read of each table."""
        return {name: each.followed.stats for name, each in self._members.items()}

    def schema_of(self, name: str) -> pa.Schema:
        """The columns of the rows of a table."""
        return self._member(name).followed.schema

    def add(self, tables: Sequence[tuple[TableHandle, ScanOptions]]) -> None:
        """Follow more tables. If one is refused, none is added.

        Raises:
            InvalidValueError: A table is followed already, or there are too many.
        """
        self.check_open()
        if len(self._members) + len(tables) > TABLES_MAX:
            raise InvalidValueError(
                f"A reader follows at most {TABLES_MAX:,} tables.", hint="Use several readers."
            )
        made = {str(core.info.table_path): _Member.of(core, options) for core, options in tables}
        for name in made:
            if name in self._members:
                raise InvalidValueError(
                    f"{name} is followed already.", hint="Remove it first to begin elsewhere."
                )
        begun = _each(made.items(), lambda item: (*item, item[1].followed.begin()))
        for name, member, offsets in begun:
            core = member.followed.table
            self._members[name] = member
            self._by_id[core.info.table_id] = name
            self._unlisted.append(name)
            self._scan.subscribe(core, member.decoder.fetch_target, offsets)

    def remove(self, name: str) -> None:
        """Stop following a table, and drop its fetched and unreturned rows.

        Raises:
            InvalidValueError: The table is not followed.
        """
        self._stop(name)
        del self._members[name]
        self._unlisted.remove(name)
        self._failed.pop(name, None)

    def _stop(self, name: str) -> None:
        table_id = self._member(name).followed.table.info.table_id
        self._scan.remove_table(table_id)
        self._by_id.pop(table_id, None)
        self._fetched = deque(each for each in self._fetched if each.bucket.table_id != table_id)
        self._ready = deque(each for each in self._ready if each[0] != name)

    def _member(self, name: str) -> _Member:
        if name not in self._members:
            raise InvalidValueError(
                f"{name} is not followed.",
                hint=did_you_mean(name, self._members) or "Add it to the tables of the reader.",
                table=name,
            )
        return self._members[name]

    def cursor(self) -> ManyCursor:
        """The position after the rows returned so far, in each table."""
        cursors = {name: each.followed.cursor() for name, each in self._members.items()}
        return ManyCursor(tables=cursors)

    # --- rows ---------------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> list[TableBatch]:
        """Return all batches that have arrived, or wait for some until the timeout."""
        self._fill(timeout_s)
        while self._fetched:
            self._decode_next()
        given = [
            TableBatch(name, each.batch) for name, each in self._ready if each.batch is not None
        ]
        # Offsets advance last: the next call returns the batches of an interrupted one.
        for name, ready in self._ready:
            self._members[name].followed.offsets[ready.bucket] = ready.next_offset
        self._ready.clear()
        return given

    def next_batch(self, timeout_s: float) -> TableBatch | None:
        """The next batch; None if none arrives in time."""
        self._fill(timeout_s)
        while True:
            while self._ready:
                batch = self._give()
                if batch is not None:
                    return batch
            if not self._fetched:
                return None
            self._decode_next()

    def _give(self) -> TableBatch | None:
        name, ready = self._ready.popleft()
        self._members[name].followed.offsets[ready.bucket] = ready.next_offset
        return None if ready.batch is None else TableBatch(name, ready.batch)

    def _fill(self, timeout_s: float) -> None:
        self.check_open()
        if self._ready or self._fetched:
            return
        try:
            self._look_for_partitions()
            self.connection.engine.run(self._take(timeout_s))
        except FlussError as error:
            if not self._forget_partitions_of(error):
                self._note_failure(error)
                raise
        if self._fetched:
            self._fetched = deque(in_turn(self._fetched, lambda each: each.bucket.table_id))
        elif self._failed:
            raise next(iter(self._failed.values())).with_context()

    async def _take(self, timeout_s: float) -> None:
        # On the engine: an interrupted caller does not lose what has been taken for it.
        self._fetched.extend(await self._scan.take(timeout_s))

    def _decode_next(self) -> None:
        fetched = self._fetched[0]
        name = self._by_id.get(fetched.bucket.table_id)
        if name is None:  # it was removed meanwhile
            self._fetched.popleft()
            return
        member = self._members[name]
        if fetched.bucket not in member.followed.offsets:  # a partition that was dropped
            self._fetched.popleft()
            return
        try:
            ready = member.followed.read(member.decoder, fetched)
        except FlussError as error:
            error.add_context(table=name)
            self._note_failure(error)
            raise
        # Removed last: after an interruption here, the next call decodes it again.
        self._ready.extend((name, each) for each in ready)
        self._fetched.popleft()

    # --- partitions ---------------------------------------------------------------------------

    def _look_for_partitions(self) -> None:
        for _ in range(min(LISTED_PER_POLL, len(self._unlisted))):
            name = self._unlisted[0]
            self._unlisted.rotate(-1)
            if name in self._failed:
                continue
            member = self._members[name]
            found = member.followed.new_partitions()
            if found:
                core = member.followed.table
                self._scan.subscribe(core, member.decoder.fetch_target, found)

    def _forget_partitions_of(self, error: FlussError) -> bool:
        """Stop reading dropped partitions; return whether the error was about one to be skipped."""
        member = self._members.get(str(error.facts.get("table")))
        if member is None or not isinstance(error, PartitionNotFoundError):
            return False
        if member.followed.options.missing_partitions != "skip":
            error.add_context(hint=Hint(HintKey.FOLLOW_THE_OTHERS))
            return False
        gone = member.followed.forget_partitions()
        for bucket in gone:
            self._scan.unsubscribe(bucket)
        return bool(gone)

    def _note_failure(self, error: FlussError) -> None:
        """Stop reading the table of an error that another request would only repeat.

        Otherwise the fetcher reports the bucket again immediately, and a loop of polls never waits.
        """
        name = str(error.facts.get("table"))
        if name in self._members and not error.is_retriable:
            self._stop(name)
            self._failed[name] = error.with_context()

    # --- life ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop reading. Any thread may call it. Idempotent."""
        self.is_closed = True
        self.connection.engine.run(self._scan.close())

    def check_open(self) -> None:
        """Raise if the reader has been closed."""
        if self.is_closed:
            raise ClosedError("The reader has been closed.", hint="Follow the tables again.")


def in_turn(items: Sequence[T] | deque[T], group: Callable[[T], object]) -> Iterator[T]:
    """The items of all groups in turn; those of one group keep their order."""
    groups: dict[object, list[T]] = {}
    for item in items:
        groups.setdefault(group(item), []).append(item)
    if len(groups) == 1:
        return iter(items)
    missing: Any = object()
    turns = zip_longest(*groups.values(), fillvalue=missing)
    return (item for item in chain.from_iterable(turns) if item is not missing)


def _each(items: Any, do: Callable[[Any], T]) -> list[T]:
    """Call a function for each item; for many items, in several threads."""
    listed = list(items)
    if len(listed) < _THREADS_FROM:
        return [do(each) for each in listed]
    with ThreadPoolExecutor(PLANNED_AT_ONCE, thread_name_prefix="fluss-plan") as pool:
        return list(pool.map(do, listed))
