"""Columns that are read by their dictionaries have the same rows as those read value by value."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fluss.records.arrow.dictionaries import DICTIONARY, without_dictionaries
from fluss_lake import file_reader
from fluss_lake.dictionary_columns import dictionary_columns
from fluss_lake.file_plan import DataFile, DeleteFile
from fluss_lake.file_reader import PartReader
from tests.unit.lake.tables import schema_of, write_parquet

ROWS, GROUP_ROWS = 300_000, 70_000
RNG = np.random.default_rng(1)
KINDS = RNG.integers(0, 90, ROWS)
TEXTS = pa.array([None, "", *(f"text {each}" for each in range(98))])
COLUMNS = {
    "few": TEXTS.take(pa.array(KINDS)),
    # Each row group has a dictionary of its own.
    "growing": pa.array([f"g{each // 9_000}" for each in range(ROWS)]),
    "bytes": TEXTS.cast(pa.binary()).take(pa.array(KINDS)),
    "nothing": pa.nulls(ROWS, pa.string()),
    "different": pa.array([f"text {each}" for each in range(ROWS)]),
    "id": pa.array(np.arange(ROWS)),
}
TYPES = {"bytes": "BYTES", "id": "BIGINT"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "rows.parquet"
    ids = range(1, len(COLUMNS) + 1)
    return write_parquet(path, COLUMNS, ids, row_group_size=GROUP_ROWS, store_schema=False)


def read(path, deletes=(), *, as_views=False, dictionaries=()):
    fields = [
        SimpleNamespace(name=name, field_id=number, required=False)
        for number, name in enumerate(COLUMNS, start=1)
    ]
    by_key = {each.name: each for each in fields} | {each.field_id: each for each in fields}
    schema = SimpleNamespace(find_field=by_key.get, fields=fields, identifier_field_ids=[])
    io = SimpleNamespace(new_input=lambda path: SimpleNamespace(open=lambda **_: pa.OSFile(path)))
    reader = PartReader(
        table=SimpleNamespace(io=io, schema=lambda: schema),
        schema=schema_of(**{name: TYPES.get(name, "STRING") for name in COLUMNS}),
        columns=tuple(COLUMNS),
        with_places=False,
        as_views=as_views,
        dictionaries=frozenset(dictionaries),
    )
    file = DataFile(
        path=path, rows=ROWS, size_bytes=1, sequence=1, offsets=(0, ROWS), deletes=tuple(deletes)
    )
    found = [each.batch for each in reader.read(SimpleNamespace(files=(file,)), 0, ROWS)]
    if dictionaries:
        return found
    return pa.Table.from_batches(found).combine_chunks()


def test_columns_of_few_values_are_chosen(path):
    metadata = pq.ParquetFile(path).metadata
    chosen = dictionary_columns(metadata, [*COLUMNS, "another"])
    assert set(chosen) >= {"few", "growing", "bytes"}
    assert not {"different", "id"} & set(chosen)


def test_all_rows_are_those_that_were_written(path):
    assert read(path).to_pydict() == {name: each.to_pylist() for name, each in COLUMNS.items()}


def test_both_ways_read_the_same(path, tmp_path, monkeypatch):
    columns = {"few": pa.array(["text 3", "text 7"]), "pos": pa.array([1, ROWS - 1])}
    equal = write_parquet(tmp_path / "e.parquet", {"few": columns["few"]}, [1])
    places = tmp_path / "p.parquet"
    pq.write_table(pa.table({"file_path": [path] * 2, "pos": columns["pos"]}), places)
    deletes = [
        DeleteFile(path=equal, sequence=2, equality_ids=(1,)),
        DeleteFile(path=str(places), sequence=2, equality_ids=()),
    ]
    by_dictionary = [read(path), read(path, deletes)]
    monkeypatch.setattr(file_reader, "dictionary_columns", lambda *_: [])
    by_value = [read(path), read(path, deletes)]
    for mine, other in zip(by_dictionary, by_value, strict=True):
        mine.validate(full=True)
        assert mine.schema == other.schema
        assert mine.equals(other)
    assert by_value[0].num_rows > by_value[1].num_rows + 2


def test_views_have_the_same_values(path):
    viewed, plain = read(path, as_views=True), read(path)
    viewed.validate(full=True)
    kinds = {each.name: each.type for each in viewed.schema}
    assert kinds["few"] == kinds["growing"] == pa.string_view()
    assert kinds["bytes"] == pa.binary_view()
    assert viewed.cast(plain.schema).equals(plain)


def test_rows_that_are_filtered_by_deletes_are_no_views(path, tmp_path):
    places = tmp_path / "p.parquet"
    pq.write_table(pa.table({"file_path": [path] * 2, "pos": [1, ROWS - 1]}), places)
    deletes = [DeleteFile(path=str(places), sequence=2, equality_ids=())]
    found = read(path, deletes, as_views=True)
    assert found.num_rows == ROWS - 2
    assert found.equals(read(path, deletes))


TEXT_COLUMNS = [name for name in COLUMNS if name not in TYPES]


def test_columns_are_dictionaries_where_the_file_has_them(path):
    found = read(path, dictionaries=TEXT_COLUMNS)
    for each in found:
        each.validate(full=True)
    kinds = {each.name: each.type for each in found[0].schema}
    assert kinds["few"] == kinds["growing"] == DICTIONARY
    assert (kinds["different"], kinds["bytes"]) == (pa.string(), pa.binary())
    texts = pa.Table.from_batches(map(without_dictionaries, found)).combine_chunks()
    assert texts.equals(read(path))


def test_only_the_columns_that_may_are_dictionaries(path):
    kinds = {each.name: each.type for each in read(path, dictionaries=["growing"])[0].schema}
    assert (kinds["few"], kinds["growing"]) == (pa.string(), DICTIONARY)


def test_keys_of_deletes_are_compared_as_texts(path, tmp_path):
    equal = write_parquet(tmp_path / "e.parquet", {"few": pa.array(["text 3", None])}, [1])
    deletes = [DeleteFile(path=equal, sequence=2, equality_ids=(1,))]
    found = read(path, deletes, dictionaries=TEXT_COLUMNS)
    kinds = {each.name: each.type for each in found[0].schema}
    assert (kinds["few"], kinds["growing"]) == (pa.string(), DICTIONARY)
    texts = pa.Table.from_batches(map(without_dictionaries, found)).combine_chunks()
    assert texts.equals(read(path, deletes))
    assert 0 < texts.num_rows < ROWS


def test_large_texts_of_a_file_are_plain_in_dictionaries(tmp_path):
    columns = {**COLUMNS, "few": COLUMNS["few"].cast(pa.large_string())}
    path = write_parquet(tmp_path / "large.parquet", columns, range(1, len(columns) + 1))
    found = read(path, dictionaries=TEXT_COLUMNS)
    assert found[0].schema.field("few").type == DICTIONARY
    texts = pa.Table.from_batches(map(without_dictionaries, found)).combine_chunks()
    assert texts.equals(read(path))
