"""What an engine may ask of a scan on top of its options, decided once, for all engines."""

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fluss import Schema, TableDescriptor, TableInfo, TablePath, col
from fluss.errors import InvalidSchemaError, InvalidValueError, SchemaMismatchError
from fluss.model.options.scan_options import Mode, Order, scan_options
from fluss.model.paths import TableBucket
from fluss.model.predicates import binding
from fluss.model.predicates.predicate import Constant
from fluss.scan import shape
from fluss.scan.narrow import narrow, narrow_splits
from fluss.scan.plan_filters import FilterPlan
from fluss.scan.plan_scan import Window
from fluss.scan.shape import shape_of, split_schema
from fluss.scan.split import ScanSplit

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("x", pa.float64())])
UNSAID = pc.field("id") == pc.field("id")  # columns compared, which no predicate can say


def table(*, keys=None):
    columns = (
        COLUMNS if keys is None else COLUMNS.set(0, pa.field("id", pa.int64(), nullable=False))
    )
    descriptor = TableDescriptor(Schema(columns, primary_keys=keys), bucket_count=3)
    return TableInfo.of(descriptor, table_path=TablePath("db", "t"), table_id=1, schema_id=1)


def shaped(*, keys=None, **options):
    return shape_of(table(keys=keys), scan_options(options))


def splits_of(scan, count=2):
    filtered = scan.plan_filter()
    return [
        ScanSplit(
            table_path=scan.table.table_path,
            bucket=TableBucket(1, number),
            schema_id=1,
            start=number,
            stop=10 + number,
            output=scan.output,
            chosen=scan.chosen,
            mode=scan.mode,
            filter=filtered.pushed,
            metadata_filter=filtered.metadata_residual,
            limit=scan.options.limit,
        )
        for number in range(count)
    ]


# --- columns --------------------------------------------------------------------------------------


def test_nothing_requested_changes_nothing():
    scan = shaped(filter=col("id") > 5)
    found = narrow(scan)
    assert found.shape is scan
    assert (found.residual, found.takes_limit) == (None, True)
    assert shaped().plan_filter() == FilterPlan()


def test_columns_are_read_in_the_order_requested_and_once():
    found = narrow(shaped(), columns=["x", "id", "x"])
    assert found.shape.schema.names == ["x", "id"]
    assert narrow(shaped(), columns=[]).shape.schema.names == []


def test_metadata_columns_of_the_scan_can_be_requested():
    scan = shaped(with_metadata=True)
    assert narrow(scan, columns=["_bucket", "id"]).shape.output.metadata == ("_bucket", None)
    with pytest.raises(InvalidValueError, match="has no column '_bucket'"):
        narrow(shaped(), columns=["_bucket"])


def test_a_column_that_the_scan_leaves_out_cannot_be_requested():
    with pytest.raises(InvalidValueError, match="has no column 'x'"):
        narrow(shaped(columns=["id"]), columns=["x"])


def test_the_columns_that_a_residual_looks_at_are_read_after_those_requested():
    found = narrow(shaped(), columns=["x"], predicate=UNSAID)
    assert found.shape.schema.names == ["x", "id"]
    assert found.residual.equals(UNSAID)


def test_a_residual_may_look_at_a_column_that_the_scan_leaves_out():
    found = narrow(shaped(columns=["x"]), predicate=UNSAID)
    assert found.shape.schema.names == ["x", "id"]


# --- conditions -----------------------------------------------------------------------------------


def test_a_predicate_joins_the_filter():
    found = narrow(shaped(filter=col("id") > 5), predicate=col("x") < 9.0)
    assert str(found.shape.options.filter) == str((col("id") > 5) & (col("x") < 9.0))
    assert found.residual is None


def test_an_expression_is_divided_into_what_a_predicate_can_say_and_the_rest():
    found = narrow(shaped(), predicate=(pc.field("day") == "a") & UNSAID)
    assert str(found.shape.options.filter) == str(col("day") == "a")
    assert found.residual.equals(UNSAID)
    assert not found.takes_limit


@pytest.mark.parametrize("predicate", [col("id") > 5, pc.field("id") > 5], ids=["ours", "arrow"])
def test_a_condition_comes_after_the_limit_of_the_scan(predicate):
    found = narrow(shaped(limit=10), columns=["x"], predicate=predicate, limit=3)
    assert found.residual is predicate
    assert found.shape.options.filter is None
    assert found.shape.options.limit == 10
    assert not found.takes_limit
    assert found.shape.schema.names == ["x", "id"]


def test_a_condition_joins_the_filter_of_a_tail_which_then_prunes_nothing():
    found = narrow(shaped(tail=10), predicate=col("_bucket") == 1)
    assert found.residual is None
    assert found.shape.plan_filter().bucket_ids is None
    planned = narrow(shaped(), predicate=col("_bucket") == 1).shape.plan_filter()
    assert planned.buckets_kept(3) == (1,)


def test_a_condition_that_does_not_fit_the_columns_is_refused():
    with pytest.raises(InvalidSchemaError, match="ide"):
        narrow(shaped(), predicate=col("ide") > 5)
    with pytest.raises(SchemaMismatchError, match="ide"):
        narrow(shaped(), predicate=pc.field("ide") == pc.field("ide"))


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "requested", "least"), [(None, 3, 3), (10, 3, 3), (2, 3, 2)])
def test_the_smaller_limit_counts_and_makes_the_order_repeatable(given, requested, least):
    found = narrow(shaped(limit=given), limit=requested)
    assert found.shape.options.limit == least
    assert found.shape.order is Order.BUCKET
    assert found.takes_limit


def test_a_limit_is_taken_where_nothing_is_residual():
    found = narrow(shaped(), predicate=col("id") > 5, limit=3)
    assert (found.shape.options.limit, found.takes_limit) == (3, True)
    found = narrow(shaped(), predicate=UNSAID, limit=3)
    assert (found.shape.options.limit, found.takes_limit) == (None, False)


# --- binlogs --------------------------------------------------------------------------------------


def test_a_binlog_is_read_as_whole_rows_of_which_columns_are_given():
    scan = shaped(keys=["id"], mode="binlog")
    found = narrow(scan, columns=["after", "_log_offset"])
    assert found.shape.schema.names == ["after", "_log_offset"]
    assert found.shape.output == scan.output
    assert found.shape.schema.field("after") == scan.schema.field("after")
    again = narrow(found.shape, columns=["_log_offset"])
    assert again.shape.schema.names == ["_log_offset"]


@pytest.mark.parametrize(
    "predicate", [col("id") > 5, pc.field("_log_offset") > 5], ids=["ours", "arrow"]
)
def test_a_condition_on_a_binlog_is_left_to_the_engine(predicate):
    found = narrow(shaped(keys=["id"], mode="binlog"), columns=["after"], predicate=predicate)
    assert found.residual is predicate
    assert found.shape.options.filter is None
    assert ("_log_offset" in found.shape.schema.names) is (not hasattr(predicate, "column"))


# --- splits ---------------------------------------------------------------------------------------


def test_splits_that_are_narrowed_stay_where_they_are():
    scan = shaped()
    found = narrow(scan, columns=["id"], predicate=(col("day") == "a") & (col("_bucket") == 0))
    before = splits_of(scan)
    for split, was in zip(narrow_splits(found.shape, before), before, strict=True):
        assert (split.bucket, split.start, split.stop) == (was.bucket, was.start, was.stop)
        assert split.output.names == ("id",)
        assert str(split.filter) == str(col("day") == "a")
        assert str(split.metadata_filter) == str(col("_bucket") == 0)
        assert split_schema(scan.table, split) == found.shape.schema
        assert pickle.loads(pickle.dumps(split)) == split  # noqa: S301


def test_splits_that_are_pinned_keep_a_condition_that_no_row_fulfils():
    scan = shaped()
    for nothing in (Constant(value=False), (col("id") > 5) & (col("_log_offset") < 0)):
        found = narrow(scan, predicate=nothing)
        assert found.shape.plan_filter().is_empty
        for split in narrow_splits(found.shape, splits_of(scan)):
            assert split.is_filtered


def test_the_times_of_a_condition_meet_those_of_the_split():
    scan = shaped()
    moment = pa.scalar(5_000, pa.timestamp("ms", tz="UTC")).as_py()
    found = narrow(scan, predicate=col("_commit_timestamp") >= moment)
    (split,) = narrow_splits(found.shape, splits_of(scan, 1))
    assert split.window == Window(start_ms=5_000)


def test_splits_of_a_binlog_give_the_columns_requested_where_they_are_read():
    scan = shaped(keys=["id"], mode="binlog")
    found = narrow(scan, columns=["before"])
    (split,) = narrow_splits(found.shape, splits_of(scan, 1))
    assert split.mode is Mode.BINLOG
    assert split_schema(scan.table, split).names == ["before"]


# --- what is worked out once ----------------------------------------------------------------------


def test_the_filter_is_bound_once_and_the_columns_are_laid_out_once(monkeypatch):
    bound, laid_out = [], []
    bind, decide_output = binding.bind, shape.decide_output
    monkeypatch.setattr(binding, "bind", lambda *given: bound.append(1) or bind(*given))
    monkeypatch.setattr(
        shape, "decide_output", lambda *given: laid_out.append(1) or decide_output(*given)
    )
    scan = shaped(filter=col("id") > 5)
    scan.plan_filter()
    scan.plan_filter([])
    narrow(scan, limit=3).shape.plan_filter()
    assert (len(bound), len(laid_out)) == (1, 1)
    narrow(scan, columns=["x"], limit=3).shape.plan_filter()
    assert (len(bound), len(laid_out)) == (1, 2)
    narrow(scan, predicate=col("x") > 1.0)
    assert (len(bound), len(laid_out)) == (2, 2)
