"""The count of what became of a writer's rows."""

import pickle

import numpy as np
import pytest

from fluss.errors import FlussError
from fluss.model.paths import PhysicalTablePath, TablePath
from fluss.write.write_batch import Route, WriteBatch
from fluss.write.write_result import Chunk
from fluss.write.write_tally import PARTS_MAX, WriteProgress, WriteTally

FATES = {"acknowledged": (True, None, False), "doubt": (True, "no", True), "refused": (True, "no", False), "open": (False, None, False)}  # fmt: skip


def batch(fate, rows=1):
    is_completed, error, in_doubt = FATES[fate]
    made = WriteBatch(
        route=Route(table_id=1, is_kv=False, schema_id=1),
        path=PhysicalTablePath(TablePath("d", "t")),
        bucket_id=0,
        body=b"",
        row_count=rows,
        size_bytes=1,
        in_doubt=in_doubt,
    )
    made.is_completed, made.error = is_completed, error and FlussError(error)
    return made


def chunk(*fates, of_row=None):
    made = Chunk(sealer=None)
    made.sealed([batch(each) for each in fates], of_row and np.array(of_row, np.int32))
    return made


def test_rows_are_counted_by_what_became_of_their_batches():
    tally = WriteTally()
    tally.add(0, 10, chunk("acknowledged"))
    tally.add(10, 4, chunk("doubt", "acknowledged", "refused", of_row=[1, 0, 2, 1]))
    lost = Chunk(sealer=None)
    lost.failed(FlussError("It was too large."))
    tally.add(14, 2, lost)
    found = tally.report().of(20)
    assert (found.acknowledged, found.in_doubt, found.not_written) == (12, 1, 7)
    assert (found.first_missing, found.first_untaken, found.rows, found.total) == (11, 16, 20, 20)
    assert found.doubtful.tolist() == [11]
    assert found.rows_to_write().tolist() == [12, 14, 15, 16, 17, 18, 19]
    assert str(found) == (
        "12 rows acknowledged, 1 in doubt (sent, without an answer) and 7 not written"
    )
    twin = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own bytes
    assert (str(twin), twin.rows_to_write().tolist()) == (
        str(found),
        found.rows_to_write().tolist(),
    )


def test_the_end_of_a_stream_is_not_counted():
    tally = WriteTally()
    tally.add(0, 3, chunk("refused"))
    assert tally.report().of(None).rows_to_write().tolist() == [0, 1, 2]


def test_parts_in_flight_survive_a_reset():
    tally = WriteTally()
    late = chunk("open")
    tally.add(0, 2, chunk("refused"))
    tally.add(2, 3, late)
    tally.reset()
    assert tally.report().total == 0
    late.batches[0].is_completed = True
    assert tally.report().acknowledged == 3


@pytest.mark.parametrize("fate", ["acknowledged", "doubt"])
def test_a_long_stream_takes_no_more_than_so_many_parts(fate):
    tally = WriteTally()
    rows = PARTS_MAX + 100
    for number in range(rows):
        tally.add(number, 1, chunk(fate))
    assert len(tally._parts) <= PARTS_MAX
    found = tally.report()
    assert (found.acknowledged, found.in_doubt) == (
        (rows, 0) if fate == "acknowledged" else (0, rows)
    )


def test_writers_of_one_table_are_counted_together():
    first, second = WriteTally(), WriteTally()
    first.add(0, 4, chunk("acknowledged"))
    second.add(4, 2, chunk("doubt"))
    first.add(6, 3, chunk("acknowledged", "refused", of_row=[0, 1, 1]))
    alone = first.report()
    assert WriteProgress.joined([alone]) is alone
    found = WriteProgress.joined([alone, second.report()])
    assert (found.acknowledged, found.in_doubt, found.not_written, found.total) == (5, 2, 2, 9)
    assert (found.first_missing, found.first_untaken) == (4, 9)
    assert (found.doubtful.tolist(), found.missing.tolist()) == ([4, 5], [7, 8])
    assert not first.is_empty
    first.reset()
    assert first.is_empty
