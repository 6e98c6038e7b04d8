"""Files that vanish between plan and read: the error says whether planning again helps."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from fluss.errors import CorruptDataError, SnapshotNotFoundError, UnsupportedOperationError
from fluss_lake import iceberg
from fluss_lake.iceberg import ICEBERG
from fluss_lake.iceberg_writes import Change, commit_change, expire_snapshots
from tests.unit.lake.iceberg_tables import deletes_file, lake_table, rows_file
from tests.unit.lake.tables import schema_of, table_of

INFO = table_of(schema_of(id="BIGINT", name="STRING"))


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A table whose second snapshot replaces the file of the first."""
    table = lake_table(tmp_path)
    old = rows_file(table, "old", [1, 2])
    first = commit_change(table, None, Change(added=[old, deletes_file(table, "gone", [9])]))
    # Every call loads the table, as a catalog does.
    monkeypatch.setattr(iceberg, "open_table", lambda *_: table.catalog.load_table(("db", "t")))
    return table, first, old


def planned(snapshot_id):
    (part,) = ICEBERG.open(INFO, snapshot_id, {}).parts(None)
    return ICEBERG.read(INFO, part, columns=["id"], start=0, stop=100, settings={})


def replace(table, first, old):
    new = rows_file(table, "new", [1, 2, 3])
    change = Change(added=[new], removed=frozenset([old.file_path]))
    return commit_change(table, first, change)


def local(path):
    return Path(urlsplit(path).path)


def test_a_snapshot_that_expires_after_the_plan_says_plan_again(lake):
    table, first, old = lake
    reading = planned(first)
    second = replace(table, first, old)
    expire_snapshots(table, [first])
    assert not local(old.file_path).exists()
    with pytest.raises(SnapshotNotFoundError, match="expired after the scan was planned") as found:
        list(reading)
    assert (found.value.snapshot_id, found.value.path) == (first, old.file_path)
    assert found.value.hint.startswith("Plan the scan again")
    assert isinstance(found.value.__cause__.__cause__, FileNotFoundError)
    assert sum(each.batch.num_rows for each in planned(second)) == 3


def test_a_snapshot_that_expires_while_its_files_stay_is_read(lake):
    table, first, _ = lake
    reading = planned(first)
    commit_change(table, first, Change(added=[rows_file(table, "more", [5])]))
    expire_snapshots(table, [first])
    assert sum(each.batch.num_rows for each in reading) == 2


@pytest.mark.parametrize("kind", ["rows", "deletes"])
def test_a_file_that_another_program_removed_is_no_reason_to_plan_again(lake, kind):
    table, first, old = lake
    deletes = deletes_file(table, "later", [1])
    reading = planned(commit_change(table, first, Change(added=[deletes])))
    gone = {"rows": old, "deletes": deletes}[kind].file_path
    local(gone).unlink()
    with pytest.raises(CorruptDataError, match="was not expired") as found:
        list(reading)
    assert found.value.path == gone
    assert "does not help" in found.value.hint


def test_without_its_catalog_the_reason_stays_open(lake, monkeypatch):
    _, first, old = lake
    reading = planned(first)
    local(old.file_path).unlink()

    def unreachable(*_):
        raise OSError("no such host")

    monkeypatch.setattr("pyiceberg.table.Table.refresh", unreachable)
    with pytest.raises(SnapshotNotFoundError, match="although a snapshot has it") as found:
        list(reading)
    assert "Plan the scan again" in found.value.hint


@pytest.mark.parametrize("what", ["manifest_list", "manifest"])
def test_a_missing_list_of_files_is_named(lake, what):
    table, first, _ = lake
    snapshot = table.current_snapshot()
    path = snapshot.manifest_list
    if what == "manifest":
        path = snapshot.manifests(table.io)[0].manifest_path
    local(path).unlink()
    with pytest.raises(CorruptDataError, match="does not exist") as found:
        ICEBERG.open(INFO, first, {})
    assert local(path).name in str(found.value)


def test_an_unknown_snapshot_is_refused_when_it_is_planned(lake):
    with pytest.raises(SnapshotNotFoundError, match="snapshot 5") as found:
        ICEBERG.open(INFO, 5, {})
    assert found.value.snapshot_id == 5


def test_a_deletion_vector_is_refused_when_it_is_planned(lake):
    table, first, old = lake
    vector = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{table.location()}/data/vector.puffin",
        file_format=FileFormat.PUFFIN,
        partition=Record(0),
        record_count=1,
        file_size_in_bytes=40,
        referenced_data_file=old.file_path,
    )
    vector.spec_id = table.spec().spec_id
    second = commit_change(table, first, Change(added=[vector]))
    with pytest.raises(UnsupportedOperationError, match="deletion vectors") as found:
        ICEBERG.open(INFO, second, {}).parts(None)
    assert found.value.path.endswith("vector.puffin")
    assert "lake='off'" in found.value.hint


def test_a_table_that_was_upgraded_is_refused_before_its_files_are_read(lake):
    table, first, _ = lake
    path = local(table.metadata_location)
    upgraded = {**json.loads(path.read_text()), "format-version": 3, "next-row-id": 2}
    path.write_text(json.dumps(upgraded))  # pyiceberg does not upgrade
    with pytest.raises(UnsupportedOperationError, match="version 3") as found:
        ICEBERG.open(INFO, first, {})
    assert found.value.version == 3
