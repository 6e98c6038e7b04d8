"""Finding rows of a primary-key table by key, or by the beginning of keys.

A core encodes the key on the caller's thread and puts one question into the connection's queue;
the answer is decoded on the caller's thread again. What is gathered into one request, and tried
again after a leader change, is the business of `lookup.lookup_queue`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from fluss.connection.connection import TableHandle
from fluss.errors import FlussError
from fluss.lookup.key_placement import KeyPlacer, prefix_placer, primary_key_placer
from fluss.lookup.lookup_queue import LookupTarget, PendingLookup
from fluss.lookup.lookup_services import lookup_queue
from fluss.lookup.stored_rows import StoredRowReader, schema_id_of
from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.table_info import TableInfo
from fluss.net.handoff import ResultSink
from fluss.net.schema_cache import SchemaCache
from fluss.wire.api import ApiKey

NON_PRIMARY_KEY_TABLE_CODE = 20

Key = Mapping[str, Any] | Sequence[Any]
Row = dict[str, Any]


class LookupCore:
    """Looks up one row per key."""

    def __init__(self, table: TableHandle, *, insert_if_not_exists: bool = False) -> None:
        check_lookups(table.info)
        self._asker = _LookupSender(
            table,
            placer=primary_key_placer(table.info),
            api=ApiKey.LOOKUP,
            insert_if_not_exists=insert_if_not_exists,
        )

    def ask(self, key: Key, caller: ResultSink[Any]) -> None:
        """Send the key on its way; `caller` gets the value's bytes, or None. Never waits."""
        self._asker.ask(key, caller)

    def dress(self, value: bytes | memoryview | None) -> Row | None:
        """What the answer means: the row, or None."""
        return None if value is None else self._asker.reader.read(value)


class PrefixLookupCore:
    """Looks up all rows whose keys begin with the given columns."""

    def __init__(self, table: TableHandle, columns: Sequence[str]) -> None:
        check_lookups(table.info)
        self._asker = _LookupSender(
            table, placer=prefix_placer(table.info, columns), api=ApiKey.PREFIX_LOOKUP
        )

    def ask(self, key: Key, caller: ResultSink[Any]) -> None:
        """Send the prefix on its way; `caller` gets the values' bytes. Never waits."""
        self._asker.ask(key, caller)

    def dress(self, values: Iterable[bytes | memoryview]) -> list[Row]:
        """What the answer means: all rows, in the order of their keys' bytes."""
        return [self._asker.reader.read(value) for value in values]


class _LookupSender:
    def __init__(
        self,
        table: TableHandle,
        *,
        placer: KeyPlacer,
        api: ApiKey,
        insert_if_not_exists: bool = False,
    ) -> None:
        self._engine = table.connection.engine
        self._queue = lookup_queue(table.connection)
        self._table_id = table.info.table_id
        self._book = table.book
        self._placer = placer
        self._api = api
        self._insert_if_not_exists = insert_if_not_exists
        self._places: dict[tuple[str | None, int], LookupTarget] = {}
        self.reader = StoredRowReader(table.book, table.info.schema, table.info.options.kv_format)

    def ask(self, key: Key, caller: ResultSink[Any]) -> None:
        path, bucket_id, key_bytes = self._placer.place(key)
        place = self._places.get((path.partition_name, bucket_id))
        if place is None:
            place = self._place(path, bucket_id)
        question = PendingLookup(
            place, key_bytes, _SchemaLoadingSink(caller, self.reader, self._book)
        )
        self._engine.post(partial(self._queue.put, question))

    def _place(self, path: PhysicalTablePath, bucket_id: int) -> LookupTarget:
        place = LookupTarget(
            api=self._api,
            path=path,
            table_id=self._table_id,
            bucket_id=bucket_id,
            insert_if_not_exists=self._insert_if_not_exists,
        )
        # Two threads may make one at the same time; either will do.
        return self._places.setdefault((path.partition_name, bucket_id), place)


class _SchemaLoadingSink:
    """Passes answers on; first has the schemas learned that they were written with."""

    __slots__ = ("_book", "_inner", "_reader")

    def __init__(self, inner: ResultSink[Any], reader: StoredRowReader, book: SchemaCache) -> None:
        self._inner = inner
        self._reader = reader
        self._book = book

    def succeed(self, result: Any) -> None:
        knows = self._reader.knows
        if result is None or (
            all(map(knows, result)) if isinstance(result, tuple) else knows(result)
        ):
            self._inner.succeed(result)
            return
        try:
            values = result if isinstance(result, tuple) else (result,)
            unknown = {schema_id_of(each) for each in values if not knows(each)}
        except FlussError as error:
            self._inner.fail(error)
            return
        task = asyncio.ensure_future(self._book.learn(unknown))
        task.add_done_callback(_passing_on(self._inner, result))

    def fail(self, error: BaseException) -> None:
        self._inner.fail(error)


def _passing_on(caller: ResultSink[Any], result: Any) -> Callable[[asyncio.Future[None]], None]:
    def pass_on(learned: asyncio.Future[None]) -> None:
        error = asyncio.CancelledError() if learned.cancelled() else learned.exception()
        if error is None:
            caller.succeed(result)
        else:
            caller.fail(error)

    return pass_on


def check_lookups(table: TableInfo) -> None:
    """Refuse a table whose rows have no key to look them up by."""
    if not table.has_primary_key():
        raise FlussError(
            f"{table.table_path} is a log table: it has no primary key to look up.",
            NON_PRIMARY_KEY_TABLE_CODE,
            hint="Scan it, or create the table with a primary key.",
            table=str(table.table_path),
        )
