"""Compaction and expiry change no row, and rounds go on upon them."""

from __future__ import annotations

import random
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fluss_lake.iceberg_parts import DATA, entries_of
from fluss_lake.iceberg_writes import Change, commit_change
from fluss_lake.lake_errors import LakeConflictError
from fluss_lake.tiering import lake_maintenance
from fluss_lake.tiering.lake_maintenance import clean, compact, expire
from fluss_lake.tiering.round_driver import RoundOptions, commit_round
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.rounds import begun, one_round, written

LATER_MS = 60_000


def make(session, name, **how):
    columns = {"id": "BIGINT", "n": "BIGINT"}
    return session.create_table(name, columns, **{"properties": LAKE, "buckets": 2, **how})


def rows_of(table, **options):
    return table.scan(**options).to_arrow().sort_by("id")


def files_in(lake):
    found = list(entries_of(lake, lake.current_snapshot().snapshot_id))
    return sum(each.content is DATA for each in found), sum(
        each.content is not DATA for each in found
    )


def on_disk(lake):
    folder = Path(urlsplit(lake.location()).path)
    return {each.name for each in folder.rglob("*") if each.suffix in {".parquet", ".avro"}}


def all_expired(table):
    now_ms = time.time_ns() // 1_000_000
    return expire(table.__fluss_table__(), RoundOptions(), before_ms=now_ms + LATER_MS)


def test_a_log_is_compacted_and_stays_in_order(session, iceberg):
    table = make(session, "up_log")
    for start in range(0, 40, 10):
        table.append({"id": list(range(start, start + 10)), "n": [0] * 10})
        one_round(table)
    lake = iceberg(table)
    files = files_in(lake)[0]
    done = compact(table.__fluss_table__(), RoundOptions())
    lake.refresh()
    assert (done.before, done.after, done.rows) == (files, files_in(lake)[0], 40)
    assert files_in(lake)[0] <= 2
    assert compact(table.__fluss_table__(), RoundOptions()).snapshot_id is None
    table.append({"id": [40], "n": [0]})
    assert rows_of(table) == rows_of(table, lake="off")
    one_round(table)
    assert rows_of(table, lake="only") == rows_of(table, lake="off")
    order = table.scan(order="bucket", with_metadata=True).to_arrow()
    assert order == table.scan(order="bucket", with_metadata=True, lake="off").to_arrow()


def test_deletes_are_applied_and_old_snapshots_expire(session, iceberg):
    table, rng = make(session, "up_keys", primary_key="id"), random.Random(5)
    for _ in range(4):
        keys = [rng.randrange(60) for _ in range(40)]
        table.upsert({"id": keys, "n": [rng.randrange(9) for _ in keys]})
        table.delete([(rng.randrange(60),) for _ in range(10)])
        one_round(table)
    lake = iceberg(table)
    assert files_in(lake)[1]
    compact(table.__fluss_table__(), RoundOptions())
    lake.refresh()
    assert files_in(lake)[1] == 0
    # Who knows no deletes by key reads it now.
    expected = rows_of(table, lake="off")
    found = lake.scan(selected_fields=("id", "n")).to_arrow().sort_by("id")
    assert found.to_pylist() == expected.to_pylist()
    # The snapshot of the last round is the one that the cluster knows, and stays readable.
    before = on_disk(lake)
    done = all_expired(table)
    assert (done.snapshots, done.left) == (3, 0)
    assert len(before) - len(on_disk(lake)) == done.files > 0
    assert rows_of(table) == expected
    table.upsert({"id": [1, 999], "n": [7, 7]})
    one_round(table)
    assert all_expired(table).snapshots == 2
    expected = rows_of(table, lake="off")
    assert rows_of(table) == rows_of(table, lake="only") == expected
    lake.refresh()
    assert [each.snapshot_id for each in lake.metadata.snapshots] == [
        session.get_latest_lake_snapshot(table.name).snapshot_id
    ]


def test_a_round_that_meets_a_compaction_is_committed_upon_it(session, iceberg):
    table = make(session, "up_meet", primary_key="id")
    for number in range(3):
        table.upsert({"id": [1, 2, 3], "n": [number] * 3})
        one_round(table)
    table.upsert({"id": [2, 4], "n": [9, 9]})
    round_ = begun(table)
    results = written(round_)
    compact(table.__fluss_table__(), RoundOptions())
    commit_round(round_, results)
    assert rows_of(table, lake="only") == rows_of(table, lake="off")


def test_a_compaction_that_meets_a_round_begins_again(session, iceberg, monkeypatch):
    table = make(session, "up_again", buckets=1)
    for start in (0, 10):
        table.append({"id": list(range(start, start + 10)), "n": [0] * 10})
        one_round(table)
    commit, met = lake_maintenance.commit_change, []

    def late(lake, base_id, change):
        if len(met) < 1:
            met.append(base_id)
            other = iceberg(table)
            commit_change(other, base_id, Change(properties={"who": "another"}))
        return commit(lake, base_id, change)

    monkeypatch.setattr(lake_maintenance, "commit_change", late)
    assert compact(table.__fluss_table__(), RoundOptions()).rows == 20
    before = on_disk(iceberg(table))

    def always(lake, *_):
        raise LakeConflictError("Another program.")

    monkeypatch.setattr(lake_maintenance, "commit_change", always)
    table.append({"id": list(range(20, 30)), "n": [0] * 10})
    one_round(table)
    after_round = on_disk(iceberg(table))
    with pytest.raises(LakeConflictError):
        compact(table.__fluss_table__(), RoundOptions())
    assert on_disk(iceberg(table)) == after_round
    assert before < after_round
    assert rows_of(table, lake="only") == rows_of(table, lake="off")


def test_files_of_a_killed_round_are_removed_and_no_other(session, iceberg):
    table = make(session, "up_orphans", primary_key="id")
    table.upsert({"id": list(range(30)), "n": [0] * 30})
    one_round(table)
    table.upsert({"id": list(range(20, 40)), "n": [1] * 20})
    written(begun(table))  # killed before its commit
    lake = iceberg(table)
    foreign = Path(urlsplit(lake.location()).path) / "data" / "of-another-program.parquet"
    foreign.write_bytes(b"PAR1")
    before, handle = on_disk(lake), table.__fluss_table__()
    now_ms = time.time_ns() // 1_000_000
    assert clean(handle, RoundOptions(), before_ms=now_ms - LATER_MS).files == 0
    counted = clean(handle, RoundOptions(), before_ms=now_ms + LATER_MS, is_dry=True)
    assert on_disk(lake) == before
    done = clean(handle, RoundOptions(), before_ms=now_ms + LATER_MS)
    assert done == counted
    assert done.files > 0
    assert done.size_bytes > 0
    assert len(on_disk(lake)) == len(before) - done.files
    assert foreign.exists()
    assert clean(handle, RoundOptions(), before_ms=now_ms + LATER_MS).files == 0
    one_round(table)
    compact(handle, RoundOptions())
    assert clean(handle, RoundOptions(), before_ms=now_ms + LATER_MS).files == 0
    assert rows_of(table, lake="only") == rows_of(table, lake="off")
