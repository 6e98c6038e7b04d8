"""Random histories with random moments of rounds: the lake is the server's state, each time.

Every engine reads the union, at the end of the logs and as of earlier offsets. The state that a
table had at those offsets was noted when they were the end.
"""

from __future__ import annotations

import random
import sys
import uuid

import pyarrow as pa
import pytest

import fluss
import fluss_lake
from fluss.model.extent import Extent
from fluss_lake.tiering import round_driver
from fluss_server import LocalCluster
from tests.cluster.lake.conftest import LAKE
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.lake.histories import COLUMNS, ENGINES, KEYS, NAMES, History, rows_of
from tests.support.lake.readers import READERS, values
from tests.support.lake.rounds import one_round

ROUNDS = 12 if IS_EXHAUSTIVE else 2


def assert_same(table):
    expected = rows_of(table, lake="off")
    assert rows_of(table, lake="only") == expected
    assert rows_of(table) == expected


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_lake_is_the_state(session, engine, mode):
    history = History(session, engine, mode, f"{engine} {mode}")
    for _ in range(ROUNDS):
        history.write()
        history.tier()
        tally = fluss_lake.tier(history.table.name, cluster=session, now=True)
        assert not tally.errors
        assert_same(history.table)
        history.check()
    sys.stderr.write(f"lake: {engine}, {mode}: {len(history.states)} states, 0 differences\n")


@pytest.mark.slow  # the server is started again
def test_the_lake_is_the_state_across_restarts(tmp_path):
    rng, histories = random.Random(5), []
    for number in range(2 * ROUNDS):
        with LocalCluster(tmp_path, lake=True) as cluster:
            url = f"fluss://{cluster.bootstrap_servers}/fluss"
            with fluss.connect(url) as session:
                if not histories:
                    modes = ("equality-deletes", "copy-on-write")
                    histories = [History(session, "plain", mode, mode) for mode in modes]
                for history in histories:
                    history.attach(session, history.table.name)
                    assert number == 0 or rows_of(history.table) == history.states[-1][1]
                    history.write()
                    if rng.random() < 0.7:
                        history.tier()
                    history.check()
                if rng.random() < 0.5:
                    cluster.kill()
    sys.stderr.write(f"lake: {2 * ROUNDS} restarts of the server, 0 differences\n")


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
def test_any_range_of_a_log_is_read(session, partitioned):
    name = f"h_{uuid.uuid4().hex[:8]}"
    how = {"partition_by": ["text"]} if partitioned else {}
    table = session.create_table(name, COLUMNS, buckets=2, properties=LAKE, **how)
    rng, count = random.Random(7), 0
    for _ in range(ROUNDS):
        size = rng.randrange(50, 200)
        ids = list(range(count, count + size))
        table.append({"id": ids, "n": ids, "text": [f"p{rng.randrange(2)}" for _ in ids]})
        count += size
        if rng.random() < 0.8:
            one_round(table, rows_max=rng.choice([20, 1_000]))
        whole = in_order(table.scan(with_metadata=True, lake="off").to_arrow())
        for _ in range(4):
            bounds = random_bounds(table, rng)
            found = in_order(table.scan(with_metadata=True, **bounds).to_arrow())
            assert found == in_order(
                table.scan(with_metadata=True, lake="off", **bounds).to_arrow()
            )
            assert found.num_rows <= whole.num_rows
        read = rng.choice(READERS)
        assert values(read(table, session), NAMES) == values(whole, NAMES), read


def random_bounds(table, rng):
    """Offsets of all buckets between which rows are read."""
    start, end = {}, {}
    for each in table.offsets().to_pylist():
        place = (each["partition"], each["bucket"]) if each.get("partition") else each["bucket"]
        start[place], end[place] = sorted(rng.randrange(each["end"] + 1) for _ in range(2))
    return rng.choice([{"end": end}, {"start": start}, {"start": start, "end": end}])


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(each, "ascending") for each in ("_partition", "_bucket", "_log_offset")])


def write_some(table, rng):
    for _ in range(rng.randrange(1, 5)):
        keys = [rng.randrange(KEYS) for _ in range(rng.randrange(1, 40))]
        table.upsert([{"id": key, "n": rng.randrange(50), "text": "t"} for key in keys])
        if rng.random() < 0.7:
            table.delete([(rng.randrange(KEYS),) for _ in range(rng.randrange(1, 15))])


@pytest.mark.parametrize("mode", ["equality-deletes", "copy-on-write"])
def test_the_state_is_copied_where_changes_are_gone(session, monkeypatch, mode):
    name = f"gone_{uuid.uuid4().hex[:8]}"
    session.create_table(name, COLUMNS, primary_key="id", buckets=2, properties=LAKE)
    table, rng = session.table(name), random.Random(3)

    def trimmed_by(share):
        async def found(cluster, places):
            extents = await fetch_extents(cluster, places)
            return {
                bucket: Extent(earliest=int(each.end * share), end=each.end)
                for bucket, each in extents.items()
            }

        return found

    fetch_extents = round_driver.fetch_extents
    # For the first time, then with a lake, and after all that has been copied is gone.
    for share in (0.5, 0.9, 1.0, 0.0):
        write_some(table, rng)
        monkeypatch.setattr(round_driver, "fetch_extents", trimmed_by(share))
        assert one_round(table, write_mode=None).snapshot_id is not None
        monkeypatch.undo()
        assert_same(table)
    assert one_round(table).snapshot_id is None
