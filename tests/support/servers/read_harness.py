"""Scanners and lookups on a cluster, with tables created and filled for them."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from fluss.admin.admin import admin_of
from fluss.connection.connection import ClientConnection, TableHandle
from fluss.dialects.log_scanner import LogScanner
from fluss.errors import FlussError
from fluss.log.log_scan import LogScanCore
from fluss.lookup.lookup_cores import key_lookup
from fluss.model.offsets import EARLIEST_OFFSET
from fluss.model.options.config import Config
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.net.engine_thread import engine
from fluss.net.handoff import BlockingSink
from fluss.wire import messages as pb
from fluss.write.writer_pool import append_core, upsert_core
from tests.support.servers.raw_client import COORDINATOR, RawClient

WAIT_S = 60.0


class ReadHarness:
    """One connection to a cluster."""

    def __init__(self, bootstrap: str, database: str, **settings: str) -> None:
        self.engine = engine()
        self.database = database
        self.bootstrap = bootstrap
        config = Config(
            {"bootstrap.servers": bootstrap}
            | {key.replace("__", "."): value for key, value in settings.items()}
        )
        self.connection = self.run(ClientConnection.open(self.engine, config))
        self._names = 0

    def run(self, work: Any) -> Any:
        return self.engine.run(work)

    def close(self) -> None:
        self.run(self.connection.close())

    # --- tables -------------------------------------------------------------------------------

    def make(
        self,
        schema: pa.Schema,
        *,
        primary_keys: Sequence[str] | None = None,
        **facts: Any,
    ) -> TableHandle:
        """Create a table."""
        self._names += 1
        path = TablePath(self.database, f"t{self._names}")
        facts = {"bucket_count": 1} | facts
        descriptor = TableDescriptor(Schema(schema, primary_keys), **facts)
        self.run(admin_of(self.connection).create_table(path, descriptor, ignore_if_exists=False))
        return self.table(path)

    def table(self, path: TablePath) -> TableHandle:
        """The table as it is now."""
        return self.run(self.connection.table(path))

    def add_column(
        self, table: TableHandle, name: str, type_json: Mapping[str, Any]
    ) -> TableHandle:
        """Add a column at the end; return the changed table."""
        path = table.info.table_path
        request = pb.AlterTableRequest(
            table_path=pb.PbTablePath(database_name=path.database_name, table_name=path.table_name),
            ignore_if_not_exists=False,
        )
        request.add_columns.add(
            column_name=name,
            data_type_json=json.dumps(type_json).encode(),
            column_position_type=0,
        )
        with RawClient(self.bootstrap) as client:
            client.call(request, to=COORDINATOR)
        return self.table(path)

    def append(self, table: TableHandle, columns: Mapping[str, Sequence[Any]]) -> None:
        """Append rows as one frame, and wait for the acknowledgement."""
        core = append_core(table)
        core.append_arrow(pa.RecordBatch.from_pydict(dict(columns), table.info.schema.to_arrow()))
        self.run(core.flush())

    def upsert(self, table: TableHandle, *rows: Mapping[str, Any]) -> None:
        """Upsert rows one by one."""
        core = upsert_core(table)
        for row in rows:
            core.upsert(dict(row))
            self.run(core.flush())

    def delete(self, table: TableHandle, key: Mapping[str, Any]) -> None:
        core = upsert_core(table)
        core.delete(dict(key))
        self.run(core.flush())

    # --- reading ------------------------------------------------------------------------------

    @contextmanager
    def scanner(
        self,
        table: TableHandle,
        columns: Sequence[int] | None = None,
        *,
        start: int | None = EARLIEST_OFFSET,
        gives_batches: bool = True,
    ) -> Iterator[LogScanner]:
        """A scanner of a table's buckets."""
        core = LogScanCore(table, columns)
        scanner = LogScanner(
            self.engine, core, gives_batches=gives_batches, records_per_poll_max=500
        )
        if start is not None:
            scanner.subscribe_buckets(dict.fromkeys(range(table.info.num_buckets), start))
        try:
            yield scanner
        finally:
            self.run(core.close())

    def read(
        self, table: TableHandle, columns: Sequence[int] | None = None, **how: Any
    ) -> pa.Table:
        """Everything up to now."""
        with self.scanner(table, columns, **how) as scanner:
            return scanner.to_arrow()

    def lookup(self, table: TableHandle, key: Any) -> Any:
        """One row by key."""
        core = key_lookup(table)
        caller: BlockingSink[Any] = BlockingSink(core.decode)
        core.ask(key, caller)
        assert caller.wait(WAIT_S), "no answer"
        return caller.result()


def poll_rows(
    scanner: LogScanner, count: int, *, timeout_s: float = WAIT_S, ignore: bool = False
) -> list[Any]:
    """Poll until that many records have arrived."""
    found: list[Any] = []
    deadline = time.monotonic() + timeout_s
    while len(found) < count and time.monotonic() < deadline:
        try:
            found += list(scanner.poll(500))
        except FlussError:
            if not ignore:
                raise
    return found


def eventually(is_so: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """Wait until a condition holds; return its last value."""
    deadline = time.monotonic() + timeout_s
    while not (answer := is_so()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert answer, "it did not happen"
    return answer


def new_database(bootstrap: str) -> str:
    """Create a database on a cluster that no other test uses."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with RawClient(bootstrap) as client:
        create = pb.CreateDatabaseRequest(database_name=name, ignore_if_exists=False)
        client.call(create, to=COORDINATOR)
    return name
