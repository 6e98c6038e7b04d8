"""The KV snapshots of a bucket on disk: only complete ones are found, whatever a crash left."""

import json

import pytest

from fluss.model.paths import TableBucket
from fluss_server.snapshots import snapshot_files
from fluss_server.snapshots.snapshot_files import METADATA, SnapshotFiles

BUCKET = TableBucket(7, 2, partition_id=4)
ID = b"d" * 16
NAMES = ("000009.sst", "CURRENT", "MANIFEST-000005", "OPTIONS-000007")


def opened(directory, *, bucket=BUCKET, directory_id=ID, end_offset=1_000):
    files = SnapshotFiles(directory, bucket, directory_id)
    files.load(end_offset=end_offset)
    return files


def add(files, log_offset, names=NAMES, row_count=3):
    staging = files.staging()
    staging.mkdir()
    for name in names:
        (staging / name).write_bytes(b"0123456789")
    return files.add(staging, names, log_offset=log_offset, row_count=row_count)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "snapshots-2"


def test_snapshots_are_numbered_and_found_again(directory):
    files = opened(directory)
    assert files.latest is None
    first, second = add(files, 10), add(files, 20, row_count=None)
    again = opened(directory)
    assert again.complete == (first, second) == files.complete
    assert (first.snapshot_id, second.snapshot_id, again.latest) == (0, 1, second)
    assert again.find(0).row_count == 3
    assert again.find(1).row_count is None
    assert again.find(2) is None
    assert add(again, 30).snapshot_id == 2


def test_the_metadata_has_the_fields_of_fluss(directory):
    files = opened(directory)
    add(files, 10)
    snapshot = add(files, 20, names=(*NAMES, "000012.sst"))
    found = json.loads((snapshot.directory / METADATA).read_bytes())
    assert found == {
        "version": 1,
        "table_id": 7,
        "partition_id": 4,
        "bucket_id": 2,
        "directory": ID.hex(),
        "snapshot_id": 1,
        "snapshot_location": str(snapshot.directory),
        "kv_snapshot_handle": {
            "shared_file_handles": [
                handle(snapshot, name) for name in ("000009.sst", "000012.sst")
            ],
            "private_file_handles": [handle(snapshot, name) for name in NAMES[1:]],
            "snapshot_incremental_size": 40,
        },
        "log_offset": 20,
        "row_count": 3,
    }


def handle(snapshot, name):
    path = str(snapshot.directory / name)
    return {"kv_file_handle": {"path": path, "size": 10}, "local_path": name}


def test_what_a_crash_left_is_removed(directory):
    files = opened(directory)
    whole = add(files, 10)
    staging = files.staging()
    staging.mkdir()
    (staging / "CURRENT").touch()
    (directory / "removed-snap-9").mkdir()
    (directory / "removed-snap-9" / "000001.sst").touch()
    (directory / "stray").touch()
    assert opened(directory).complete == (whole,)
    assert [each.name for each in directory.iterdir()] == ["snap-0"]


def test_a_crash_at_any_step_leaves_the_snapshots_before_or_after_it(directory, monkeypatch):
    """Each call that reaches the disk is the last one once."""
    files = opened(directory)
    first = add(files, 10)
    for step in range(100):
        files = opened(directory)
        known = files.complete
        left = [step]

        def broken(name, _left=left, _of=snapshot_files):
            plain = getattr(_of, name)

            def call(*arguments, **options):
                if not _left[0]:
                    raise OSError("the machine is switched off")
                _left[0] -= 1
                return plain(*arguments, **options)

            return call

        with monkeypatch.context() as patched:
            for name in ("replace_file", "sync_directory"):
                patched.setattr(snapshot_files, name, broken(name))
            try:
                made = add(files, 20 + step)
            except OSError:
                found = opened(directory).complete
                assert found[: len(known)] == known
                assert all((each.directory / name).is_file() for each in found for name in NAMES)
                continue
        assert opened(directory).complete == (*known, made)
        break
    assert step == 3, "one file and two directories are synced"
    assert opened(directory).complete[0] == first


@pytest.mark.parametrize("damage", ["no metadata", "no json", "no file", "a later version"])
def test_what_is_not_whole_is_removed(directory, damage, caplog):
    files = opened(directory)
    whole, broken = add(files, 10), add(files, 20)
    metadata = broken.directory / METADATA
    match damage:
        case "no metadata":
            metadata.unlink()
        case "no json":
            metadata.write_bytes(metadata.read_bytes()[:-20])
        case "no file":
            (broken.directory / "000009.sst").unlink()
        case "a later version":
            metadata.write_text(metadata.read_text().replace('"version": 1', '"version": 2'))
    assert opened(directory).complete == (whole,)
    assert "snap-1 is no snapshot of this log" in caplog.text
    assert not broken.directory.exists()


@pytest.mark.parametrize(
    "other",
    [
        {"bucket": TableBucket(7, 1, partition_id=4)},
        {"bucket": TableBucket(8, 2, partition_id=4)},
        {"bucket": TableBucket(7, 2)},
        {"directory_id": b"e" * 16},
        {"end_offset": 9},
    ],
)
def test_a_snapshot_of_another_log_or_beyond_its_end_is_removed(directory, other):
    add(opened(directory), 10)
    assert opened(directory, end_offset=10).latest is not None
    assert opened(directory, **other).latest is None
    assert not list(directory.iterdir())


def test_the_newest_and_those_that_are_kept_stay(directory):
    files = opened(directory)
    for log_offset in range(5):
        add(files, log_offset)
    found = files.retire(2, is_kept={1}.__contains__, changes=False)
    assert [each.snapshot_id for each in found] == [0, 2]
    assert len(files.complete) == 5
    gone = files.retire(2, is_kept={1}.__contains__)
    assert gone == found
    assert [each.snapshot_id for each in files.complete] == [1, 3, 4]
    assert gone[0].directory.is_dir()
    files.remove(gone)
    assert sorted(each.name for each in directory.iterdir()) == ["snap-1", "snap-3", "snap-4"]
    assert files.retire(3, is_kept=set().__contains__) == []
