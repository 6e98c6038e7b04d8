"""Tables that a coordinator overlooked are found in its log, and shown to it again."""

from __future__ import annotations

import pytest

from fluss_testkit.overlooked_tables import LATEST_S, TIMES_MAX, RegisteredTables, show_again

REGISTERED = (
    b"2026-11-20 03:25:18.123 INFO zk.ZooKeeperClient - Registered table t2 for database db\n"
)
NEW = b"2026-11-20 03:25:18.130 INFO coordinator.TableManager - New table: db.t2 with id 185, {0=[0]}.\n"
OTHER = b"2026-11-20 03:25:18.100 INFO zk.ZooKeeperClient - Registered table assignment {} for table id 1.\n"


@pytest.fixture
def tables():
    return RegisteredTables()


def test_a_table_that_is_new_to_the_coordinator_was_not_overlooked(tables):
    tables.read(OTHER + REGISTERED + NEW, now=0)
    assert not list(tables.overlooked(now=100))


def test_the_two_lines_may_come_in_either_order(tables):
    tables.read(NEW + REGISTERED, now=0)
    assert not list(tables.overlooked(now=100))
    tables.read(REGISTERED, now=100)  # dropped, and made again
    assert list(tables.overlooked(now=200)) == [("db", "t2")]


def test_a_table_without_the_second_line_was_overlooked_after_a_while(tables):
    tables.read(REGISTERED, now=0)
    assert not list(tables.overlooked(now=LATEST_S / 2))
    assert list(tables.overlooked(now=LATEST_S)) == [("db", "t2")]
    tables.read(NEW, now=LATEST_S)
    assert not list(tables.overlooked(now=100))


def test_a_table_is_shown_several_times_but_not_for_ever(tables):
    tables.read(REGISTERED, now=0)
    shown = [key for now in range(100) for key in tables.overlooked(now)]
    assert shown == [("db", "t2")] * TIMES_MAX


class Node:
    """A node of ZooKeeper that remembers what was written."""

    def __init__(self, data):
        self.data, self.version, self.written = data, 3, []

    def get(self, _):
        return self.data, self.version

    def put(self, _, data, version):
        assert version == self.version
        self.data, self.version = data, version + 1
        self.written.append(data)
        return self.version


def test_a_node_is_emptied_and_has_its_data_again():
    node = Node(b"table")
    show_again(node.get, node.put, "/node")
    assert node.written == [b"", b"table"]


def test_a_node_that_is_not_written_yet_is_left_alone():
    node = Node(b"")
    show_again(node.get, node.put, "/node")
    assert not node.written
