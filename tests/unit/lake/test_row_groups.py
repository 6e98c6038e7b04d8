"""Row groups are left out by what a file says of them, and rows keep their places."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fluss import col
from fluss.model.predicates.binding import bind, column_types
from fluss_lake.row_groups import row_groups
from tests.unit.lake.tables import schema_of

SCHEMA = schema_of(
    id="BIGINT", text="STRING", day="DATE", at="TIMESTAMP(3)", zoned="TIMESTAMP_LTZ(6)",
    exact="DECIMAL(10,2)", clock="TIME(3)", x="DOUBLE", pair="ROW<x INT>",
)  # fmt: skip
GROUP, GROUPS = 100, 5
START = dt.datetime(2026, 1, 1)  # noqa: DTZ001


def rows():
    ids = np.arange(GROUP * GROUPS)
    micros = [START + dt.timedelta(minutes=int(each)) for each in ids]
    return pa.table(
        {
            "__offset": pa.array(ids),
            "id": pa.array(ids),
            "text": pa.array([f"{each:05}" for each in ids]),
            "day": pa.array([(START + dt.timedelta(days=int(each))).date() for each in ids]),
            "at": pa.array(micros, pa.timestamp("us")),
            "zoned": pa.array(micros, pa.timestamp("us", "UTC")),
            "exact": pa.array([decimal.Decimal(int(each)) for each in ids], pa.decimal128(10, 2)),
            "clock": pa.array(ids * 1_000_000, pa.time64("us")),
            "x": pa.array(ids / 2),
            "pair": pa.array([{"x": int(each)} for each in ids]),
        }
    )


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "rows.parquet"
    pq.write_table(rows(), path, row_group_size=GROUP)
    return pq.read_metadata(path)


def groups_of(metadata, condition=None, offsets=None):
    bound = None if condition is None else bind(condition, column_types(SCHEMA))
    names = {each: each for each in rows().column_names}
    return row_groups(metadata, names, bound, offsets)


UTC = START.replace(tzinfo=dt.UTC)
CONDITIONS = {
    "a number": (col("id") == 250, [2]),
    "numbers far apart": (col("id").is_in([1, 499]), [0, 4]),
    "a text": (col("text") < "00100", [0]),
    "a date": (col("day") == dt.date(2026, 1, 1), [0]),
    "a time": (col("at") >= START + dt.timedelta(minutes=400), [4]),
    "a time in a zone": (col("zoned") < UTC + dt.timedelta(minutes=100), [0]),
    "a decimal": (col("exact") == decimal.Decimal(399), [3]),
    "a time of the day": (col("clock") < dt.time(0, 1, 40), [0]),
    "a floating-point number": (col("x") < 1.0, [0, 1, 2, 3, 4]),
    "none": (col("id") > 10_000, []),
}


@pytest.mark.parametrize(("condition", "kept"), CONDITIONS.values(), ids=CONDITIONS)
def test_a_group_without_such_a_row_is_left_out(metadata, condition, kept):
    found = groups_of(metadata, condition)
    assert [number for run in found.runs for number in run.groups] == kept
    assert found.left_out_by_condition == GROUPS - len(kept)
    assert all(run.first_row == run.groups.start * GROUP for run in found.runs)


def test_offsets_leave_groups_out_without_being_counted(metadata):
    found = groups_of(metadata, offsets=range(150, 300))
    assert [run.groups for run in found.runs] == [range(1, 3)]
    assert found.left_out_by_condition == 0


def test_a_file_without_statistics_is_read_whole(tmp_path):
    path = tmp_path / "plain.parquet"
    pq.write_table(rows(), path, row_group_size=GROUP, write_statistics=False)
    found = groups_of(pq.read_metadata(path), col("id") == 1, range(1))
    assert [run.groups for run in found.runs] == [range(GROUPS)]
