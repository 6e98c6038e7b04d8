"""`fluss tail -f`: the last rows, then new rows, each of them once."""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa

from fluss.cli.commands import read_commands as reading


class EndedFollow:
    """A follower that has no rows."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        raise StopIteration


class BusyTable:
    """A table that another writer appends to whenever it is scanned."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._next_id = 100
        self.follow_start: Any = None

    def scan(self, **options: Any) -> Any:
        scan = self._table.scan(**options)
        scan.splits()
        self._table.append({"id": [self._next_id]})
        self._next_id += 1
        return scan

    def follow(self, start: Any, **_: Any) -> EndedFollow:
        self.follow_start = start
        return EndedFollow()


def test_following_begins_where_the_tail_ends(session):
    table = session.create_table("followed", {"id": [1]}, buckets=2)
    for number in range(4):
        table.append({"id": [number]})
    busy: Any = BusyTable(table)
    scan = busy.scan(tail=2)
    shown = list(reading.tail_and_follow(busy, scan, {}))
    assert sum(each.num_rows for each in shown) == 2
    rest = table.scan(start=busy.follow_start).to_arrow()
    assert rest.column("id").to_pylist() == [100]
