"""Lookups of single keys: rows of a primary-key table by key, or by a prefix of keys.

A core encodes the key on the caller's thread and puts one lookup into the connection's queue; the
answer is decoded on the caller's thread again. Batching and retries are in `lookup.lookup_queue`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from fluss.connection.connection import ClientConnection, TableHandle, service
from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.lookup.key_placement import KeyPlacer, prefix_placer
from fluss.lookup.lookup_queue import LookupQueue, LookupTarget, PendingLookup
from fluss.lookup.plan_lookups import LookupSettings
from fluss.lookup.stored_rows import StoredRowReader, schema_id_of
from fluss.model.paths import PhysicalTablePath
from fluss.model.tables.auto_partition_names import historical_path, is_past, keeps_history
from fluss.model.tables.table_info import TableInfo
from fluss.net.handoff import ResultSink
from fluss.net.schema_cache import SchemaCache
from fluss.wire.api import ApiKey

Key: TypeAlias = Mapping[str, Any] | Sequence[Any]
Row: TypeAlias = dict[str, Any]
AnswerT = TypeVar("AnswerT")


def key_lookup(table: TableHandle) -> LookupCore[Row | None]:
    """Look up one row per key.

    Raises:
        FlussError: The table has no primary key.
    """
    check_lookups(table.info)
    placer = KeyPlacer(table.info, table.info.primary_keys, is_prefix=False)
    return LookupCore(table, placer, ApiKey.LOOKUP, _one_row)


def prefix_lookup(table: TableHandle, columns: Sequence[str]) -> LookupCore[list[Row]]:
    """Look up all rows whose keys begin with these columns, in the order of the keys' bytes.

    Raises:
        FlussError: The table has no primary key.
        InvalidSchemaError: The table has no prefix lookups by these columns.
    """
    check_lookups(table.info)
    return LookupCore(table, prefix_placer(table.info, columns), ApiKey.PREFIX_LOOKUP, _all_rows)


class LookupCore(Generic[AnswerT]):
    """Looks up the keys of one table; any thread may use it.

    Args:
        table: The table.
        placer: Encodes a key and finds its bucket.
        api: LOOKUP or PREFIX_LOOKUP.
        decode: Makes the answer of the value bytes.
    """

    def __init__(
        self,
        table: TableHandle,
        placer: KeyPlacer,
        api: ApiKey,
        decode: Callable[[StoredRowReader, Any], AnswerT],
    ) -> None:
        self._engine = table.connection.engine
        self._queue = lookup_queue(table.connection)
        self._info = table.info
        self._table_id = table.info.table_id
        self._default_count = table.info.num_buckets
        self._view = table.connection.cluster.view
        self._schemas = table.schemas
        self._placer = placer
        self._api = api
        self._decode = decode
        self._targets: dict[tuple[str | None, str | None, int, int], LookupTarget] = {}
        # Only single rows are looked up in history, as by Java's client.
        self._has_history = api is ApiKey.LOOKUP and keeps_history(table.info)
        self._moved: set[str | None] = set()  # partitions that were found in history
        self._reader = StoredRowReader(
            table.schemas, table.info.schema, table.info.options.kv_format
        )

    def ask(self, key: Key, caller: ResultSink[Any]) -> None:
        """Send a key without waiting; `caller` gets the value bytes, or the error."""
        path, bucket_key, key_bytes = self._placer.place(key)
        original = None
        if path.partition_name in self._moved:
            original, path = path.partition_name, self._history
        count = self._default_count
        if path.partition_name is not None:
            # The queue places the key again where the count was not known and is another one.
            count = self._view.bucket_count(path) or count
        target = self._target(path, bucket_key, count, original)
        sink = _SchemaLoadingSink(caller, self._reader, self._schemas)
        lookup = PendingLookup(target, key_bytes, sink, bucket_key=bucket_key)
        self._engine.post(partial(self._queue.put, lookup))

    def decode(self, values: Any) -> AnswerT:
        """Decode the value bytes that `ask` gave its caller."""
        return self._decode(self._reader, values)

    @property
    def _history(self) -> PhysicalTablePath:
        return historical_path(PhysicalTablePath(self._info.table_path))

    def _in_history(self, path: PhysicalTablePath, bucket_key: bytes) -> LookupTarget | None:
        """The bucket of a key whose partition does not exist, if it may be in the lake."""
        name = path.partition_name
        if not self._has_history or name is None or not is_past(self._info, name, _now()):
            return None
        self._moved.add(name)
        count = self._view.bucket_count(self._history) or self._default_count
        return self._target(self._history, bucket_key, count, name)

    def _target(
        self, path: PhysicalTablePath, bucket_key: bytes, count: int, original: str | None
    ) -> LookupTarget:
        """The bucket of a key in a table or partition of so many buckets."""
        bucket_id = self._placer.bucket(bucket_key, count)
        place = (path.partition_name, original, count, bucket_id)
        known = self._targets.get(place)
        if known is not None:
            return known
        target = LookupTarget(
            api=self._api,
            path=path,
            table_id=self._table_id,
            bucket_id=bucket_id,
            bucket_count=count,
            place=self._target,
            history=self._in_history,
            original=original,
        )
        # Two threads may make one at the same time; either will do.
        return self._targets.setdefault(place, target)


def _now() -> datetime:
    return datetime.now(UTC)


def _one_row(reader: StoredRowReader, value: bytes | memoryview | None) -> Row | None:
    return None if value is None else reader.read(value)


def _all_rows(reader: StoredRowReader, values: Sequence[bytes | memoryview]) -> list[Row]:
    return [reader.read(value) for value in values]


def check_lookups(table: TableInfo) -> None:
    """Refuse a table whose rows have no key to look them up by."""
    if not table.has_primary_key():
        raise FlussError(
            f"{table.table_path} is a log table: it has no primary key to look up.",
            int(ErrorCode.NON_PRIMARY_KEY_TABLE_EXCEPTION),
            hint="Scan it, or create the table with a primary key.",
            table=str(table.table_path),
        )


class _SchemaLoadingSink:
    """Passes answers on, after loading the schemas that their values were written with."""

    __slots__ = ("_inner", "_reader", "_schemas")

    def __init__(
        self, inner: ResultSink[Any], reader: StoredRowReader, schemas: SchemaCache
    ) -> None:
        self._inner = inner
        self._reader = reader
        self._schemas = schemas

    def succeed(self, result: Any) -> None:
        knows = self._reader.knows
        if result is None or (
            all(map(knows, result)) if isinstance(result, tuple) else knows(result)
        ):
            self._inner.succeed(result)
            return
        try:
            values = result if isinstance(result, tuple) else (result,)
            unknown = {schema_id_of(value) for value in values if not knows(value)}
        except FlussError as error:
            self._inner.fail(error)
            return
        task = asyncio.ensure_future(self._schemas.load(unknown))
        task.add_done_callback(partial(self._loaded, result))

    def _loaded(self, result: Any, loading: asyncio.Future[None]) -> None:
        error = asyncio.CancelledError() if loading.cancelled() else loading.exception()
        if error is None:
            self._inner.succeed(result)
        else:
            self._inner.fail(error)

    def fail(self, error: BaseException) -> None:
        self._inner.fail(error)


@service
def lookup_queue(connection: ClientConnection) -> LookupQueue:
    """The queue of all lookups of a connection."""
    options = connection.options
    settings = LookupSettings(
        keys_per_request_max=options.lookup_max_batch_size,
        in_flight_max=options.lookup_max_inflight_requests,
        retries_max=options.lookup_max_retries,
    )
    queue = LookupQueue(connection.cluster, settings)

    async def close(_delivery_s: float) -> None:
        queue.close()

    connection.at_close(close)
    return queue
