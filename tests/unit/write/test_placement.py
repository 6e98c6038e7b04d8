"""Rows of a frame by partition and bucket, compared with single keys."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from fluss.errors import InvalidValueError
from fluss.lookup.key_placement import KeyPlacer
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.tables.table_info import TableInfo
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.write.placement import Placement, choose_sticky

SCHEMA = pa.schema([("region", pa.string()), ("id", pa.int64()), ("name", pa.string())])


def table(**facts):
    keys = facts.pop("primary_keys", None)
    descriptor = TableDescriptor(Schema(SCHEMA, keys), **({"bucket_count": 5} | facts))
    return TableInfo.of(descriptor, table_path=TablePath("db", "t"), table_id=1, schema_id=1)


def placement(info, **facts):
    layout = BatchLayout.of_schema(info.schema)
    return Placement(
        info, layout, **({"has_leader": lambda *_: True, "is_round_robin": False} | facts)
    )


def batch(rows):
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


ROWS = st.lists(
    st.fixed_dictionaries({
        "region": st.sampled_from(["EU", "US", "MARS"]),
        "id": st.integers(-(2**63), 2**63 - 1),
        "name": st.text("aé\U0001f600", max_size=9),
    }),
    min_size=1,
    max_size=40,
)  # fmt: skip


@given(ROWS, st.sampled_from([None, "paimon", "lance"]))
def test_every_row_goes_to_the_bucket_of_its_key_in_order(rows, lake):
    properties = {} if lake is None else {"table.datalake.format": lake}
    info = table(
        primary_keys=["region", "id", "name"], partition_keys=["region"], properties=properties
    )
    placer = KeyPlacer(info, info.primary_keys, is_prefix=False)
    expected = {}
    for index, row in enumerate(rows):
        placed = placer.place(row)
        bucket_id = placer.bucket(placed.bucket_key, info.num_buckets)
        expected.setdefault((placed.path, bucket_id), []).append(index)
    found = placement(info).place(batch(rows))
    order = list(range(len(rows))) if found.order is None else found.order.tolist()
    assert {
        (each.path, each.bucket_id): order[each.start : each.stop] for each in found.shares
    } == expected


def test_without_a_key_a_frame_stays_together():
    found = placement(table()).place(batch([{"id": each} for each in range(9)]))
    assert found.order is None
    assert len(found.shares) == 1


def test_without_a_key_the_next_frame_goes_to_another_bucket():
    placed = placement(table())
    buckets = [placed.place(batch([{"id": 1}])).shares[0].bucket_id for _ in range(20)]
    assert all(a != b for a, b in pairwise(buckets))


def test_round_robin_continues_where_it_stopped():
    placed = placement(table(), is_round_robin=True)
    counts = [0] * 5
    for size in (3, 4, 8):
        for share in placed.place(batch([{"id": 1}] * size)).shares:
            counts[share.bucket_id] += share.stop - share.start
    assert counts == [3] * 5


def test_a_frame_of_its_own_is_not_taken_apart_by_round_robin():
    placed = placement(table(), is_round_robin=True)
    buckets = [
        placed.place(batch([{"id": 1}] * 3), is_frame=True).shares[0].bucket_id for _ in range(5)
    ]
    assert sorted(buckets) == list(range(5))


def test_a_null_bucket_key_has_no_bucket():
    with pytest.raises(InvalidValueError, match="NULL"):
        placement(table(bucket_keys=["name"])).place(batch([{"name": "a"}, {"name": None}]))


# --- buckets for rows without a bucket key ---

DICE = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 20), DICE, st.data())
def test_the_next_bucket_is_another_one_with_a_leader(count, jitter, data):
    current = data.draw(st.none() | st.integers(0, count - 1))
    led = data.draw(st.sets(st.integers(0, count - 1)))
    chosen = choose_sticky(current, count, led.__contains__, jitter=jitter)
    assert 0 <= chosen < count
    if count > 1:
        assert chosen != current
    if led - {current}:
        assert chosen in led


def test_the_jitter_reaches_every_bucket():
    found = {choose_sticky(None, 5, lambda _: True, jitter=each / 50) for each in range(50)}
    assert found == set(range(5))
