"""Snapshots that are put together here: read by pyiceberg, and never made upon another base."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.table.snapshots import Operation

from fluss_lake import iceberg_writes
from fluss_lake.iceberg_parts import entries_of
from fluss_lake.iceberg_writes import Change, commit_change, expire_snapshots, remove_files
from fluss_lake.lake_errors import LakeConflictError
from tests.unit.lake.iceberg_tables import deletes_file, lake_table, rows_file


def ids_in(table):
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def files_of(table):
    return {
        Path(each.path).stem for each in entries_of(table, table.current_snapshot().snapshot_id)
    }


def metadata_files(table):
    folder = Path(urlsplit(table.location()).path) / "metadata"
    return sorted(each.name for each in folder.glob("*.avro"))


def test_rows_are_appended_and_pyiceberg_reads_them(tmp_path):
    table = lake_table(tmp_path)
    first = commit_change(table, None, Change(added=[rows_file(table, "a", [1, 2])]))
    second = commit_change(
        table, first, Change(added=[rows_file(table, "b", [3], 1)], properties={"who": "us"})
    )
    assert ids_in(table) == [1, 2, 3]
    snapshot = table.current_snapshot()
    assert (snapshot.snapshot_id, snapshot.parent_snapshot_id) == (second, first)
    assert snapshot.summary.operation is Operation.APPEND
    assert snapshot.summary["who"] == "us"
    assert snapshot.summary["total-records"] == "3"
    assert snapshot.sequence_number == 2


def test_an_empty_snapshot_keeps_the_rows(tmp_path):
    table = lake_table(tmp_path)
    first = commit_change(table, None, Change(added=[rows_file(table, "a", [1])]))
    commit_change(table, first, Change(properties={"offsets": "further"}))
    assert ids_in(table) == [1]


def test_deletes_have_manifests_of_their_own_with_ints_for_ids(tmp_path):
    table = lake_table(tmp_path)
    first = commit_change(table, None, Change(added=[rows_file(table, "a", [1, 2])]))
    added = [rows_file(table, "b", [2, 5]), deletes_file(table, "d", [2])]
    commit_change(table, first, Change(added=added))
    snapshot = table.current_snapshot()
    assert snapshot.summary.operation is Operation.OVERWRITE
    assert snapshot.summary["total-equality-deletes"] == "1"
    kinds = [each.content for each in snapshot.manifests(table.io)]
    assert kinds.count(ManifestContent.DELETES) == 1
    (manifest,) = (
        each for each in snapshot.manifests(table.io) if each.content is ManifestContent.DELETES
    )
    with AvroFile(table.io.new_input(manifest.manifest_path)) as avro:
        meta = avro.header.meta
    assert meta["content"] == "deletes"
    fields = {each["name"]: each for each in json.loads(meta["avro.schema"])["fields"]}
    files = {each["name"]: each["type"] for each in fields["data_file"]["type"]["fields"]}
    assert files["equality_ids"][1]["items"] == "int"
    found = list(entries_of(table, snapshot.snapshot_id))
    deletes = [each for each in found if each.content is DataFileContent.EQUALITY_DELETES]
    assert [(each.equality_ids, each.sequence) for each in deletes] == [((1,), 2)]


def test_a_base_that_is_not_the_newest_is_refused_and_leaves_no_file(tmp_path):
    table = lake_table(tmp_path)
    first = commit_change(table, None, Change(added=[rows_file(table, "a", [1])]))
    stale = table.catalog.load_table(table.name())
    commit_change(table, first, Change(added=[rows_file(table, "b", [2])]))
    before = metadata_files(table)
    # Its metadata are old: the catalog refuses. Then they are new: it is refused here.
    for _ in range(2):
        with pytest.raises(LakeConflictError, match=r"db\.t"):
            commit_change(stale, first, Change(added=[rows_file(table, "c", [3])]))
        stale.refresh()
    assert ids_in(table) == [1, 2]
    assert metadata_files(table) == before
    with pytest.raises(LakeConflictError):
        commit_change(stale, None, Change(added=[rows_file(table, "c", [3])]))


def test_a_base_whose_files_were_removed_meanwhile_is_a_conflict(tmp_path):
    """Another program has expired it: between loading the table and reading its manifests."""
    table = lake_table(tmp_path)
    first = commit_change(table, None, Change(added=[rows_file(table, "a", [1])]))
    stale, other = (table.catalog.load_table(table.name()) for _ in range(2))
    second = commit_change(table, first, Change(added=[rows_file(table, "b", [2])]))
    late = table.catalog.load_table(table.name())
    assert expire_snapshots(table, [first]) == (1, 0)
    with pytest.raises(LakeConflictError, match="has been removed"):
        commit_change(stale, first, Change(added=[rows_file(table, "c", [3])]))
    with pytest.raises(LakeConflictError, match="has been removed"):
        expire_snapshots(late, [first])
    assert expire_snapshots(other, []) == (0, 0)
    assert ids_in(table) == [1, 2]
    assert table.current_snapshot().snapshot_id == second


def test_removed_files_are_gone_and_others_keep_their_place(tmp_path):
    table = lake_table(tmp_path)
    added = [rows_file(table, "a", [1]), rows_file(table, "b", [2])]
    first = commit_change(table, None, Change(added=added))
    second = commit_change(table, first, Change(added=[rows_file(table, "c", [3])]))
    change = Change(added=[rows_file(table, "e", [4])], removed=frozenset({added[0].file_path}))
    third = commit_change(table, second, change)
    assert ids_in(table) == [2, 3, 4]
    sequences = {Path(each.path).stem: each.sequence for each in entries_of(table, third)}
    assert sequences == {"b": 1, "c": 2, "e": 3}
    assert table.current_snapshot().summary["total-data-files"] == "3"
    assert table.current_snapshot().summary["deleted-data-files"] == "1"
    with pytest.raises(LakeConflictError, match="no longer part"):
        commit_change(table, third, change)


def test_a_rewrite_says_so(tmp_path):
    table = lake_table(tmp_path)
    old = rows_file(table, "a", [1])
    first = commit_change(table, None, Change(added=[old]))
    change = Change(
        added=[rows_file(table, "b", [1])], removed=frozenset({old.file_path}), is_rewrite=True
    )
    commit_change(table, first, change)
    assert table.current_snapshot().summary.operation is Operation.REPLACE
    assert ids_in(table) == [1]


def test_small_manifests_become_one(tmp_path, monkeypatch):
    monkeypatch.setattr(iceberg_writes, "MANIFESTS_MAX", 4)
    table = lake_table(tmp_path)
    base = None
    counts = []
    for each in range(10):
        added = [rows_file(table, f"r{each}", [each]), deletes_file(table, f"d{each}", [each - 1])]
        base = commit_change(table, base, Change(added=added))
        counts.append(len(table.current_snapshot().manifests(table.io)))
    assert max(counts) <= 10
    assert files_of(table) == {f"{kind}{each}" for kind in "rd" for each in range(10)}
    sequences = {Path(each.path).stem: each.sequence for each in entries_of(table, base)}
    assert sequences["r0"] == sequences["d0"] == 1
    assert sequences["r9"] == 10


def test_a_lost_answer_is_found_out(tmp_path, monkeypatch):
    table = lake_table(tmp_path)
    first = commit_change(table, None, Change(added=[rows_file(table, "a", [1])]))
    commit = table.catalog.commit_table

    def lost(*given):
        commit(*given)
        raise OSError("connection reset")

    monkeypatch.setattr(table.catalog, "commit_table", lost)
    second = commit_change(table, first, Change(added=[rows_file(table, "b", [2])]))
    assert table.current_snapshot().snapshot_id == second
    assert ids_in(table) == [1, 2]

    def refused(*_):
        raise OSError("no such host")

    monkeypatch.setattr(table.catalog, "commit_table", refused)
    before = metadata_files(table)
    with pytest.raises(OSError, match="no such host"):
        commit_change(table, second, Change(added=[rows_file(table, "c", [3])]))
    assert metadata_files(table) == before


def test_removing_passes_over_what_is_gone(tmp_path):
    table = lake_table(tmp_path)
    file = rows_file(table, "a", [1])
    missing = f"{table.location()}/data/none.parquet"
    assert remove_files(table.io, [file.file_path, missing]) == []
    assert not Path(urlsplit(file.file_path).path).exists()
