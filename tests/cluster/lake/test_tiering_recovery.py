"""Rounds that end halfway, that meet others, and tables that change under them."""

from __future__ import annotations

import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyiceberg.types import LongType

import fluss
from fluss.errors import FlussError, OffsetOutOfRangeError, TableNotFoundError
from fluss.model.extent import Extent
from fluss_lake.iceberg_writes import Change, commit_change
from fluss_lake.lake_errors import LakeConflictError, LakeMismatchError
from fluss_lake.tiering import round_driver
from fluss_lake.tiering.range_task import WriteMode
from fluss_lake.tiering.round_driver import abort_round, commit_round
from fluss_lake.tiering.write_range import write_range
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.rounds import begun, one_round, written

STATE = {"primary_key": "id"}


@pytest.fixture
def make(session):
    """Makes tables of ids and numbers."""

    def made(**how):
        name = f"r_{uuid.uuid4().hex[:8]}"
        columns = {"id": "BIGINT", "n": "BIGINT"}
        return session.create_table(name, columns, **{"properties": LAKE, "buckets": 1, **how})

    return made


def put(table, ids, n=0):
    rows = {"id": list(ids), "n": [n] * len(ids)}
    (table.upsert if table.primary_key else table.append)(rows)


def ids_of(table, lake):
    return sorted(table.scan(lake=lake).to_arrow().column("id").to_pylist())


def data_files(lake):
    return sorted(Path(urlsplit(lake.location()).path).glob("data/**/*.parquet"))


def known_id(session, table):
    return session.get_latest_lake_snapshot(table.name).snapshot_id


@pytest.mark.parametrize("how", [{}, STATE], ids=["log", "state"])
def test_the_next_round_reports_a_snapshot_that_was_not_reported(
    session, make, iceberg, monkeypatch, how
):
    table = make(**how)
    put(table, range(10))
    one_round(table)
    put(table, range(10, 20))
    with monkeypatch.context() as patched:
        patched.setattr(round_driver, "_report", lambda *_, **__: None)  # killed just before it
        lost = one_round(table).snapshot_id
    assert known_id(session, table) != lost
    assert ids_of(table, "union") == list(range(20))
    put(table, range(20, 25))
    round_ = begun(table)
    assert round_.recovered_id == lost
    assert known_id(session, table) == lost
    commit_round(round_, written(round_))
    assert ids_of(table, "only") == ids_of(table, "union") == list(range(25))
    assert iceberg(table).current_snapshot().snapshot_id == known_id(session, table)


def test_the_very_first_round_is_recovered_too(session, make, monkeypatch):
    table = make()
    put(table, range(5))
    with monkeypatch.context() as patched:
        patched.setattr(round_driver, "_report", lambda *_, **__: None)
        lost = one_round(table).snapshot_id
    assert one_round(table).snapshot_id is None
    assert known_id(session, table) == lost
    assert ids_of(table, "only") == list(range(5))


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_of_the_cluster_is_asked_for(session, make, monkeypatch, arrives):
    table = make()
    put(table, range(5))
    one_round(table)
    put(table, range(5, 9))
    send, calls = round_driver.report_snapshot, []

    async def lost(*given, **more):
        calls.append(more["keep_from"])
        if arrives or len(calls) > 1:
            await send(*given, **more)
        if len(calls) == 1:
            raise FlussError("No answer came.")

    monkeypatch.setattr(round_driver, "report_snapshot", lost)
    done = one_round(table)
    assert len(calls) == (1 if arrives else 2)
    assert known_id(session, table) == done.snapshot_id
    monkeypatch.undo()
    for start in (9, 12):
        put(table, range(start, start + 3))
        one_round(table)
    assert ids_of(table, "only") == list(range(15))


@pytest.mark.parametrize("how", [{}, STATE], ids=["log", "state"])
def test_of_two_rounds_of_the_same_rows_one_is_committed(session, make, how):
    table = make(**how)
    put(table, range(10))
    first, second = begun(table), begun(table)
    of_first, of_second = written(first), written(second)
    files = data_files(first.lake)
    commit_round(first, of_first)
    with pytest.raises(LakeConflictError, match="another tiering service"):
        commit_round(second, of_second)
    assert ids_of(table, "only") == list(range(10))
    # What the second has written is removed again.
    assert len(data_files(first.lake)) == len(files) - sum(len(each.files) for each in of_second)


def test_a_worker_that_wakes_up_late_reports_nothing(session, make, monkeypatch):
    table = make()
    put(table, range(5))
    late = begun(table)
    results = written(late)
    report = round_driver._report
    with monkeypatch.context() as patched:

        def asleep(*given, **more):
            # Another worker finds its snapshot, and continues, before it reports its own.
            patched.setattr(round_driver, "_report", report)
            put(table, range(5, 8))
            one_round(table)
            report(*given, **more)

        patched.setattr(round_driver, "_report", asleep)
        with pytest.raises(LakeMismatchError, match="Another program"):
            commit_round(late, results)
    assert ids_of(table, "only") == list(range(8))
    put(table, range(8, 10))
    one_round(table)
    assert ids_of(table, "union") == list(range(10))


def compact(lake):
    """Write all files of a table as another program would, in its own snapshot."""
    rows = lake.scan().to_arrow()
    lake.overwrite(rows)


@pytest.mark.filterwarnings("ignore:Merge on read is not yet supported")
def test_a_compaction_meanwhile_costs_nothing_but_a_second_commit(session, make, iceberg):
    table = make()
    for start in (0, 5):
        put(table, range(start, start + 5))
        one_round(table)
    put(table, range(10, 15))
    round_ = begun(table)
    results = written(round_)
    compact(iceberg(table))
    commit_round(round_, results)
    assert ids_of(table, "only") == list(range(15))
    assert one_round(table).snapshot_id is None


@pytest.mark.filterwarnings("ignore:Merge on read is not yet supported")
def test_files_that_are_written_again_must_still_be_there(session, make, iceberg):
    table = make(**STATE)
    put(table, range(10))
    one_round(table, write_mode=WriteMode.COPY_ON_WRITE)
    put(table, range(5, 15))
    round_ = begun(table, write_mode=WriteMode.COPY_ON_WRITE)
    results = written(round_)
    compact(iceberg(table))
    with pytest.raises(LakeConflictError, match="to be replaced"):
        commit_round(round_, results)
    one_round(table, write_mode=WriteMode.COPY_ON_WRITE)
    assert ids_of(table, "only") == list(range(15))


def test_a_table_that_was_made_again_is_left_alone(session, make):
    table = make(properties={**LAKE})
    put(table, range(5))
    round_ = begun(table)
    task = round_.tasks[0]
    results = written(round_)
    name = table.info.table_path.table_name
    session.drop_table(name)
    # The coordinator does not make a table whose name the lake has already.
    round_.lake.catalog.drop_table(round_.lake.name())
    session.create_table(name, {"id": "BIGINT", "n": "BIGINT"}, buckets=1, properties=LAKE)
    before = data_files(round_.lake)
    with pytest.raises(TableNotFoundError, match="created again"):
        commit_round(round_, results)
    assert len(data_files(round_.lake)) == len(before) - 1
    again = begun(session.table(name))
    assert again.tasks == ()
    again_table = session.table(name).__fluss_table__()
    with pytest.raises(TableNotFoundError, match="since the round started"):
        write_range(task, again_table, round_.lake.io)


def test_an_aborted_round_leaves_no_file(make):
    table = make()
    put(table, range(5))
    round_ = begun(table)
    results = written(round_)
    assert data_files(round_.lake)
    abort_round(round_, results)
    assert data_files(round_.lake) == []
    with pytest.raises(LakeMismatchError, match="tasks of the round"):
        commit_round(round_, [])


def test_files_that_cannot_be_written_are_an_error_with_a_hint(make, monkeypatch):
    table = make()
    put(table, range(5))
    round_ = begun(table)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fluss_lake.iceberg_writes.ParquetFile.finish", lambda *_, **__: full())
    with pytest.raises(FlussError, match="No space left") as raised:
        written(round_)
    assert "disk may be full" in raised.value.hint
    assert raised.value.bucket == 0
    assert data_files(round_.lake) == []


def test_rounds_may_be_bounded(make):
    table = make()
    for start in range(0, 30, 10):
        put(table, range(start, start + 10))
    round_ = begun(table, rows_max=12)
    assert round_.is_cut
    commit_round(round_, written(round_))
    assert ids_of(table, "only") == list(range(12))
    assert ids_of(table, "union") == list(range(30))
    one_round(table, rows_max=12)
    one_round(table, rows_max=12)
    assert ids_of(table, "only") == list(range(30))


def test_a_snapshot_of_another_program_is_not_taken_for_ours(make, iceberg):
    table = make()
    put(table, range(5))
    lake = iceberg(table)
    commit_change(lake, None, Change(properties={"who": "another"}))
    with pytest.raises(LakeMismatchError, match="no tiering service made"):
        begun(table)


def test_a_table_without_a_lake_is_refused(session, make):
    table = make(properties={})
    with pytest.raises(fluss.errors.UnsupportedOperationError, match="not copied"):
        begun(table)


def test_a_lake_of_other_columns_is_refused(make, iceberg):
    table = make()
    put(table, range(5))
    with iceberg(table).update_schema() as update:
        update.add_column("further", LongType())
    with pytest.raises(LakeMismatchError, match="further"):
        begun(table)


def test_lost_rows_are_named(make, monkeypatch):
    table = make()
    put(table, range(5))
    one_round(table)
    put(table, range(5, 9))

    async def trimmed(_, places):
        return dict.fromkeys(places, Extent(earliest=7, end=9))

    monkeypatch.setattr(round_driver, "fetch_extents", trimmed)
    with pytest.raises(OffsetOutOfRangeError, match="2 rows between them are gone"):
        begun(table)
    one_round(table, skips_lost=True)
    monkeypatch.undo()
    assert ids_of(table, "only") == [0, 1, 2, 3, 4, 7, 8]
