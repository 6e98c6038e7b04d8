"""Deletes of a snapshot: by position, and by keys that later commits deleted."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fluss_lake.deletes import Deletes
from fluss_lake.file_plan import DataFile, DeleteFile
from tests.unit.lake.tables import write_parquet


class LocalFiles:
    """The files of a table on this machine, as pyiceberg gives them."""

    def new_input(self, path):
        return SimpleNamespace(open=lambda **_: pa.OSFile(path))


@pytest.fixture
def table(tmp_path):
    names = {1: "id", 2: "name"}
    schema = SimpleNamespace(find_field=lambda number: SimpleNamespace(name=names[number]))
    return SimpleNamespace(io=LocalFiles(), schema=lambda: schema)


def file_with(deletes, sequence=1):
    return DataFile(
        path="data", rows=4, size_bytes=1, sequence=sequence, offsets=(0, 3), deletes=tuple(deletes)
    )


ROWS = pa.record_batch({"id": pa.array([1, 2, 3, 4]), "name": pa.array(["a", "b", None, "d"])})


def test_positions_delete_rows_of_their_file_alone(table, tmp_path):
    path = write_parquet(
        tmp_path / "p.parquet",
        {"file_path": pa.array(["data", "other", "data"]), "pos": pa.array([6, 4, 5])},
    )
    file = file_with([DeleteFile(path=path, sequence=1, equality_ids=())])
    applied = Deletes(table, [file]).of(file)
    assert applied.columns == ()
    assert applied.kept(ROWS, 4).tolist() == [True, False, False, True]
    assert applied.kept(ROWS, 0) is None


def test_a_key_is_deleted_by_later_commits_only(table, tmp_path):
    files = [
        DeleteFile(
            path=write_parquet(tmp_path / f"{sequence}.parquet", {"id": pa.array(ids)}, ids=[1]),
            sequence=sequence,
            equality_ids=(1,),
        )
        for sequence, ids in ((2, [1, 2]), (4, [2, 9]))
    ]
    by_commit = {
        number: file_with([each for each in files if each.may_delete_from(number)], number)
        for number in (1, 3, 4)
    }
    deletes = Deletes(table, list(by_commit.values()))
    kept = {number: deletes.of(file).kept(ROWS, 0) for number, file in by_commit.items()}
    assert kept[1].tolist() == [False, False, True, True]
    assert kept[3].tolist() == [True, False, True, True]
    assert kept[4] is None


def test_keys_of_several_columns_are_compared_column_by_column(table, tmp_path):
    columns = {"id": pa.array([1, 3, 4]), "name": pa.array(["b", None, "d"])}
    path = write_parquet(tmp_path / "k.parquet", columns, ids=[1, 2])
    file = file_with([DeleteFile(path=path, sequence=2, equality_ids=(1, 2))])
    applied = Deletes(table, [file]).of(file)
    assert applied.columns == ("id", "name")
    assert applied.kept(ROWS, 0).tolist() == [True, True, False, False]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_texts_that_two_programs_have_written_are_compared(table, tmp_path, kind):
    texts = (pa.array(["a"], pa.string()), pa.array(["d"], pa.large_string()))
    deletes = [
        DeleteFile(
            path=write_parquet(tmp_path / f"{number}.parquet", {"name": each}, ids=[2]),
            sequence=2 + number,
            equality_ids=(2,),
        )
        for number, each in enumerate(texts)
    ]
    file = file_with(deletes)
    rows = ROWS.set_column(1, "name", ROWS.column(1).cast(kind))
    assert Deletes(table, [file]).of(file).kept(rows, 0).tolist() == [False, True, True, False]


@pytest.mark.parametrize("count", [10, 20_000], ids=["few", "many"])
def test_keys_of_several_columns_are_those_that_a_join_finds(table, tmp_path, count):
    rng = np.random.default_rng(2)

    def random_rows(rows):
        numbers = rng.integers(0, count // 5, rows)
        texts = [None if each % 7 == 0 else f"t{each}" for each in rng.integers(0, 9, rows)]
        return {"id": pa.array(numbers), "name": pa.array(texts)}

    path = write_parquet(tmp_path / "k.parquet", random_rows(count), ids=[1, 2])
    file = file_with([DeleteFile(path=path, sequence=2, equality_ids=(1, 2))])
    batch = pa.record_batch(random_rows(3 * count))
    deleted = {tuple(each.values()) for each in pq.read_table(path).to_pylist()}
    expected = [tuple(each.values()) not in deleted for each in batch.to_pylist()]
    assert 0 < sum(expected) < len(expected)
    assert Deletes(table, [file]).of(file).kept(batch, 0).tolist() == expected


def test_keys_of_a_column_that_was_widened_meanwhile(table, tmp_path):
    kinds = {2: pa.int32(), 3: pa.int64()}
    files = [
        DeleteFile(
            path=write_parquet(
                tmp_path / f"{each}.parquet", {"id": pa.array([each], kind)}, ids=[1]
            ),
            sequence=each,
            equality_ids=(1,),
        )
        for each, kind in kinds.items()
    ]
    file = file_with(files)
    for kind in kinds.values():
        rows = pa.record_batch({"id": pa.array([1, 2, 3], kind)})
        assert Deletes(table, [file]).of(file).kept(rows, 0).tolist() == [True, False, False]
