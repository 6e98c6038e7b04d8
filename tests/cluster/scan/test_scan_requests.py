"""What scans cost on the wire, as a recorder between us and a real server sees it."""

import time
from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fluss
from fluss import col
from fluss.connection import table_cache
from fluss.errors import (
    ConfigError,
    FlussError,
    InvalidValueError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.log.log_services import BUCKET_BYTES_KEPT
from fluss.log.plan_fetch import BUCKET_BYTES_FIRST
from fluss.records.log.log_batch import iter_log_headers
from fluss.scan import open_split
from fluss.wire.api import ApiKey
from tests.support.differential.state_model import COORDINATOR_LAG_S
from tests.support.servers.read_harness import eventually

IDS = range(1_000)
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


@pytest.fixture
def session(wire, database):
    """A session that meets no server but by way of the recorder."""
    with fluss.connect(f"fluss://{wire.bootstrap}/{database}") as opened:
        yield opened


def recorded(wire, work):
    with wire.recording() as seen:
        work()
    return seen


def places(asked):
    return {(each.partition_id, each.bucket_id) for each in asked}


def test_one_partition_is_touched_where_one_can_have_rows(session, wire, parted):
    ids = {each.partition_name: each.partition_id for each in parted.partitions()}
    parted.scan().splits()  # leaders are known
    scan = parted.scan(filter=col("day") == "2026-01-02")
    seen = recorded(wire, scan.to_arrow)
    asked = seen.buckets()
    assert {each.partition_id for each in asked} == {ids["2026-01-02"]}
    assert len(seen.reads()) >= 1
    assert {each.bucket_id for each in asked} == {0, 1}


def test_a_whole_key_sends_one_lookup_and_no_fetch(session, wire, keyed):
    keyed.scan(filter=col("id") == 6).to_arrow()
    seen = recorded(wire, keyed.scan(filter=col("id") == 7).to_arrow)
    assert seen.counts() == {"LOOKUP": 1}
    assert [each.keys for each in seen.buckets()] == [1]


def test_several_whole_keys_send_each_server_one_lookup(session, wire, keyed):
    keys = [1, 2, 3, 500, 501, 502, 5_000]
    keyed.scan(filter=col("id") == 6).to_arrow()
    seen = recorded(wire, keyed.scan(filter=col("id").is_in(keys)).to_arrow)
    assert seen.counts() == {"LOOKUP": 1}
    assert sum(each.keys for each in seen.buckets()) == len(keys)


def test_a_bucket_key_leaves_one_bucket(session, wire, events):
    events.scan().splits()
    scan = events.scan(filter=col("id") == 77)
    seen = recorded(wire, lambda: pa.table(scan))
    assert seen.reads()
    (place,) = places(seen.buckets())
    whole = events.scan(with_metadata=["_bucket"]).to_arrow().to_pylist()
    assert place == (None, next(each["_bucket"] for each in whole if each["id"] == 77))


def test_a_key_of_a_pinned_state_is_read_and_not_looked_up(session, wire, keyed):
    keyed.scan(filter=col("id") == 6).to_arrow()
    scan = keyed.scan(filter=col("id") == 7, as_of="latest")
    seen = recorded(wire, lambda: pa.table(scan))
    assert "LOOKUP" not in seen.counts()
    assert len(places(seen.buckets("LIMIT_SCAN", "FETCH_LOG"))) == 1


def test_where_no_row_can_match_no_bucket_is_asked(session, wire, keyed, parted):
    no_key = keyed.scan(filter=(col("id") == 7) & (col("id") == 8))
    no_day = parted.scan(filter=col("day") == "2027-01-01")
    for each in (no_key, no_day):
        seen = recorded(wire, lambda scan=each: pa.table(scan))
        assert seen.buckets() == []
        assert each.to_arrow().num_rows == 0


def test_the_beginning_of_a_key_sends_a_prefix_lookup(session, wire):
    rows = pa.table({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "x": [1.0, 2.0, 3.0, 4.0]})
    table = session.create_table(
        "prefixed", rows, primary_key=["a", "b"], bucket_key=["a"], buckets=3
    )
    table.upsert(rows)
    table.scan(filter=col("a") == 1).to_arrow()
    scan = table.scan(filter=(col("a") == 2) & (col("x") > 3))
    seen = recorded(wire, lambda: pa.table(scan))
    assert seen.counts() == {"PREFIX_LOOKUP": 1}
    assert [each.keys for each in seen.buckets()] == [1]
    assert scan.to_arrow().to_pylist() == [{"a": 2, "b": 2, "x": 4.0}]


def test_counting_a_log_reads_the_headers_of_its_batches(session, wire, rows):
    wide = rows.append_column("text", pa.array([Random(each).randbytes(1_000) for each in IDS]))
    table = session.create_table("wide", wide, buckets=4)
    for start in range(0, 1_000, 100):
        table.append(wide.slice(start, 100))
    whole = recorded(wire, table.scan().to_arrow)
    scan = table.scan()
    assert scan.stats.rows_max == 1_000
    with wire.recording() as seen:
        assert scan.count() == 1_000
    # The lightest column is fetched, of which nothing but the headers is looked at.
    (projected,) = {each.projected_fields for each in seen.reads()}
    assert [table.schema.names[each] for each in projected] in (["id"], ["x"])
    sent = sum(each.rows_bytes for each in seen.reads())
    assert sent < sum(each.rows_bytes for each in whole.reads()) / 50
    assert sum(rows_in(each.records) for each in seen.reads()) == 1_000


def rows_in(records):
    return sum(
        header.record_count for _, header in iter_log_headers(records, magic_1="leader_epoch")
    )


def test_a_projection_reaches_the_server(session, wire, events):
    seen = recorded(wire, events.scan(columns=["x"]).to_arrow)
    assert {each.projected_fields for each in seen.reads()} == {(2,)}
    seen = recorded(wire, events.scan(columns=["x"], filter=col("day") == DAYS[0]).to_arrow)
    assert {each.projected_fields for each in seen.reads()} == {(1, 2)}
    seen = recorded(wire, events.scan().to_arrow)
    assert {each.projected_fields for each in seen.reads()} == {None}


def test_a_plan_over_many_partitions_is_one_round_of_requests(session, wire, parted):
    parted.scan().splits()
    seen = recorded(wire, lambda: parted.scan().splits())
    assert seen.counts().pop("FETCH_LOG") == 1
    assert set(seen.counts()) <= {"FETCH_LOG", "GET_TABLE_INFO", "LIST_PARTITION_INFOS"}
    assert len(seen.buckets()) == 6


@pytest.fixture
def patient_cache(monkeypatch):
    """Facts of tables do not age, however slow the machine is."""
    monkeypatch.setattr(table_cache, "REUSED_S", 3_600.0)


@pytest.fixture
def sixteen(session, rows):
    """A table of sixteen buckets, with rows in each."""
    table = session.create_table("sixteen", rows, bucket_key=["id"], buckets=16)
    table.append(rows)
    return table


def test_sixteen_splits_opened_one_by_one_ask_for_the_table_once(
    session, wire, sixteen, patient_cache
):
    config = session.config
    splits = sixteen.scan().splits()
    assert len(splits) == 16
    seen = recorded(wire, lambda: [open_split(each, config=config).read_all() for each in splits])
    assert seen.counts().get("GET_TABLE_INFO", 0) <= 1
    assert seen.counts()["FETCH_LOG"] <= 16


def test_splits_of_a_table_that_was_made_again_are_refused_whatever_is_kept(
    session, wire, sixteen, patient_cache, rows
):
    config = session.config
    splits = sixteen.scan().splits()
    open_split(splits[0], config=config).read_all()
    session.drop_table("sixteen")
    session.create_table("sixteen", rows, bucket_key=["id"], buckets=16)
    with pytest.raises(TableNotFoundError, match="dropped and created again"):
        open_split(splits[1], config=config).read_all()


def test_another_client_that_makes_a_table_again_is_noticed_by_the_reading(
    session, wire, cluster, database, sixteen, patient_cache, rows
):
    config = session.config
    splits = sixteen.scan().splits()
    planned = open_split(splits[1], config=config).read_all()
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as other:
        other.drop_table("sixteen")
        other.create_table("sixteen", rows, bucket_key=["id"], buckets=16)

    def is_refused():
        try:
            read = open_split(splits[1], config=config).read_all()
        except TableNotFoundError:
            return True
        assert read.equals(planned)  # a real server drops a table after it has answered
        return False

    eventually(is_refused)
    with pytest.raises(TableNotFoundError, match="dropped and created again"):
        open_split(splits[2], config=config).read_all()


def test_splits_planned_by_another_client_after_a_change_are_read_with_the_new_columns(
    session, wire, cluster, database, sixteen, patient_cache
):
    config = session.config
    open_split(sixteen.scan().splits()[0], config=config).read_all()
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as other:
        other.alter_table("sixteen", add_columns={"late": "INT"})
        splits = other.table("sixteen").scan().splits()
    assert "late" in open_split(splits, config=config).schema.names


LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"filter": col("idd") == 7}, FlussError, "did you mean 'id'"),
        ({"filter": pc.field("idd") == 7}, FlussError, "did you mean 'id'"),
        ({"filter": col("id") == "seven"}, InvalidValueError, "BIGINT"),
        ({"filter": col("day") > 5}, InvalidValueError, "STRING"),
        ({"filter": col("_log_offset") < "x"}, InvalidValueError, "_log_offset"),
        ({"columns": ["x", "idd"]}, SchemaMismatchError, "did you mean 'id'"),
        ({"limit": -1}, InvalidValueError, "number of rows"),
        ({"limitt": 1}, ConfigError, "did you mean 'limit'"),
        ({"start": 20, "end": 10}, InvalidValueError, "ends before"),
        ({"start": {0: 20}, "end": {0: 10}}, InvalidValueError, "ends before"),
        ({"start": "-1m", "end": LONG_AGO}, InvalidValueError, "ends before"),
        ({"as_of": 5, "end": 6}, InvalidValueError, "both given"),
        ({"mode": "binlog"}, UnsupportedOperationError, "no primary key"),
    ],
)
def test_a_mistake_is_an_error_before_a_server_is_asked(
    session, wire, events, options, error, text
):
    with wire.recording() as seen, pytest.raises(error, match=text):
        events.scan(**options).to_arrow()
    assert seen.counts() == {}


def test_a_slip_in_a_url_is_an_error_before_a_server_is_asked(wire, database):
    with wire.recording() as seen, pytest.raises(ConfigError, match="did you mean 'tail'"):
        fluss.connect(f"fluss://{wire.bootstrap}/{database}.events?tial=5")
    assert seen.exchanges == []


@pytest.fixture
def heavy(session):
    """A log of 16 MB in four buckets, in 32 batches that do not compress."""
    noise = [Random(each).randbytes(1_000) for each in range(500)]
    rows = pa.table({"id": pa.array(range(500)), "noise": noise})
    table = session.create_table("heavy", rows, buckets=4)
    for _ in range(32):
        table.append(rows)
    return table


HEAVY_BYTES = 32 * 500 * 1_000


def read_bytes(wire, work):
    with wire.recording() as seen:
        work()
    return sum(each.rows_bytes for each in seen.reads())


def test_a_limit_stops_early(session, wire, heavy):
    batch_bytes = HEAVY_BYTES // 32 + 16 * 1024
    assert read_bytes(wire, heavy.scan().to_arrow) > HEAVY_BYTES
    assert read_bytes(wire, heavy.scan(limit=10).to_arrow) <= batch_bytes
    some = heavy.scan(limit=10, filter=col("id") >= 250)
    assert read_bytes(wire, some.to_arrow) <= 4 * 2 * batch_bytes
    assert read_bytes(wire, lambda: heavy.scan().to_dataset().head(5)) <= batch_bytes


def test_a_reader_that_may_stop_soon_fetches_one_batch_and_can_read_on(session, wire, heavy):
    def take_one():
        reader = heavy.scan().read(may_stop_soon=True)
        assert reader.read_next_batch().num_rows

    # A batch of the first bucket, and what was asked for of the others, which cuts theirs off.
    most = HEAVY_BYTES // 32 + 4 * BUCKET_BYTES_FIRST
    assert read_bytes(wire, take_one) <= most
    read_on = heavy.scan().read(may_stop_soon=True).read_all()
    assert read_on.sort_by("id").equals(heavy.to_arrow().sort_by("id"))
    ordered = heavy.scan(order="bucket", columns=["id"])
    assert ordered.read(may_stop_soon=True).read_all() == ordered.read().read_all()


def test_a_whole_table_is_fetched_in_answers_that_grow(wire, heavy):
    rows = heavy.scan().to_reader().read_all()
    with wire.recording() as seen:
        table = heavy.scan().to_arrow()
    assert table.sort_by("id").equals(rows.sort_by("id"))
    first, *later = [each.fetch_bytes_max for each in seen.reads()]
    assert first == 1 << 20  # so that the first rows come soon
    assert first < max(later) <= BUCKET_BYTES_KEPT


def test_a_reader_that_is_let_go_fetches_no_more(session, wire, heavy):
    for _ in range(4):
        heavy.append(heavy.to_arrow())
    wire.forget()

    def take_one():
        reader = heavy.scan().to_reader()
        assert reader.read_next_batch().num_rows

    assert read_bytes(wire, take_one) < 4 * HEAVY_BYTES


def test_duckdb_reads_of_a_dataset_what_its_query_needs(session, wire, events, heavy):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as engine:
        engine.register("events", events.scan().to_dataset())
        engine.register("heavy", heavy.scan().to_dataset())
        with wire.recording() as seen:
            found = engine.sql("select x from events where id = 77").fetchall()
        assert found == [(77 / 8,)]
        assert {each.projected_fields for each in seen.reads()} == {(0, 2)}
        assert len(places(seen.reads())) == 1
        with wire.recording() as seen:
            assert len(engine.sql("select id from heavy limit 5").fetchall()) == 5
        assert {each.projected_fields for each in seen.reads()} == {(0,)}
        with wire.recording() as seen:
            assert engine.sql("select count(*) from events").fetchall() == [(1_000,)]
        assert {each.projected_fields for each in seen.reads()} == {(0,)}


def test_a_plan_over_many_partitions_and_buckets_is_three_requests(session, wire):
    schema = pa.schema([("id", pa.int64()), ("part", pa.string())])
    table = session.create_table("many", schema, partition_by=["part"], buckets=5)
    time.sleep(COORDINATOR_LAG_S)
    for number in range(20):
        table.create_partition({"part": f"p{number:02d}"})
    table.scan().splits()  # leaders are elected, and known
    seen = recorded(wire, lambda: table.scan().splits())
    assert seen.counts() == {"GET_TABLE_INFO": 1, "LIST_PARTITION_INFOS": 1, "FETCH_LOG": 1}
    assert len(seen.buckets("FETCH_LOG")) == 100


def test_options_of_readers_reach_the_servers(session, wire, database, keyed):
    url = f"fluss://{wire.bootstrap}/{database}"
    options = {"scanner.log.read-preference": "remote-first", "scanner.kv.fetch.max-bytes": "4kb"}
    with fluss.connect(url, **options) as other:
        table = other.table("keyed")
        seen = recorded(wire, table.scan(mode="changelog").to_arrow)
        # Requests for one byte ask where logs end, and read nothing.
        reads = [each.request for each in seen.of("FETCH_LOG") if each.request.max_bytes > 1]
        assert {each.read_preference for each in reads} == {1}
        if other._connection.cluster.offers_now(ApiKey.SCAN_KV):
            seen = recorded(wire, table.scan(strategy="scan_kv").to_arrow)
            pages = [each.request.batch_size_bytes for each in seen.of("SCAN_KV")]
            assert set(pages) - {0} == {4_096}  # 0: the request that closes a scan
            assert len(pages) > keyed.buckets * 2
    seen = recorded(wire, keyed.scan(mode="changelog").to_arrow)
    assert not any(each.request.HasField("read_preference") for each in seen.of("FETCH_LOG"))
