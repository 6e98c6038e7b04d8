"""One door to the records of every log format."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from fluss.errors import CorruptDataError
from fluss.model.tables.table_options import KvFormat, LogFormat
from fluss.model.types.data_type import IntType, StringType
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.compression import BodyCodec
from fluss.records.log.log_batch import iter_log_batches
from fluss.records.log.log_records import read_log_records
from fluss.records.log.log_writer import arrow_log_body, write_log_batch
from fluss.records.log.row_log import row_log_body
from tests.support.generators.arrow_rows import batch_of, rows_of

LAYOUT = BatchLayout.of(["id", "text"], [IntType(), StringType()])
ROWS = [(1, "a"), (None, None), (3, "c")]


def stored(log_format, change_types):
    batch = batch_of(LAYOUT.wire_schema, LAYOUT.types, ROWS)
    if log_format is LogFormat.ARROW:
        body = arrow_log_body(batch, BodyCodec(), change_types=change_types)
    else:
        body = row_log_body(batch, LAYOUT, KvFormat(log_format.value), change_types=change_types)
    (found,) = iter_log_batches(b"".join(write_log_batch(body, schema_id=1)))
    return found


@pytest.mark.parametrize("log_format", list(LogFormat))
@pytest.mark.parametrize("kinds", [None, [1, 2, 4]], ids=["appended", "changed"])
def test_rows_and_change_types_are_read_in_every_format(log_format, kinds):
    change_types = None if kinds is None else np.array(kinds, dtype=np.uint8)
    rows, found = read_log_records(stored(log_format, change_types), LAYOUT, log_format)
    assert rows_of(rows, LAYOUT.types) == ROWS
    assert (None if found is None else found.tolist()) == kinds


@pytest.mark.parametrize(("written", "read"), list(permutations(LogFormat, 2)))
def test_a_batch_of_another_format_is_refused(written, read):
    with pytest.raises(CorruptDataError):
        read_log_records(stored(written, None), LAYOUT, read)
