"""Projected batches: our projection of a stored batch equals that of a Java server."""

from __future__ import annotations

from random import Random

import pytest

from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.projection import Projection, project_log_batch, read_projected
from fluss.records.log.log_batch import iter_log_batches
from tests.support.differential.oracle_rows import (
    rows_java_reads_in_arrow,
    types_java_reads_in_arrow,
)
from tests.support.differential.oracle_types import BatchHeader
from tests.support.generators.arrow_rows import rows_of
from tests.support.generators.seeded_values import ALL_TYPES, random_rows, row_type

LAYOUT = BatchLayout.of(row_type(ALL_TYPES).field_names, ALL_TYPES)
ROWS = 40


def some_positions(seed):
    rng = Random(seed)
    for width in (1, 2, 5, len(ALL_TYPES)):
        yield sorted(rng.sample(range(len(ALL_TYPES)), width))


@pytest.mark.parametrize("append_only", [True, False], ids=["appended", "changed"])
@pytest.mark.parametrize(
    "codec", [("NONE", -1), ("ZSTD", 3), ("LZ4_FRAME", -1)], ids=lambda c: c[0]
)
def test_java_reads_our_projections_of_its_batches(oracle, compare, codec, append_only):
    rows = rows_java_reads_in_arrow(ALL_TYPES, random_rows(Random(81), ALL_TYPES, ROWS))
    header = BatchHeader(append_only=append_only, schema_id=2, base_offset=9, timestamp=8)
    records = [(0 if append_only else 1 + index % 4, row) for index, row in enumerate(rows)]
    stored = oracle.write_log("ARROW", ALL_TYPES, records, header, compression=codec)
    (batch,) = iter_log_batches(stored)
    for positions in some_positions(codec[0]):
        types = [ALL_TYPES[each] for each in positions]
        expected = [tuple(row[each] for each in positions) for row in rows]
        projection = Projection.of(LAYOUT, positions)
        sent = b"".join(bytes(memoryview(each)) for each in project_log_batch(batch, projection))
        (read,) = oracle.read_log("ARROW", types_java_reads_in_arrow(types), sent)
        assert not read.is_valid, "the checksum is that of the whole batch, as Java's own are"
        assert [each[:3] for each in read.records] == [
            (9 + index, 8, change) for index, (change, _) in enumerate(records)
        ]
        java = [each[3] for each in read.records]
        compare.rows("projected log: ours read by Java", types, expected, ours=expected, java=java)
        ours = rows_of(read_projected(batch, projection), types)
        compare.rows("projected log: read by us", types, expected, ours=ours, java=expected)
