"""Deletes of a snapshot: by position, and by keys that later commits deleted."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fluss_lake.deletes import Deletes, key_column
from fluss_lake.file_plan import DataFile, DeleteFile


class LocalFiles:
    """The files of a table on this machine, as pyiceberg gives them."""

    def new_input(self, path):
        return SimpleNamespace(open=lambda **_: pa.OSFile(path))


@pytest.fixture
def table(tmp_path):
    names = {1: "id", 2: "name"}
    schema = SimpleNamespace(find_field=lambda number: SimpleNamespace(name=names[number]))
    return SimpleNamespace(io=LocalFiles(), schema=lambda: schema)


def written(path, columns, ids=()):
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(number)} if number else None)
        for (name, array), number in zip(columns.items(), ids or [0] * len(columns), strict=True)
    ]
    pq.write_table(pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields)), path)
    return str(path)


def file_with(deletes, sequence=1):
    return DataFile(
        path="data", rows=4, size_bytes=1, sequence=sequence, offsets=(0, 3), deletes=tuple(deletes)
    )


ROWS = pa.record_batch({"id": pa.array([1, 2, 3, 4]), "name": pa.array(["a", "b", None, "d"])})


def test_positions_delete_rows_of_their_file_alone(table, tmp_path):
    path = written(
        tmp_path / "p.parquet",
        {"file_path": pa.array(["data", "other", "data"]), "pos": pa.array([6, 4, 5])},
    )
    applied = Deletes(table).of(file_with([DeleteFile(path=path, sequence=1, equality_ids=())]))
    assert applied.columns == ()
    assert applied.kept(ROWS, 4).tolist() == [True, False, False, True]
    assert applied.kept(ROWS, 0) is None


def test_a_key_is_deleted_by_later_commits_only(table, tmp_path):
    files = [
        DeleteFile(
            path=written(tmp_path / f"{sequence}.parquet", {"id": pa.array(ids)}, ids=[1]),
            sequence=sequence,
            equality_ids=(1,),
        )
        for sequence, ids in ((2, [1, 2]), (4, [2, 9]))
    ]
    deletes = Deletes(table)
    assert deletes.of(file_with(files, 1)).kept(ROWS, 0).tolist() == [False, False, True, True]
    assert deletes.of(file_with(files, 3)).kept(ROWS, 0).tolist() == [True, False, True, True]
    assert deletes.of(file_with(files, 4)).kept(ROWS, 0) is None


def test_keys_of_several_columns_are_compared_column_by_column(table, tmp_path):
    columns = {"id": pa.array([1, 3, 4]), "name": pa.array(["b", None, "d"])}
    path = written(tmp_path / "k.parquet", columns, ids=[1, 2])
    deletes = [DeleteFile(path=path, sequence=2, equality_ids=(1, 2))]
    applied = Deletes(table).of(file_with(deletes))
    assert applied.columns == ("id", "name")
    assert applied.kept(ROWS, 0).tolist() == [True, True, False, False]


def test_keys_whose_texts_run_together_are_not_equal():
    first = key_column([pa.array(["a", "ab"]), pa.array(["bc", "c"])])
    assert first[0] != first[1]
    numbers = key_column([pa.array([1, 11]), pa.array([12, 2])])
    assert numbers[0] != numbers[1]
    assert np.unique(key_column([pa.array([1, 1]), pa.array(["a", "a"])])).size == 1
