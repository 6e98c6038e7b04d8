"""`fluss import` reads what `fluss export` writes: every type, every format."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from fluss.cli.files.file_formats import open_sink
from fluss.cli.files.format_names import FileFormat
from fluss.cli.files.row_files import RowFile
from fluss.model.types.type_to_arrow import to_arrow_type
from tests.support.generators.arrow_rows import batch_of, rows_of
from tests.support.generators.seeded_values import (
    ALL_TYPES,
    exact,
    random_rows,
    random_type,
    random_value,
    with_field_ids,
)

NAMES = ["a", "b c", 'x"y', "n,m", "ü", "line\nbreak", "1", "#", "q'", "tab\t", "{}", "😀", "null"]
TABLES = 40


def _table(rng: Random):
    count = rng.randint(1, 6)
    types = [
        with_field_ids(rng.choice(ALL_TYPES) if rng.random() < 0.7 else random_type(rng))
        for _ in range(count)
    ]
    names = rng.sample(NAMES, count)
    columns = zip(names, types, strict=True)
    schema = pa.schema([pa.field(n, to_arrow_type(t), nullable=t.nullable) for n, t in columns])
    return schema, types, random_rows(rng, types, rng.choice([0, 1, 3, 20]))


def _rows(table: pa.Table, types) -> list[object]:
    return [exact(row) for batch in table.to_batches() for row in rows_of(batch, types)]


@pytest.mark.parametrize("form", FileFormat)
@pytest.mark.parametrize("seed", range(2))
def test_random_tables_of_all_types_come_back_from_files(form, seed, tmp_path):
    rng = Random(seed)
    for number in range(TABLES):
        schema, types, rows = _table(rng)
        file = str(tmp_path / f"{number}.{form}")
        extra = tuple(random_value(rng, each) for each in types)
        with open_sink(file, form, schema) as write:
            write(
                batch_of(schema, types, [extra, *rows])[1:]
            )  # its arrays have an offset above zero
        batches = list(RowFile(file, form).batches(schema))
        found = pa.Table.from_batches(batches) if batches else schema.empty_table()
        if form is FileFormat.PARQUET:
            found = found.cast(schema)  # it has no seconds
        assert found.schema.types == schema.types
        assert _rows(found, types) == [exact(row) for row in rows], (schema, rows)


@pytest.mark.parametrize("form", FileFormat)
def test_tables_of_all_types_come_back_from_servers(run, session, database, form, tmp_path):
    rng = Random(9)
    for number in range(3):
        types = [with_field_ids(each) for each in rng.sample(ALL_TYPES, 14)]
        names = [f"c{index}" for index in range(14)]
        fields = zip(names, types, strict=True)
        schema = pa.schema([pa.field(name, to_arrow_type(each)) for name, each in fields])
        source = session.create_table(f"source{number}", schema, buckets=1)
        copy = session.create_table(f"copy{number}", source.schema, buckets=1)
        source.append(batch_of(schema, types, random_rows(rng, types, 50)))
        file = str(tmp_path / f"rows.{form}")
        assert run("export", source.name, file).returncode == 0
        done = run("import", copy.name, file)
        assert done.returncode == 0, done.said
        assert _rows(copy.to_arrow(), types) == _rows(source.to_arrow(), types)


@pytest.mark.parametrize("form", FileFormat)
def test_keyed_and_partitioned_tables_come_back(run, session, database, form, tmp_path):
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "day": pa.array([0, 1, 1, 20_000], pa.date32()),
            "text": ["", None, "NULL", 'a,"b"\r\n\x00'],
            "zip": ["007", "1e5", "true", " x "],
        }
    )
    key = {"primary_key": ["id", "day"], "partition_by": ["day"], "buckets": 2}
    source = session.create_table("source", rows, **key)
    copy = session.create_table("copy", rows, **key)
    source.upsert(rows)
    file = str(tmp_path / f"rows.{form}")
    assert run("export", source.name, file).returncode == 0
    for _ in range(2):  # a second import changes nothing
        done = run("import", copy.name, file)
        assert done.returncode == 0, done.said
        assert copy.to_arrow().sort_by("id").equals(rows.cast(copy.schema))
