"""A decoder that an engine lends: when it is called, and that pyarrow reads what it does not."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from fluss.errors import CorruptDataError
from fluss.model.predicates.binding import bind, column_types
from fluss.model.predicates.predicate import col
from fluss_lake import lent_decoder
from fluss_lake.file_plan import DataFile, DeleteFile
from fluss_lake.file_reader import PartReader
from fluss_lake.iceberg_parts import local_path
from tests.unit.lake.tables import schema_of, write_parquet

ROWS, GROUP_ROWS = 100_000, 12_000
COLUMNS = {
    "id": pa.array(range(ROWS)),
    "text": pa.array([None if each % 9 == 0 else f"text {each % 50}" for each in range(ROWS)]),
}
# The table has renamed and widened columns since the file was written, and added one.
TYPES = {"number": "BIGINT", "text": "STRING", "added": "STRING"}


@pytest.fixture(autouse=True)
def _small_files(monkeypatch):
    monkeypatch.setattr(lent_decoder, "RUN_BYTES_MIN", 0)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    columns = {"id": COLUMNS["id"].cast(pa.int32()), "text": COLUMNS["text"]}
    path = tmp_path_factory.mktemp("files") / "rows.parquet"
    ids = range(1, len(columns) + 1)
    return write_parquet(path, columns, ids, row_group_size=GROUP_ROWS, store_schema=False)


class Decoder:
    """Reads rows as an engine would, and notes its calls; `spoil` changes what it returns."""

    def __init__(self, spoil=lambda batches: batches):
        self.calls = []
        self._spoil = spoil

    def __call__(self, path, columns, *, first_row, rows):
        self.calls.append((path, list(columns), first_row, rows))
        table = pq.read_table(path, columns=list(columns)).slice(first_row, rows)
        return self._spoil(table.to_batches())


def read(path, decoder, *, scheme="file://", deletes=(), **how):
    fields = [
        SimpleNamespace(name=name, field_id=number, required=False)
        for number, name in enumerate(TYPES, start=1)
    ]
    by_key = {each.name: each for each in fields} | {each.field_id: each for each in fields}
    schema = SimpleNamespace(find_field=by_key.get, fields=fields, identifier_field_ids=[])
    reader = PartReader(
        table=SimpleNamespace(io=PyArrowFileIO(), schema=lambda: schema),
        schema=schema_of(**TYPES),
        decoder=decoder,
        **{"columns": tuple(TYPES), "with_places": False, "as_views": True, **how},
    )
    file = DataFile(
        path=scheme + path,
        rows=ROWS,
        size_bytes=1,
        sequence=1,
        offsets=(0, ROWS),
        deletes=tuple(deletes),
    )
    return [each.batch for each in reader.read(SimpleNamespace(files=(file,)), 0, ROWS)]


def plain(batches):
    schema = schema_of(**TYPES).to_arrow()
    schema = pa.schema([schema.field(name) for name in batches[0].schema.names])
    # A format may return views and plain strings in turns.
    return pa.concat_tables(pa.table(each).cast(schema) for each in batches).combine_chunks()


@pytest.mark.parametrize("scheme", ["file://", "file:", ""])
def test_the_decoder_reads_a_local_file_once_by_its_stored_names(path, scheme):
    decoder = Decoder()
    found = plain(read(path, decoder, scheme=scheme))
    assert decoder.calls == [(path, ["id", "text"], 0, ROWS)]
    assert found.equals(plain(read(path, None)))
    assert found["number"].to_pylist() == COLUMNS["id"].to_pylist()
    assert found["added"].null_count == ROWS


def _fail(_):
    raise ValueError("a decoder's own error")


SPOILT = {
    "an error": _fail,
    "a row less": lambda batches: [batches[0].slice(1), *batches[1:]],
    "a row more": lambda batches: [*batches, batches[0].slice(0, 1)],
    "nothing": lambda _: [],
    "another type": lambda batches: [
        each.set_column(0, "id", each["id"].cast(pa.int64())) for each in batches
    ],
    "another order": lambda batches: [each.select(["text", "id"]) for each in batches],
    "a column less": lambda batches: [each.select(["id"]) for each in batches],
}


@pytest.mark.parametrize("spoil", SPOILT)
def test_pyarrow_reads_what_the_decoder_does_not(path, spoil):
    decoder = Decoder(SPOILT[spoil])
    assert plain(read(path, decoder)).equals(plain(read(path, None)))
    assert len(decoder.calls) == 1  # it is not tried again for this file


@pytest.mark.parametrize("good", range(4))
@pytest.mark.parametrize("piece_bytes", [1, 120_000, 700_000])
def test_pyarrow_goes_on_after_the_last_decoded_row(path, monkeypatch, good, piece_bytes):
    monkeypatch.setattr(lent_decoder, "PIECE_BYTES_USEFUL", piece_bytes)
    monkeypatch.setattr(lent_decoder, "PIECE_BYTES_MAX", piece_bytes)
    left = [True] * good

    def spoil(batches):
        return batches if left and left.pop() else _fail(batches)

    decoder = Decoder(spoil)
    assert plain(read(path, decoder)).equals(plain(read(path, None)))
    assert len(decoder.calls) == good + 1 or piece_bytes == 700_000


def test_pieces_are_bounded_and_end_with_row_groups_unless_those_are_large(path, monkeypatch):
    size = (
        GROUP_ROWS * 20
        + pq.ParquetFile(path).metadata.row_group(0).column(1).total_uncompressed_size
    )
    monkeypatch.setattr(lent_decoder, "PIECE_BYTES_USEFUL", size * 3)
    monkeypatch.setattr(lent_decoder, "PIECE_BYTES_MAX", size * 3)
    merged = Decoder()
    read(path, merged)
    assert {each[2] % GROUP_ROWS for each in merged.calls} == {0}
    assert 1 < len(merged.calls) <= 4
    monkeypatch.setattr(lent_decoder, "PIECE_BYTES_USEFUL", size // 3)
    monkeypatch.setattr(lent_decoder, "PIECE_BYTES_MAX", size // 3)
    cut = Decoder()
    read(path, cut)
    assert max(each[3] for each in cut.calls) <= GROUP_ROWS // 3
    assert sum(each[3] for each in cut.calls) == ROWS


def test_skipped_row_groups_are_not_decoded(path):
    decoder = Decoder()
    schema = schema_of(**TYPES)
    condition = bind(col("number") >= ROWS - 10, column_types(schema))
    read(path, decoder, condition=condition)
    begins = ROWS // GROUP_ROWS * GROUP_ROWS
    assert [each[2:] for each in decoder.calls] == [(begins, ROWS - begins)]


def test_rows_that_are_no_views_are_not_decoded(path, tmp_path):
    places = tmp_path / "p.parquet"
    pq.write_table(pa.table({"file_path": [f"file://{path}"], "pos": [1]}), places)
    deletes = [DeleteFile(path=str(places), sequence=2, equality_ids=())]
    decoder = Decoder(_fail)
    assert sum(each.num_rows for each in read(path, decoder, deletes=deletes)) == ROWS - 1
    assert sum(each.num_rows for each in read(path, decoder, as_views=False)) == ROWS
    assert sum(each.num_rows for each in read(path, decoder, columns=())) == ROWS
    assert sum(each.num_rows for each in read(path, decoder, columns=("added",))) == ROWS
    assert decoder.calls == []


def test_small_files_are_not_worth_a_call(path, monkeypatch):
    monkeypatch.setattr(lent_decoder, "RUN_BYTES_MIN", 2**30)
    decoder = Decoder(_fail)
    assert plain(read(path, decoder)).equals(plain(read(path, None)))
    assert decoder.calls == []


def test_a_damaged_file_is_the_same_error(path, tmp_path):
    data = bytearray(Path(path).read_bytes())
    data[4:4_000] = b"\xff" * 3_996
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(data)
    errors = []
    for decoder in (Decoder(), None):
        with pytest.raises(CorruptDataError) as caught:
            read(str(damaged), decoder)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_ctrl_c_in_a_decoder_is_no_reason_to_read_on(path):
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(path, Decoder(interrupted))


@pytest.mark.parametrize("path", ["s3://bucket/f.parquet", "gs://b/f", "hdfs://host/f"])
def test_files_in_stores_are_not_local(path):
    assert local_path(PyArrowFileIO(), path) is None


def test_files_of_another_io_are_not_local():
    assert local_path(SimpleNamespace(properties={}), "/lake/f.parquet") is None
