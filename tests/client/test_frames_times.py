"""Times that a table with a primary key would cut are refused, wherever in a row they are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fluss.client.frames.times import check_times
from fluss.errors import InvalidValueError

KINDS = {
    "us": (pa.time64("us"), 1_000, 1_001),
    "ns": (pa.time64("ns"), 1_000_000, 1_000_001),
}


@pytest.mark.parametrize("unit", KINDS)
@pytest.mark.parametrize("inside", ["alone", "list", "row", "map", "deep"])
def test_a_time_finer_than_a_millisecond_is_refused(unit, inside):
    kind, whole, fine = KINDS[unit]
    row = pa.struct([("a", pa.int8()), ("at", kind)])
    made = {
        "alone": (kind, lambda each: each),
        "list": (pa.list_(kind), lambda each: [None, each]),
        "row": (row, lambda each: {"a": 1, "at": each}),
        "map": (pa.map_(pa.string(), kind), lambda each: [("k", each)]),
        "deep": (pa.list_(pa.map_(kind, row)), lambda each: [[(each, {"a": 1, "at": each})]]),
    }
    into, put = made[inside]

    def rows(number):
        value = pa.scalar(number, kind)
        columns = {"id": [1, 2], "at": pa.array([None, put(value)], into)}
        return pa.record_batch(columns)

    check_times(rows(whole))
    with pytest.raises(InvalidValueError, match="'at' has times finer than a millisecond"):
        check_times(rows(fine))
