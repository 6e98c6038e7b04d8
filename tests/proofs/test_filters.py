"""Filters on a real cluster: whatever is skipped, the rows are those of SQL."""

import time
from itertools import islice
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fluss.errors import UnsupportedOperationError
from fluss.model.metadata_columns import METADATA_TYPES
from fluss.model.schema.column import Column
from fluss.model.schema.schema import Schema
from fluss.model.types.factory import DataTypes as T
from tests.support.differential.state_model import COORDINATOR_LAG_S
from tests.support.generators.arrow_rows import batch_of, rows_of
from tests.support.generators.random_filters import Filters
from tests.support.generators.random_values import LEAF_TYPES, NESTED_TYPES, random_value
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE

PARTITION_TYPES = (T.int(), T.bigint(), T.date(), T.boolean(), T.string())
PLACE = ["_partition", "_bucket", "_log_offset"]
FILTERS_A_TABLE = 25
# 2 000 filters in the long run (`./dev prove filters`), on as many logs as states.
TABLES = 40 if IS_EXHAUSTIVE else 4


def random_columns(rng, count):
    types = {f"c{place}": rng.choice(LEAF_TYPES) for place in range(count)}
    return types | {"nested": rng.choice(NESTED_TYPES)}


def partition_values(rng, data_type):
    if data_type == T.string():
        return ["a", "ab", "b"]
    if data_type == T.date():
        return [-1, 0, 19_000]
    values = [random_value(rng, data_type, null_rate=0) for _ in range(3)]
    return list(dict.fromkeys(values))


def made_table(session, rng, name, *, has_key):
    """Create a random table with random rows; return it with the values of its columns."""
    types = {"k": T.int(), **random_columns(rng, 4)}
    pools = {each: [random_value(rng, kind) for _ in range(5)] for each, kind in types.items()} | {
        "k": list(range(12))
    }
    partitions = []
    if rng.random() < 0.6:
        partitions, types["p"] = ["p"], rng.choice(PARTITION_TYPES)
        pools["p"] = partition_values(rng, types["p"])
    if has_key:
        for each in ("k", *partitions):
            types[each] = types[each].not_null()
    columns = [Column(each, kind) for each, kind in types.items()]
    schema = Schema(columns).to_arrow()
    keys = {"primary_key": ["k", *partitions]} if has_key else {"bucket_key": ["k"]}
    table = session.create_table(name, schema, buckets=3, partition_by=partitions or None, **keys)
    if partitions:
        # A busy coordinator of 0.9.1 may learn of partitions before it learns of their table, and
        # then never elects leaders (a NullPointerException in its log).
        time.sleep(COORDINATOR_LAG_S)
    write = table.upsert if has_key else table.append
    for _ in range(3):
        rows = [[rng.choice(pools[each]) for each in types] for _ in range(12)]
        write(batch_of(schema, list(types.values()), rows))
    return table, types, pools


@pytest.mark.parametrize("seed", range(TABLES))
def test_skipped_parts_of_a_log_hold_no_row_of_random_filters(session, seed):
    rng = Random(seed)
    table, types, pools = made_table(session, rng, f"log{seed}", has_key=False)
    types = types | METADATA_TYPES
    every = table.scan(columns=[*types]).to_arrow()
    rows = physical_rows(every, types)
    for name in METADATA_TYPES:
        pools[name] = sorted({row[name] for row in rows if row[name] is not None}) or [None]
    del types["_change_type"]
    filters = Filters(rng, types, pools)
    focus = [*PLACE[:2], "k", "p"] if "p" in types else ["_bucket", "k", "_log_offset"]
    for _ in range(FILTERS_A_TABLE):
        predicate = filters.make(names=rng.choice((None, focus)))
        expected = [row for row in rows if filters.truth(predicate, row) is True]
        found = table.scan(filter=predicate, columns=PLACE).to_arrow()
        assert places(found.to_pylist()) == places(expected), predicate


@pytest.mark.parametrize("seed", range(TABLES))
def test_skipped_parts_of_a_state_hold_no_row_of_random_filters(session, seed):
    rng = Random(seed)
    table, types, pools = made_table(session, rng, f"state{seed}", has_key=True)
    rows = physical_rows(table.to_arrow(), types)
    filters = Filters(rng, types, pools)
    keys = ["k", *(["p"] if "p" in types else [])]
    for _ in range(FILTERS_A_TABLE):
        predicate = filters.make(names=rng.choice((None, keys)))
        expected = [row for row in rows if filters.truth(predicate, row) is True]
        found = table.scan(filter=predicate, columns=keys).to_arrow()
        key_types = {each: types[each] for each in keys}
        assert sorted(tuple(each.values()) for each in physical_rows(found, key_types)) == sorted(
            tuple(row[each] for each in keys) for row in expected
        ), predicate


def physical_rows(table, types):
    batches = table.select(list(types)).combine_chunks().to_batches()
    values = [row for batch in batches for row in rows_of(batch, list(types.values()))]
    return [dict(zip(types, row, strict=True)) for row in values]


def places(rows):
    return sorted(tuple(str(row[each]) for each in PLACE) for row in rows)


def test_expressions_of_pyarrow_filter_as_predicates_do(events):
    id_ = pc.field("id")
    found = events.scan(filter=(id_ < 5) | id_.isin([7, None])).to_arrow()
    assert sorted(found.column("id").to_pylist()) == [0, 1, 2, 3, 4, 7]
    with pytest.raises(UnsupportedOperationError, match="calls add"):
        events.scan(filter=id_ + 1 == 5)
    follower = events.follow(start="earliest", filter=id_ == 3)
    try:
        rows = pa.Table.from_batches(islice(follower, 1))
    finally:
        follower.close()
    assert rows.column("id").to_pylist() == [3]
