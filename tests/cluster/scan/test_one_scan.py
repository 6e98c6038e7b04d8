"""The dialect for engines: a scan is narrowed, planned, taken elsewhere in pieces, and read."""

import asyncio
import pickle
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fluss
from fluss import col
from fluss.errors import ClosedError, TableNotFoundError, UnsupportedOperationError
from fluss.model.predicates import binding
from fluss.scan import (
    Cancellation,
    QuerySnapshot,
    Scan,
    open_scan,
    open_split,
    scan_planner,
    shape,
)
from fluss.scan.shape import ScanShape

UNSAID = pc.field("id") == pc.field("id")  # which no predicate can say, and every row fulfils


def ids(rows):
    return sorted(rows.column("id").to_pylist())


def test_a_scan_is_opened_by_name_by_url_by_table_and_by_source(session, events, cluster):
    config = events.to_source().config
    for table in (
        f"fluss://{cluster.bootstrap}/{events.name}?tail=5",
        fluss.TablePath(*events.name.split(".")),
        events,
        events.to_source(),
    ):
        scan = open_scan(table, config=config, tail=5)
        assert scan.name == events.name
        assert scan.read().read_all().num_rows == 5
    with pytest.raises(TableNotFoundError):
        open_scan(f"{events.name}s", config=config)
    with pytest.raises(UnsupportedOperationError, match="without an end"):
        open_scan(events.follow())
    with pytest.raises(UnsupportedOperationError, match="without an end"):
        open_scan(events, streaming=True)


def test_a_source_travels_and_a_scan_does_not(events):
    scan = open_scan(events, columns=["id"])
    travelled = pickle.loads(pickle.dumps(scan.source))  # noqa: S301
    assert travelled.with_options(tail=3).scan().schema.names == ["id"]
    with pytest.raises(UnsupportedOperationError, match="cannot be pickled"):
        pickle.dumps(scan)


def test_splits_of_a_narrowed_scan_are_read_elsewhere_as_here(events):
    expression = (pc.field("id") >= 990) & UNSAID
    narrowed = open_scan(events).narrowed(columns=["day"], predicate=expression)
    assert narrowed.scan.schema.names == ["day", "id"]
    assert narrowed.residual.equals(UNSAID)
    splits = pickle.loads(pickle.dumps(narrowed.scan.splits()))  # noqa: S301
    elsewhere = open_split(splits, config=events.to_source().config).read_all()
    assert elsewhere.num_rows == narrowed.scan.read().read_all().num_rows == 10
    one_by_one = [narrowed.scan.read([split]).read_all().num_rows for split in splits]
    assert sum(one_by_one) == 10
    exact = narrowed.read().read_all()
    assert (exact.schema.names, exact.num_rows) == (["day"], 10)


@pytest.mark.parametrize("predicate", [col("id") >= 990, pc.field("id") >= 990, UNSAID])
def test_an_engine_that_leaves_everything_to_the_scan_gets_what_it_requested(events, predicate):
    few = open_scan(events, limit=40, with_metadata=True)
    whole = few.read().read_all()
    narrowed = few.narrowed(columns=["_bucket", "id"], predicate=predicate, limit=7)
    found = narrowed.read().read_all()
    expression = (pc.field("id") >= 990) if predicate is not UNSAID else UNSAID
    expected = whole.filter(expression).slice(0, 7).select(["_bucket", "id"])
    assert narrowed.residual is predicate
    assert found.num_rows == expected.num_rows
    assert ids(found) == ids(expected)


def test_a_scan_that_is_planned_stays_at_its_offsets_when_it_is_narrowed(events, rows):
    scan = open_scan(events)
    splits = scan.splits()
    events.append(rows)
    narrowed = scan.narrowed(columns=["id"], predicate=col("id") < 10)
    assert [each.stop for each in narrowed.scan.splits()] == [each.stop for each in splits]
    assert ids(narrowed.read().read_all()) == list(range(10))
    assert scan.part(splits[:1]).count() == splits[0].rows_max
    assert scan.again().count() == 2 * scan.count()


def test_a_pinned_scan_ends_for_ever_where_it_ends_now(events, keyed, rows):
    for table, options in (
        (events, {}),
        (keyed, {}),
        (keyed, {"filter": col("id") == 500}),
        (keyed, {"mode": "changelog"}),
    ):
        source = open_scan(table, **options).pinned().source
        before = open_scan(source).read().read_all()
        write = table.upsert if table.primary_key else table.append
        write(rows)
        again = pickle.loads(pickle.dumps(source))  # noqa: S301
        assert again.scan().read().read_all().sort_by("id") == before.sort_by("id")


def test_scans_of_one_query_share_their_offsets(events, rows):
    snapshot = QuerySnapshot()
    first = open_scan(events).at(snapshot)
    assert first.count() == len(rows)
    events.append(rows)
    assert open_scan(events).at(snapshot).count() == len(rows)
    narrowed = open_scan(events).at(snapshot).narrowed(predicate=col("id") < 10)
    assert narrowed.scan.count() == 10
    assert open_scan(events).count() == 2 * len(rows)


def test_options_are_changed_without_asking_for_the_table_again(keyed):
    scan = open_scan(keyed, filter=col("id") > 500)
    changed = scan.with_options(mode="changelog", filter=None, columns=["id"])
    assert changed.schema.names == ["id"]
    assert changed.table_info is scan.table_info
    assert changed.with_options(columns=None).options.columns is None


def test_a_binlog_gives_the_columns_requested_here_and_elsewhere(keyed):
    narrowed = open_scan(keyed, mode="binlog").narrowed(columns=["_log_offset", "_change_type"])
    here = narrowed.scan.read().read_all()
    there = open_split(narrowed.scan.splits(), config=keyed.to_source().config).read_all()
    assert here.schema.names == there.schema.names == ["_log_offset", "_change_type"]
    assert here.num_rows == there.num_rows == open_scan(keyed, mode="binlog").count()


def test_a_fragment_keeps_a_condition_that_no_row_fulfils(events):
    fragment = next(events.scan(with_metadata=True).to_dataset().get_fragments())
    assert fragment.to_table().num_rows > 0
    assert fragment.to_table(filter=pc.field("_log_offset") < 0).num_rows == 0
    assert fragment.to_table(filter=pc.scalar(False)).num_rows == 0


# --- cancelling -----------------------------------------------------------------------------------


def test_planning_is_cancelled_while_a_leader_does_not_answer(events, monkeypatch):
    scan, token, asked = open_scan(events), Cancellation(), threading.Event()

    async def silent(*_, **__):
        asked.set()
        await asyncio.sleep(3600)

    monkeypatch.setattr(scan_planner, "fetch_extents", silent)

    def cancel():
        assert asked.wait(30)
        token.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(ClosedError, match="cancelled"):
        scan.read(cancellation=token)
    canceller.join()
    monkeypatch.undo()
    assert scan.count() == 1_000


def test_a_token_that_is_cancelled_already_plans_nothing(events):
    token = Cancellation()
    token.cancel()
    with pytest.raises(ClosedError, match="cancelled"):
        open_scan(events).splits(cancellation=token)


# --- what is worked out once ----------------------------------------------------------------------


def test_a_filtered_scan_is_shaped_once_and_its_filter_is_bound_once(parted, monkeypatch):
    counts = dict.fromkeys(("shapes", "binds", "plans"), 0)

    def counted(owner, name, key):
        work = getattr(owner, name)

        def call(*given, **named):
            counts[key] += 1
            return work(*given, **named)

        monkeypatch.setattr(owner, name, call)

    counted(shape, "decide_output", "shapes")
    counted(binding, "bind", "binds")
    counted(ScanShape, "plan_filter", "plans")
    scan = parted.scan(filter=col("day") == "2026-01-02")
    assert scan.to_arrow().num_rows == 333
    assert scan.count() == 333
    assert counts == {"shapes": 1, "binds": 1, "plans": 1}


def test_a_session_scan_is_a_scan_of_engines(events):
    assert isinstance(events.scan(), Scan)
    assert events.scan(tail=4).narrowed(columns=["id"]).read().read_all().num_rows == 4
    assert isinstance(events.scan().to_arrow(), pa.Table)
