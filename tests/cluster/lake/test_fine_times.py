"""Times in nanoseconds: a lake keeps microseconds, so values are truncated and keys are refused.

Fluss's own job writes `ChronoUnit.MICROS.between(EPOCH, value)`, which truncates towards 1970.
"""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest

from fluss.errors import UnsupportedOperationError
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.rounds import begun, one_round

COLUMNS = {"id": "BIGINT", "at": "TIMESTAMP(9)", "zoned": "TIMESTAMP_LTZ(9)"}
TIMES = np.array([0, 1, 999, 1_000, 1_001, 1_700_000_000_123_456_789], dtype=np.int64)


def made(session, **how):
    return session.create_table(
        f"ns_{uuid.uuid4().hex[:8]}", COLUMNS, buckets=1, properties=LAKE, **how
    )


def times_of(table, **options):
    rows = table.scan(**options).to_arrow().sort_by("id")
    assert rows.schema.field("at").type == pa.timestamp("ns")
    found = [rows.column(name).cast(pa.int64()).to_pylist() for name in ("at", "zoned")]
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("key", [None, "id"], ids=["log", "state"])
def test_values_are_truncated_in_the_lake_alone(session, key):
    table = made(session, **({"primary_key": key} if key else {}))
    rows = pa.table(
        {
            "id": list(range(len(TIMES))),
            "at": pa.array(TIMES, pa.timestamp("ns")),
            "zoned": pa.array(TIMES, pa.timestamp("ns", "UTC")),
        }
    )
    (table.upsert if key else table.append)(rows)
    assert times_of(table) == TIMES.tolist()
    one_round(table)
    truncated = [each // 1_000 * 1_000 for each in TIMES.tolist()]
    assert times_of(table, lake="only") == times_of(table) == truncated
    assert times_of(table, lake="off") == TIMES.tolist()
    # A filter compares what a scan gives.
    assert times_of(table, filter="at = TIMESTAMP '1970-01-01 00:00:00.000001'") == [1_000, 1_000]


@pytest.mark.parametrize("lake", [None, "union", "only"])
def test_keys_in_nanoseconds_are_refused(session, lake):
    table = made(session, primary_key=["id", "at"], bucket_key="id")
    rows = pa.table(
        {
            "id": [1, 1],
            "at": pa.array([1, 2], pa.timestamp("ns")),
            "zoned": pa.array([0, 0], pa.timestamp("ns", "UTC")),
        }
    )
    table.upsert(rows)
    with pytest.raises(UnsupportedOperationError, match="'at' of its primary key is TIMESTAMP"):
        begun(table)
    if lake is None:
        assert table.count() == 2
        return
    with pytest.raises(UnsupportedOperationError, match="nanoseconds"):
        table.scan(lake=lake).count()
