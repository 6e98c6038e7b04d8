"""`fluss tail -f`: the last rows, then new rows, each of them once."""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa
import pytest

from fluss.cli.commands import read_commands as reading
from tests.support.terminal import CTRL_C, Terminal


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


@pytest.fixture
def logs(session):
    """Three logs, each with three rows."""
    made = [session.create_table(name, {"id": "BIGINT"}, buckets=1) for name in ("a", "b", "c")]
    for table in made:
        table.append({"id": [1, 2, 3]})
    return made


@pytest.fixture
def follow(program):
    """A function that runs `fluss tail -f` for tables in a terminal."""
    words, environment = program

    def follow(*tables: Any) -> Terminal:
        names = [each.name for each in tables]
        command = [*words, "tail", "-f", "-n", "1", *names]
        return Terminal(command, columns=200, env=environment)

    return follow


def line(table: Any, number: int) -> str:
    return f'{{"_table": "{table.name}", "id": {number}}}'


def wait_until_following(terminal: Terminal, table: Any) -> None:
    """Wait for a row that was written after the last rows had been shown."""
    terminal.wait_for(line(table, 3))
    table.append({"id": [0]})
    terminal.wait_for(line(table, 0))


def test_several_tables_are_followed_until_ctrl_c(logs, follow):
    with follow(*logs) as terminal:
        for table in logs:
            terminal.wait_for(line(table, 3))
        for number in (4, 5):
            for table in reversed(logs):
                table.append({"id": [number]})
                terminal.wait_for(line(table, number))
        terminal.type(CTRL_C)
        assert terminal.wait() == 130
        shown = [each for each in terminal.text.splitlines() if each != "^C"]
    assert sorted(shown) == sorted(line(table, each) for table in logs for each in (3, 4, 5))


def test_a_table_that_is_dropped_is_reported_and_the_others_are_followed(session, logs, follow):
    gone, kept = logs[1], (logs[0], logs[2])
    with follow(*logs) as terminal:
        wait_until_following(terminal, logs[2])
        session.drop_table(gone.name)
        terminal.wait_for("fluss: ")
        for table in kept:
            table.append({"id": [4]})
            terminal.wait_for(line(table, 4))
        terminal.type(CTRL_C)
        assert terminal.wait() == 130
        reports = [each for each in terminal.text.splitlines() if each.startswith("fluss: ")]
    assert len(reports) == 1
    assert gone.name in reports[0]
    assert "Traceback" not in terminal.text


def test_when_the_last_table_is_dropped_the_command_fails(session, logs, follow):
    first, last = logs[:2]
    with follow(first, last) as terminal:
        wait_until_following(terminal, last)
        session.drop_table(first.name)
        terminal.wait_for("fluss: ")
        session.drop_table(last.name)
        assert terminal.wait() == 1
        reports = [each for each in terminal.text.splitlines() if each.startswith("fluss: ")]
    assert len(reports) == 2, terminal.text
    assert first.name in reports[0]
    assert last.name in reports[1]
    assert "Traceback" not in terminal.text
