"""Compares Polars' decoder with pyarrow's reading on files that other programs wrote.

Files of Java have other encodings, page sizes and statistics than those that pyarrow writes, so
what holds for files of tests does not show what holds for these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fluss_lake.lent_decoder import LENT_TYPES
from fluss_polars.parquet_decoder import decode

# Numbers of the same width, which tell NaN and -0.0 apart.
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def compare_decoders(paths: Iterable[Path]) -> Counter[str]:
    """Compare all columns that are lent, of whole files and of parts; values by type and encoding.

    Returns:
        How many values were compared, by type and by the encodings of their column.
    """
    counts: Counter[str] = Counter()
    for path in paths:
        parquet = pq.ParquetFile(path)
        schema, rows = parquet.schema_arrow, parquet.metadata.num_rows
        names = [each.name for each in schema if each.type in LENT_TYPES]
        if not names or not rows:
            continue
        expected = parquet.read(columns=names)
        parts = {(0, rows), (0, rows // 2), (rows // 3, rows - rows // 3), (rows - 1, 1)}
        parts |= {(start, min(257, rows - start)) for start in range(0, rows, max(1, rows // 5))}
        for first, count in sorted(parts):
            found = pa.Table.from_batches(decode(str(path), names, first_row=first, rows=count))
            _check_same(found, expected.slice(first, count), path)
        for name in names:
            found = pa.Table.from_batches(decode(str(path), [name], first_row=0, rows=rows))
            _check_same(found, expected.select([name]), path)
            place = schema.names.index(name)
            columns = [
                parquet.metadata.row_group(group).column(at)
                for group in range(parquet.metadata.num_row_groups)
                for at in range(parquet.metadata.num_columns)
                if parquet.metadata.row_group(group).column(at).path_in_schema == name
            ]
            encodings = sorted({encoding for each in columns for encoding in each.encodings})
            counts[str(schema.field(place).type)] += rows
            counts["/".join(encodings)] += rows
    return counts


def _check_same(found: pa.Table, expected: pa.Table, path: Path) -> None:
    assert found.column_names == expected.column_names, path
    for name in expected.column_names:
        by_polars, by_pyarrow = _plain(found[name]), _plain(expected[name])
        assert by_polars.type == by_pyarrow.type, (path, name)
        assert by_polars.equals(by_pyarrow), (path, name)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    kind = column.type
    if kind in _VIEWS:
        column = column.cast(_VIEWS[kind])
    whole = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    return whole.view(_BITS[kind]) if kind in _BITS else whole
