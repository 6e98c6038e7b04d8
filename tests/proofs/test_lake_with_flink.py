"""Tables that Fluss's own tiering job copies, while they are written to, are read as one.

Logs and tables with primary keys, partitioned and not, with all types. After each round of the job,
and again after further writes, a scan of lake and log gives the rows that Fluss itself has.
Rounds of `fluss tier` and of the job may take turns.
"""

from __future__ import annotations

import random
import sys
import time

import pyarrow as pa
import pytest

import fluss
from fluss.errors import SnapshotNotFoundError
from fluss_lake import lent_decoder
from fluss_testkit.java_cluster import JavaCluster
from fluss_testkit.lake_profile import WAREHOUSE, iceberg_lake
from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tests.support.lake.all_types import TYPES_FOR_JAVA, row_for_java
from tests.support.lake.decoded_files import compare_decoders
from tests.support.lake.flink_tiering import flink_tiering
from tests.support.lake.readers import by_polars
from tests.support.lake.rounds import one_round

ROUNDS = 4
# Rounds of the job, each followed by one of ours.
ALTERNATIONS = 5
ROUND_TIMEOUT_S = 400
PROPERTIES = {"table.datalake.enabled": "true"}
PLAIN = {"id": "BIGINT", "day": "STRING", "n": "INT"}

pytestmark = [
    pytest.mark.skipif(not IS_EXHAUSTIVE, reason="two minutes and Flink's jars; ./dev prove lake"),
    pytest.mark.real,
    pytest.mark.timeout(3_600),
]


def comparable_row(number: int) -> dict[str, object]:
    """A row without NaN, which Arrow finds different from itself, and with one entry in its map.

    Flink's job writes the entries of a map in an order of its own.
    """
    row = row_for_java(number)
    return {**row, "double": number / 3, "map": {"k": number}} if "map" in row else row


class Tables:
    """Four tables, and random writes to them."""

    def __init__(self, session: fluss.Session, freshness: str = "3s") -> None:
        properties = {**PROPERTIES, "table.datalake.freshness": freshness}
        how = {"properties": properties, "buckets": 2}
        session.create_database("lake")
        session.create_table("lake.types", {"id": "BIGINT", **TYPES_FOR_JAVA}, **how)
        session.create_table("lake.days", PLAIN, partition_by=["day"], **how)
        session.create_table("lake.keys", PLAIN, primary_key=["id"], **how)
        session.create_table(
            "lake.parts", PLAIN, primary_key=["id", "day"], partition_by=["day"], **how
        )
        names = ("types", "days", "keys", "parts")
        self.types, self.days, self.keys, self.parts = (
            session.table(f"lake.{name}") for name in names
        )
        self.every = [self.types, self.days, self.keys, self.parts]
        self._rng, self._count = random.Random(11), 0

    def write(self, count: int) -> None:
        """Write to all of them, and delete by key."""
        rng = self._rng
        numbers = range(self._count, self._count + count)
        self._count += count
        days = [f"d{rng.randrange(3)}" for _ in numbers]
        values = pa.array([rng.randrange(100) for _ in numbers], pa.int32())
        keys = [rng.randrange(300) for _ in numbers]
        self.types.append([comparable_row(each) for each in numbers])
        self.days.append(pa.table({"id": list(numbers), "day": days, "n": values}))
        for table in (self.keys, self.parts):
            table.upsert(pa.table({"id": keys, "day": days, "n": values}))
        self.keys.delete([(rng.randrange(300),) for _ in range(count // 5)])
        self.parts.delete(
            [{"id": rng.randrange(300), "day": f"d{rng.randrange(3)}"} for _ in range(count // 5)]
        )


def wait_for_a_round(session: fluss.Session, tables: Tables, seen: dict[str, int]) -> None:
    """Wait until each table has another snapshot than those that were seen.

    It may lack the last offsets: the job of 0.9.1 stops before batches without a change, which
    deletes of missing keys leave.
    """
    deadline = time.monotonic() + ROUND_TIMEOUT_S
    left = list(tables.every)
    while left:
        assert time.monotonic() < deadline, f"not tiered: {[each.name for each in left]}"
        left = [each for each in left if snapshot_of(session, each) == seen.get(each.name)]
        time.sleep(1)
    for table in tables.every:
        found = snapshot_of(session, table)
        assert found is not None
        seen[table.name] = found


def snapshot_of(session: fluss.Session, table: fluss.Table) -> int | None:
    try:
        return session.get_latest_lake_snapshot(table.name).snapshot_id
    except SnapshotNotFoundError:
        return None


def rows_of(table: fluss.Table, **options: object) -> pa.Table:
    metadata = ["_bucket", "_partition"] + ([] if table.primary_key else ["_log_offset"])
    rows = table.scan(with_metadata=metadata, **options).to_arrow()
    keys = ["_partition", "_bucket"] + (["id"] if table.primary_key else ["_log_offset"])
    return rows.sort_by([(name, "ascending") for name in keys])


def test_what_flink_tiers_is_read_as_one_table(tmp_path):
    profile = iceberg_lake(tmp_path)
    compared = rows = 0
    with (
        JavaCluster(profile) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}") as session,
    ):
        tables, seen = Tables(session), dict[str, int]()
        tables.write(500)
        log = tmp_path / "flink.log"
        with flink_tiering(cluster.bootstrap_servers, profile.options, log) as job:
            for _ in range(ROUNDS):
                wait_for_a_round(session, tables, seen)
                for further in (0, 150):
                    if further:
                        tables.write(further)
                    for table in tables.every:
                        expected = rows_of(table, lake="off")
                        assert rows_of(table) == expected, table.name
                        assert rows_of(table, filter="id < 100") == rows_of(
                            table, filter="id < 100", lake="off"
                        )
                        compared, rows = compared + 2, rows + expected.num_rows
            assert job.poll() is None, log.read_text()[-2_000:]
        for table in tables.every:
            assert "lake: snapshot" in table.scan().explain()
    sys.stderr.write(f"lake: {compared} scans compared, {rows} rows, 0 differences\n")


def test_rounds_of_flink_and_ours_alternate(tmp_path):
    """Each goes on where the other ended; after each, the lake has what Fluss has."""
    profile = iceberg_lake(tmp_path)
    compared = rows = 0
    with (
        JavaCluster(profile) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}") as session,
    ):
        # So long that no table is in the job's hands when it ends.
        tables, seen = Tables(session, freshness="15s"), dict[str, int]()
        for number in range(ALTERNATIONS):
            tables.write(300)
            log = tmp_path / f"flink{number}.log"
            with flink_tiering(cluster.bootstrap_servers, profile.options, log):
                wait_for_a_round(session, tables, seen)
            for is_ours in (False, True):
                if is_ours:
                    tables.write(100)
                    for table in tables.every:
                        done = one_round(table)
                        assert done.snapshot_id is not None
                        seen[table.name] = done.snapshot_id
                for table in tables.every:
                    expected = rows_of(table, lake="off")
                    assert rows_of(table) == expected, table.name
                    if is_ours:
                        assert rows_of(table, lake="only") == expected, table.name
                    compared, rows = compared + 1 + is_ours, rows + expected.num_rows
    sys.stderr.write(
        f"lake: {compared} scans compared after {2 * ALTERNATIONS} rounds in turns, {rows} rows, "
        "0 differences\n"
    )


def varied_row(number: int) -> dict[str, object]:
    """A row with the types that Polars decodes: dictionaries fill, overflow and repeat."""
    rng = random.Random(number)
    row = {**comparable_row(number % 9_000), "id": number}
    if "map" not in row:
        return row
    floats = [float("nan"), -0.0, 0.0, float("inf"), -float("inf"), 5e-324, rng.random()]
    texts = [
        "",
        "short",
        "exactly 12 b",
        "13 characters",
        "\u00e4\u20ac\U0001f600" * 4,
        f"{rng.random()}" * 9,
    ]
    return {
        **row,
        "number": rng.choice([-(2**31), 2**31 - 1, number, 7]),
        "single": rng.choice(floats[:-2]),
        "double": rng.choice(floats),
        "text": rng.choice(texts),
        "bytes": rng.choice(texts).encode() + b"\xff",
        "at_us": row["at_us"] if number % 2 else None,
    }


def test_polars_decodes_the_files_of_flink_as_pyarrow_reads_them(tmp_path, monkeypatch):
    """Data files and files of deletes; then whole union reads, of which every file is lent."""
    monkeypatch.setattr(lent_decoder, "RUN_BYTES_MIN", 0)
    profile = iceberg_lake(tmp_path)
    with (
        JavaCluster(profile) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}") as session,
    ):
        tables, seen = Tables(session), dict[str, int]()
        tables.write(2_000)
        tables.types.append([varied_row(each) for each in range(20_000)])
        log = tmp_path / "flink.log"
        with flink_tiering(cluster.bootstrap_servers, profile.options, log):
            wait_for_a_round(session, tables, seen)
            tables.write(2_000)
            tables.types.append([varied_row(each) for each in range(20_000, 40_000)])
            wait_for_a_round(session, tables, seen)
        tables.write(100)
        counts = compare_decoders((tmp_path / WAREHOUSE).rglob("*.parquet"))
        for kind in lent_decoder.LENT_TYPES:
            assert counts[str(kind)], kind
        rows = 0
        for table in tables.every:
            names = [each.name for each in table.schema if not each.type.num_fields]
            found = by_polars(table.select(names) if hasattr(table, "select") else table, session)
            expected = table.scan(lake="off", columns=names).to_arrow()
            assert found.num_rows == expected.num_rows, table.name
            given = [repr(each) for each in found.select(names).to_pylist()]
            assert sorted(given) == sorted(map(repr, expected.to_pylist())), table.name
            rows += found.num_rows
    sys.stderr.write(
        f"lake: {sum(counts.values()) // 2} values in files of Flink decoded by Polars as by pyarrow, "
        f"{dict(sorted(counts.items()))}; {rows} rows of union reads, 0 differences\n"
    )
