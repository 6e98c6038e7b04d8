"""A partition that is dropped and created again under its name: the rows of both are never mixed.

A lake knows partitions by name. Fluss's own job adds the rows of the second one to those of the
first, with the same buckets and offsets.
"""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

import fluss
import fluss_polars
from fluss.errors import UnsupportedOperationError
from fluss_lake.lake_errors import LakeMismatchError
from fluss_lake.tiering.lake_maintenance import compact
from fluss_lake.tiering.round_driver import RoundOptions
from fluss_server import LocalCluster
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.rounds import begun, one_round

# On the embedded server alone: Fluss 0.9.1 drops partitions in the background, and writers find the
# dropped one for a while.
COLUMNS = {"id": "BIGINT", "day": "STRING", "n": "BIGINT"}
KEY = {"primary_key": ["id", "day"], "bucket_key": ["id"]}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    with (
        LocalCluster(folder, durability="none", lake=True, in_thread=True) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/fluss") as opened,
    ):
        yield opened


@pytest.fixture
def make(session):
    def made(**how):
        name = f"p_{uuid.uuid4().hex[:8]}"
        how = {"partition_by": ["day"], "buckets": 2, "properties": LAKE, **how}
        return session.create_table(name, COLUMNS, **how)

    return made


def put(table, ids, n, day="d0"):
    rows = {"id": list(ids), "day": [day] * len(ids), "n": [n] * len(ids)}
    (table.upsert if table.primary_key else table.append)(rows)


def drop(table):
    table.drop_partition({"day": "d0"})


def pairs(table, **options):
    rows = table.scan(columns=["id", "n"], **options).to_arrow().to_pylist()
    return Counter((each["id"], each["n"]) for each in rows)


def both(*counts):
    return Counter((each, n) for n, count in enumerate(counts) for each in range(count))


@pytest.mark.parametrize("counts", [(60, 20), (20, 60)], ids=["fewer", "more"])
def test_a_log_has_the_rows_of_both(make, counts):
    table = make()
    put(table, range(counts[0]), 0)
    put(table, range(5), 9, day="d1")
    one_round(table)
    drop(table)
    put(table, range(counts[1]), 1)
    expected = both(*counts) + Counter((each, 9) for each in range(5))
    others = expected - both(0, counts[1])
    assert (pairs(table), pairs(table, lake="only")) == (expected, others)
    one_round(table)
    assert pairs(table) == pairs(table, lake="only") == expected
    put(table, range(100, 110), 2)
    expected += Counter((each, 2) for each in range(100, 110))
    assert pairs(table) == expected
    assert table.count() == expected.total()
    assert fluss_polars.scan_fluss(table).collect().height == expected.total()
    assert pairs(table, partitions=["d0"]) == pairs(table, filter="day = 'd0'")
    assert pairs(table, filter="n = 1") == both(0, counts[1])
    cursor = table.scan().cursor()
    put(table, range(200, 203), 3)
    assert pairs(table, start=cursor) == Counter((each, 3) for each in range(200, 203))
    compact(table.__fluss_table__(), RoundOptions())
    one_round(table)
    expected += Counter((each, 3) for each in range(200, 203))
    assert pairs(table) == pairs(table, lake="only") == expected


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
def test_rows_by_key_are_those_of_the_present_partition(make, mode):
    table = make(**KEY)
    put(table, range(60), 0)
    put(table, range(5), 9, day="d1")
    one_round(table, write_mode=mode)
    drop(table)
    put(table, range(50, 70), 1)
    expected = pairs(table, lake="off")
    assert pairs(table) == expected
    with pytest.raises(LakeMismatchError, match="'d0' dropped and created again") as raised:
        begun(table, write_mode=mode)
    assert "--replace-partitions" in raised.value.hint
    assert pairs(table) == expected
    one_round(table, write_mode=mode, replaces_partitions=True)
    assert pairs(table) == pairs(table, lake="only") == expected
    put(table, range(65, 80), 2)
    table.delete([{"id": 50, "day": "d0"}])
    one_round(table, write_mode=mode)
    assert pairs(table) == pairs(table, lake="only") == pairs(table, lake="off")


def test_a_mixture_of_rows_by_key_is_refused(make, monkeypatch):
    """As Fluss's own job leaves it, where the first partition had more changes."""
    table = make(**KEY)
    put(table, range(60), 0)
    one_round(table)
    drop(table)
    put(table, range(10), 1)
    with monkeypatch.context() as patched:
        patched.setattr(
            "fluss_lake.tiering.earlier_partitions.created_again", lambda *_: frozenset()
        )
        one_round(table)
    with pytest.raises(UnsupportedOperationError, match="the rows of both"):
        pairs(table)
    assert pairs(table, lake="off") == both(0, 10)
