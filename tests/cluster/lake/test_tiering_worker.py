"""Workers: tables come from the coordinator, each once, and one that fails holds up no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

import fluss_lake
from fluss.errors import TableNotFoundError, UnsupportedOperationError
from fluss_lake.tiering.lake_tables import how_far
from fluss_lake.tiering.service import TieringService
from fluss_lake.tiering.worker import WorkerOptions
from tests.cluster.lake.conftest import LAKE

FRESH = {**LAKE, "table.datalake.freshness": "1s"}
WAIT_S = 90

pytestmark = pytest.mark.slow  # the coordinator hands out a table once its freshness has passed


@pytest.fixture
def make(session):
    def made(**how):
        columns = {"id": "BIGINT", "n": "BIGINT"}
        name = f"w_{uuid.uuid4().hex[:8]}"
        table = session.create_table(name, columns, **{"properties": FRESH, "buckets": 1, **how})
        put(table, range(10))
        return table

    return made


def put(table, ids):
    rows = {"id": list(ids), "n": [0] * len(ids)}
    (table.upsert if table.primary_key else table.append)(rows)


def lag_of(table):
    handle = table.__fluss_table__()
    return handle.connection.engine.run(how_far(handle)).lag


def ids_of(table, lake):
    return sorted(table.scan(lake=lake).to_arrow().column("id").to_pylist())


def wait_until(is_so):
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def command(lake_cluster, folder, *words, **how):
    environment = {**os.environ, "FLUSS_URL": f"fluss://{lake_cluster.bootstrap_servers}"}
    environment["XDG_STATE_HOME"] = str(folder)
    run = [str(Path(sys.executable).with_name("fluss")), "tier", *words]
    return subprocess.Popen(
        run, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
    )


def test_tables_now_and_what_cannot_be_copied(session, make):
    good, keyed, plain = make(), make(primary_key="id"), make(properties={})
    tally = fluss_lake.tier([each.name for each in (plain, good, keyed)], cluster=session, now=True)
    assert (tally.rounds, tally.changes) == (2, 20)
    assert [str(each) for each in tally.errors] == [plain.name]
    assert "datalake.enabled" in next(iter(tally.errors.values())).hint
    assert ids_of(good, "only") == ids_of(keyed, "only") == list(range(10))
    put(good, range(10, 25))
    assert lag_of(good) == 15
    bounded = fluss_lake.tier(good.name, cluster=session, now=True, rows_max=4)
    assert (bounded.rounds, bounded.changes) == (4, 15)
    assert lag_of(good) == 0


def test_a_name_is_one_of_the_session_s_database_and_a_mode_may_be_a_text(session, make, iceberg):
    table = make(primary_key="id")
    name = table.name.partition(".")[2]
    for round_ in range(2):
        tally = fluss_lake.tier(name, cluster=session, now=True, write_mode="copy-on-write")
        assert (tally.rounds, tally.errors) == (1, {})
        table.delete([(round_,)])
    # pyiceberg refuses a table with deletes by key.
    assert iceberg(table).scan().to_arrow().num_rows == 9


def test_a_table_that_would_never_be_assigned_is_refused(session, lake_cluster, make, tmp_path):
    plain, good = make(properties={}), make()
    with pytest.raises(UnsupportedOperationError, match=r"is not copied into a lake"):
        fluss_lake.tier([good.name, plain.name], cluster=session, once=True)
    with pytest.raises(TableNotFoundError, match=f"{plain.name}_none"):
        fluss_lake.tier(f"{plain.name}_none", cluster=session)
    process = command(lake_cluster, tmp_path, "status", "-t", plain.name, "-o", "json")
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    assert "is not copied into a lake" in json.loads(out)["error"]


def test_two_workers_share_the_tables_of_a_cluster(session, make):
    tables = [make(**({"primary_key": "id"} if each % 2 else {})) for each in range(4)]
    handle = tables[0].__fluss_table__()
    names = frozenset(each.info.table_path for each in tables)
    services = [
        TieringService(handle.connection, WorkerOptions(tables=names, tables_max=2))
        for _ in range(2)
    ]
    threads = [threading.Thread(target=each.run) for each in services]
    for each in threads:
        each.start()
    try:
        wait_until(lambda: not any(lag_of(each) for each in tables))
        for each in tables:
            put(each, range(10, 30))
        wait_until(lambda: not any(lag_of(each) for each in tables))
    finally:
        for each in services:
            each.stop()
        for each in threads:
            each.join(WAIT_S)
    assert not any(each.is_alive() for each in threads)
    for each in tables:
        assert ids_of(each, "only") == ids_of(each, "union") == list(range(30))
    assert sum(each.tally.changes for each in services) == 4 * 30
    assert not any(each.tally.errors for each in services)


def test_the_command_ends_on_sigterm_and_says_what_it_did(session, lake_cluster, make, tmp_path):
    table = make()
    process = command(lake_cluster, tmp_path, "-t", table.name)
    try:
        wait_until(lambda: lag_of(table) == 0 or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert f"{table.name}: 10 changes in" in errors
    assert "1 round, 10 changes copied" in errors


def test_status_names_lag_worker_and_error(session, lake_cluster, make, tmp_path, iceberg):
    good, broken = make(), make()
    lake = iceberg(broken)
    with lake.transaction() as changed:
        changed.set_properties({"write.format.default": "orc"})
    process = command(lake_cluster, tmp_path, "--now", "-t", good.name, "-t", broken.name)
    _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert "only Parquet is" in errors
    put(good, range(10, 13))
    names = ("-t", good.name, "-t", broken.name)
    process = command(lake_cluster, tmp_path, "status", *names, "-o", "json")
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    found = {each["table"]: each for each in map(json.loads, out.splitlines())}
    assert found[good.name]["lag"] == 3
    assert found[good.name]["snapshot"] == session.get_latest_lake_snapshot(good.name).snapshot_id
    assert found[good.name]["error"] is None
    assert found[broken.name]["snapshot"] is None
    assert "only Parquet is" in found[broken.name]["error"]
    assert ":" in found[broken.name]["by"]
    process = command(lake_cluster, tmp_path, "status", *names, "-o", "table")
    out, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    assert f"{broken.name}: {found[broken.name]['error']}\n  hint: " in out, "it is not shortened"
