from datetime import UTC, date, datetime
from random import Random

import numpy as np
import pytest

from fluss.errors import InvalidSchemaError, InvalidValueError
from fluss.model.paths import TablePath
from fluss.model.predicates.predicate import Constant, col, conjoined, conjuncts
from fluss.model.schema.schema import Schema
from fluss.model.string_map import StringMap
from fluss.model.tables.partitions import PartitionInfo
from fluss.model.tables.table_info import TableInfo
from fluss.model.types.data_type import UNITS_PER_SECOND, DecimalType
from fluss.model.types.factory import DataTypes as T
from fluss.records.filter.row_filter import RowFilter
from fluss.rows.keys.bucketing import bucket_function
from fluss.rows.keys.encoders import bucket_key_encoder
from fluss.rows.keys.partition_text import partition_text
from fluss.scan.plan_filters import FilterPlan, ScanFilter
from tests.support.generators.arrow_rows import batch_of
from tests.support.generators.random_filters import Filters
from tests.support.generators.random_values import LEAF_TYPES, random_value

DAYS = [date(2024, 1, day) for day in range(1, 11)]


def plan_filter(predicate, table, partitions=None, *, metadata_names=None, prunes=True):
    """A filter, bound and planned as a scan does it."""
    return ScanFilter.of(predicate, table, metadata_names).plan(partitions, prunes=prunes)


def table(columns, *, keys=(), partitions=(), bucket_keys=(), buckets=4):
    builder = Schema.builder()
    for name, data_type in columns.items():
        builder = builder.column(name, data_type)
    schema = (builder.primary_key(list(keys)) if keys else builder).build()
    physical = tuple(each for each in keys if each not in partitions)
    return TableInfo(
        table_path=TablePath("db", "t"),
        table_id=1,
        schema_id=1,
        schema=schema,
        bucket_keys=tuple(bucket_keys) or physical,
        partition_keys=tuple(partitions),
        num_buckets=buckets,
        properties=StringMap({}, what="properties"),
        custom_properties=StringMap({}, what="custom properties"),
    )


def named(*names):
    return [PartitionInfo(place, name) for place, name in enumerate(names)]


EVENTS = table(
    {"day": T.date(), "region": T.string(), "v": T.int(), "f": T.double()},
    partitions=("day", "region"),
)
EVENT_PARTITIONS = named(*(f"{day}${region}" for day in DAYS for region in ("EU", "US", "U")))
USERS = table({"id": T.bigint(), "name": T.string()}, keys=("id",))
ORDERS = table(
    {"day": T.string(), "user": T.int(), "line": T.int(), "note": T.string()},
    keys=("day", "user", "line"),
    partitions=("day",),
    bucket_keys=("user",),
)
ORDER_DAYS = named("a", "b", "c")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("day") == DAYS[0], {"2024-01-01$EU", "2024-01-01$US", "2024-01-01$U"}),
        (col("day").is_in(DAYS[:2]) & (col("region") == "EU"), {"2024-01-01$EU", "2024-01-02$EU"}),
        ((col("day") > DAYS[7]) & (col("region") == "U"), {"2024-01-09$U", "2024-01-10$U"}),
        ((col("day") < DAYS[1]) & col("region").starts_with("US"), {"2024-01-01$US"}),
        (
            ((col("day") == DAYS[0]) & (col("region") == "EU"))
            | ((col("day") == DAYS[1]) & (col("region") == "US") & (col("v") > 5)),
            {"2024-01-01$EU", "2024-01-02$US"},
        ),
        (~((col("day") != DAYS[0]) | (col("region") != "EU")), {"2024-01-01$EU"}),
        (col("_partition").starts_with("2024-01-01$E"), {"2024-01-01$EU"}),
        (col("day") == date(2025, 1, 1), set()),
        ((col("day") == DAYS[0]) & (col("day") == DAYS[1]), set()),
        (col("day").is_null(), set()),
    ],
)
def test_partitions_that_cannot_hold_a_row_are_left_out(predicate, expected):
    plan = plan_filter(predicate, EVENTS, EVENT_PARTITIONS)
    assert set(plan.partition_names) == expected
    assert plan.is_empty == (not expected)


@pytest.mark.parametrize(
    "predicate",
    [
        col("v") == 1,
        (col("day") == DAYS[0]) | (col("v") == 1),
        ~((col("day") == DAYS[0]) & (col("v") == 1)),
    ],
)
def test_a_condition_on_other_columns_leaves_no_partition_out(predicate):
    plan = plan_filter(predicate, EVENTS, EVENT_PARTITIONS)
    assert plan.partition_names is None
    assert plan_filter(predicate & (col("day") < DAYS[9]), EVENTS).partition_names is None


def test_what_the_partitions_decide_is_not_asked_of_their_rows():
    by_day = col("day") >= DAYS[5]
    plan = plan_filter(by_day & (col("v") > 5), EVENTS, EVENT_PARTITIONS)
    assert plan.pushed == (col("v") > 5)
    assert plan_filter(by_day, EVENTS, EVENT_PARTITIONS).pushed is None
    mixed = (col("day") == DAYS[0]) | (col("v") > 5)
    assert plan_filter(mixed, EVENTS, EVENT_PARTITIONS).pushed == mixed
    # The partitions are unknown, or the name of one is not theirs.
    assert plan_filter(by_day, EVENTS).pushed == by_day
    assert plan_filter(by_day, EVENTS, [*EVENT_PARTITIONS, *named("odd")]).pushed == by_day


def test_a_partition_whose_name_cannot_be_read_is_kept():
    partitions = named("2024-01-01$EU", "yesterday$EU", "2024-01-02$EU", "odd")
    plan = plan_filter(col("day") == DAYS[0], EVENTS, partitions)
    assert plan.partition_names == ("2024-01-01$EU", "yesterday$EU", "odd")


def bucket_of(key_table, key):
    types = [key_table.schema.column(name).data_type for name in key_table.bucket_keys]
    encoded = bucket_key_encoder(types, lake_format=None).encode_row(key)
    return bucket_function(None).bucket(encoded, key_table.num_buckets)


def test_a_known_bucket_key_leaves_its_buckets():
    assert plan_filter(col("id") == 7, USERS).buckets_kept(4) == (bucket_of(USERS, (7,)),)
    expected = {bucket_of(USERS, (each,)) for each in (7, 8)}
    assert set(plan_filter(col("id").is_in([7, 8, None]), USERS).buckets_kept(4)) == expected
    assert plan_filter((col("id") == 7) | (col("name") == "x"), USERS).bucket_ids is None
    assert plan_filter(col("id").is_in(range(100)), USERS).bucket_ids is None
    assert plan_filter((col("id") == 7) & (col("id") == 8), USERS).buckets_kept(4) == ()
    assert plan_filter((col("id") == 7) & (col("id") < 5), USERS).buckets_kept(4) == ()


def test_buckets_are_asked_for_by_number():
    assert plan_filter(col("_bucket") == 2, USERS).buckets_kept(4) == (2,)
    assert plan_filter((col("_bucket") >= 2) & (col("name") == "x"), USERS).buckets_kept(4) == (
        2,
        3,
    )
    assert plan_filter(col("_bucket") == 9, USERS).is_empty
    other = next(each for each in range(4) if each != bucket_of(USERS, (7,)))
    assert plan_filter((col("_bucket") == other) & (col("id") == 7), USERS).is_empty


def test_both_zeros_are_looked_for():
    floats = table({"k": T.double(), "v": T.int()}, bucket_keys=("k",), buckets=64)
    plan = plan_filter(col("k") == 0.0, floats)
    assert set(plan.buckets_kept(64)) == {bucket_of(floats, (each,)) for each in (0.0, -0.0)}


@pytest.mark.parametrize(
    ("predicate", "offsets"),
    [
        (col("_log_offset") >= 5, (5, None)),
        ((col("_log_offset") > 5) & (col("_log_offset") < 9), (6, 9)),
        (col("_log_offset").is_in([7, 3]), (3, 8)),
        ((col("_log_offset") == 5) | (col("_log_offset") > 8), (5, None)),
        (((col("_log_offset") == 5) | (col("_log_offset") == 8)) & (col("id") == 1), (5, 9)),
        (~(col("_log_offset") < 5), (5, None)),
        ((col("_log_offset") == 5) | (col("id") == 8), None),
        (col("_log_offset") != 5, None),
    ],
)
def test_offsets_are_bounded(predicate, offsets):
    assert plan_filter(predicate, USERS).offset_range == offsets


@pytest.mark.parametrize(
    "predicate",
    [
        (col("_log_offset") > 5) & (col("_log_offset") < 6),
        col("_log_offset") < 0,
        Constant(value=False),
        Constant(value=None) & (col("id") == 1),
        col("id").equal(None),
    ],
)
def test_what_no_row_can_fulfil_reads_nothing(predicate):
    plan = plan_filter(predicate, USERS)
    assert plan.is_empty
    assert plan.buckets_kept(4) == ()
    assert plan.reasons == ("no row can fulfil the filter",)
    assert plan_filter(Constant(value=False), EVENTS).partition_names == ()


def test_times_are_bounded_by_milliseconds_that_leave_nothing_out():
    at = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    finer = at.replace(microsecond=1_500)
    moment = col("_commit_timestamp")
    assert plan_filter(moment >= at, USERS).timestamp_range_ms == (1000, None)
    assert plan_filter(moment >= finer, USERS).timestamp_range_ms == (1002, None)
    assert plan_filter(moment <= finer, USERS).timestamp_range_ms == (None, 1002)
    assert plan_filter((moment > at) & (moment < finer), USERS).timestamp_range_ms == (1001, 1002)


def test_whole_keys_are_looked_up():
    assert plan_filter(col("id") == 7, USERS).lookups == ((7,),)
    assert plan_filter(col("id").is_in([7, 8]) & (col("id") != 8), USERS).lookups == ((7,),)
    assert plan_filter((col("id") == 7) & (col("name") == "x"), USERS).lookups == ((7,),)
    assert plan_filter(col("id") > 7, USERS).lookups is None
    assert plan_filter(col("id").is_in(range(10_001)), USERS).lookups is None
    assert plan_filter(col("v") == 7, EVENTS, EVENT_PARTITIONS).lookups is None


def test_keys_are_those_together_that_the_filter_says_together():
    predicate = ((col("day") == "a") & (col("user") == 1) & (col("line") == 2)) | (
        (col("day") == "b") & (col("user") == 3) & (col("line") == 4)
    )
    plan = plan_filter(predicate, ORDERS, ORDER_DAYS)
    assert plan.lookups == (("a", 1, 2), ("b", 3, 4))
    assert plan.partition_names == ("a", "b")


def test_partitions_that_are_kept_complete_a_key():
    key = (col("user") == 1) & (col("line") == 2)
    assert plan_filter(key, ORDERS, ORDER_DAYS).lookups == (("a", 1, 2), ("b", 1, 2), ("c", 1, 2))
    plan = plan_filter(key & (col("day") > "a"), ORDERS, ORDER_DAYS)
    assert plan.lookups == (("b", 1, 2), ("c", 1, 2))
    assert plan_filter(key & (col("day") == "z"), ORDERS, ORDER_DAYS).is_empty
    assert plan_filter(key, ORDERS).lookups is None


def test_a_bucket_key_that_begins_the_primary_key_is_looked_up_by_prefix():
    plan = plan_filter((col("user") == 1) & (col("day") != "a"), ORDERS, ORDER_DAYS)
    assert (plan.prefix_columns, plan.prefixes) == (("day", "user"), (("b", 1), ("c", 1)))
    assert plan.lookups is None
    whole = plan_filter((col("user") == 1) & (col("line") == 1), ORDERS, ORDER_DAYS)
    assert (whole.prefix_columns, whole.prefixes) == ((), None)
    assert plan_filter(col("line") == 1, ORDERS, ORDER_DAYS).prefixes is None


def test_keys_that_python_cannot_write_are_not_looked_up():
    moments = table({"at": T.timestamp(9), "v": T.int()}, keys=("at",))
    found = plan_filter(col("at") == np.datetime64(1_000, "ns"), moments)
    assert found.lookups == ((datetime(1970, 1, 1, 0, 0, 0, 1),),)  # noqa: DTZ001 - it has none
    finer = plan_filter(col("at") == np.datetime64(1_001, "ns"), moments)
    assert finer.lookups is None
    assert len(finer.buckets_kept(4)) == 1
    days = table({"day": T.date(), "v": T.int()}, keys=("day",))
    assert plan_filter(col("day") == np.datetime64(10**7, "D"), days).lookups is None


def test_conditions_on_columns_are_separated_from_those_on_places():
    predicate = (col("id") > 7) & ((col("_bucket") == 2) | (col("id") == 1)) & (col("name") == "x")
    plan = plan_filter(predicate, USERS)
    assert str(plan.pushed) == "(id > 7 AND name = 'x')"
    assert str(plan.metadata_residual) == "(_bucket = 2 OR id = 1)"
    plain = plan_filter(col("id") > 7, USERS)
    assert (str(plain.pushed), plain.metadata_residual) == ("id > 7", None)


def test_metadata_columns_are_asked_by_the_names_they_have_in_the_scan():
    names = {"meta_bucket": "_bucket"}
    assert plan_filter(col("meta_bucket") == 2, USERS, metadata_names=names).buckets_kept(4) == (2,)
    with pytest.raises(InvalidSchemaError):
        plan_filter(col("_bucket") == 2, USERS, metadata_names=names)


def test_a_plan_lists_what_it_leaves_out_and_why():
    predicate = (col("user") == 1) & (col("day") == "a") & (col("_log_offset") < 9)
    assert plan_filter(predicate, ORDERS, ORDER_DAYS).reasons == (
        "1 of 3 partitions, by day",
        "1 of 4 buckets, by user",
        "offsets before 9",
        "1 beginnings of primary keys, by day, user",
    )
    assert plan_filter(Constant(value=True), USERS).pushed is None


def test_what_does_not_fit_the_table_is_refused_before_anything_is_planned():
    with pytest.raises(InvalidSchemaError, match="nmae"):
        plan_filter(col("nmae") == "x", USERS)
    with pytest.raises(InvalidValueError, match="'id' is BIGINT"):
        plan_filter(col("id") == "7", USERS)


def random_place(rng):
    """A random table, and rows with the partition and bucket that a writer would put them in."""
    keyable = [each for each in LEAF_TYPES if not isinstance(each, DecimalType)]
    types = {f"c{place}": rng.choice(LEAF_TYPES) for place in range(5)}
    partitions = [f"p{place}" for place in range(rng.randint(0, 2))]
    types |= {name: rng.choice(keyable) for name in partitions}
    bucket_keys = rng.sample([name for name in types if name not in partitions], rng.randint(1, 2))
    info = table(types, partitions=partitions, bucket_keys=bucket_keys)
    pools = {}
    for name, data_type in types.items():
        null_rate = 0 if name in partitions or name in bucket_keys else 0.2
        values = [random_value(rng, data_type, null_rate=null_rate) for _ in range(4)]
        pools[name] = [each for each in values if is_placed(each, data_type, name in partitions)]
    return info, types, pools


def is_placed(value, data_type, is_partition):
    if not is_partition:
        return True
    # Before Christ and after, a TIMESTAMP's name is the same; and a name says no empty text.
    text = partition_text(value, data_type)
    is_early = "TIMESTAMP" in data_type.root and (
        value < -62_135_596_800 * UNITS_PER_SECOND[data_type.unit]
    )
    return bool(text) and not is_early and "$" not in text and "+" not in text


@pytest.mark.parametrize("seed", range(5))
def test_places_that_are_left_out_hold_no_row_of_random_filters(seed):
    rng = Random(seed)
    spared = 0
    for _ in range(20):
        info, types, pools = random_place(rng)
        if not all(pools.values()):
            continue
        rows = [{name: rng.choice(pools[name]) for name in types} for _ in range(20)]
        places = [place_of(info, row) for row in rows]
        partitions = named(*dict.fromkeys(name for name, _ in places))
        filters = Filters(rng, types, pools)
        keys = [*info.partition_keys, *info.bucket_keys]
        for _ in range(10):
            predicate = filters.make(names=rng.choice((keys, None)))
            expected = [row for row in rows if filters.truth(predicate, row) is True]
            plan = plan_filter(predicate, info, partitions if info.is_partitioned() else None)
            left = [
                row
                for row, (name, bucket) in zip(rows, places, strict=True)
                if (plan.partition_names is None or name in plan.partition_names)
                and (plan.bucket_ids is None or bucket in plan.buckets_kept(4))
            ]
            assert read(predicate, info, left) == [tuple(row.values()) for row in expected], (
                predicate
            )
            spared += len(left) < len(rows)
    assert spared > 20


def place_of(info, row):
    types = {each.name: each.data_type for each in info.schema.columns}
    texts = [partition_text(row[name], types[name]) for name in info.partition_keys]
    return "$".join(texts), bucket_of(info, [row[name] for name in info.bucket_keys])


def read(predicate, info, rows):
    values = [tuple(row.values()) for row in rows]
    batch = batch_of(info.schema.to_arrow(), info.schema.column_types, values)
    return [values[place] for place in RowFilter(predicate, info.schema).matching(batch)]


@pytest.mark.parametrize(
    "predicate",
    [
        col("id") == 7,
        col("_bucket") == 2,
        col("_log_offset") < 5,
        (col("id") == 7) & (col("_log_offset") < 5),
        (col("id") > 7) & (col("id") < 7),
        Constant(value=False),
    ],
    ids=str,
)
def test_a_filter_of_rows_that_are_chosen_first_spares_nothing(predicate):
    plan = plan_filter(predicate, USERS, prunes=False)
    assert not plan.is_empty
    assert plan == FilterPlan(pushed=plan.pushed, metadata_residual=plan.metadata_residual)
    parts = [each for each in (plan.pushed, plan.metadata_residual) if each is not None]
    assert conjuncts(conjoined(parts)) == conjuncts(predicate)


def test_partitions_decide_nothing_of_rows_that_are_chosen_first():
    by_day = col("day") == DAYS[0]
    plan = plan_filter(by_day, EVENTS, EVENT_PARTITIONS, prunes=False)
    assert plan.partition_names is None
    assert plan.pushed == by_day
    everything = plan_filter(Constant(value=True), EVENTS, EVENT_PARTITIONS, prunes=False)
    assert everything.pushed is None
