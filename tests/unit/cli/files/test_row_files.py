"""Files of rows are read with memory for a part of them."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet as pq

from fluss.cli.files.format_names import FileFormat
from fluss.cli.files.row_files import RowFile

GROUPS, GROUP_ROWS = 40, 20_000


def _parquet(path, rows):
    pq.write_table(rows, path, row_group_size=GROUP_ROWS, compression="NONE", use_dictionary=False)


def _one_row_group(path, rows):
    pq.write_table(
        rows, path, row_group_size=rows.num_rows, compression="NONE", use_dictionary=False
    )


def _arrow(path, rows):
    with ipc.new_file(path, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=GROUP_ROWS)


@pytest.mark.parametrize(
    ("write", "file_format"),
    [
        (_parquet, FileFormat.PARQUET),
        (_one_row_group, FileFormat.PARQUET),
        (_arrow, FileFormat.ARROW),
    ],
)
def test_reading_takes_memory_for_a_part_of_a_file(write, file_format, tmp_path):
    numbers = np.random.default_rng(1).integers(0, 1 << 60, GROUPS * GROUP_ROWS)
    rows = pa.table({"id": np.arange(len(numbers)), "x": numbers})
    path = tmp_path / "rows"
    write(path, rows)
    size, schema = path.stat().st_size, rows.schema
    del rows
    before, peak, seen = pa.total_allocated_bytes(), 0, 0
    file = RowFile(str(path), file_format)
    for batch in file.batches(schema):
        seen += batch.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)
    file.close()
    assert seen == GROUPS * GROUP_ROWS
    assert peak < size / 2
