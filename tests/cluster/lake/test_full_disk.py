"""A lake on a full disk: a typed error, nothing is half committed, and the next round works.

The disk is a file system in memory of a megabyte, which only root may mount.
"""

from __future__ import annotations

import os
import subprocess
import uuid

import pytest

import fluss
import fluss_lake
from fluss.errors import FlussError
from fluss_lake.catalogs import open_table
from fluss_lake.tiering.round_driver import commit_round
from fluss_server import LocalCluster
from tests.cluster.lake.conftest import LAKE
from tests.support.lake.rounds import begun, one_round, written

SMALL, LARGE = "1m", "64m"
ROWS, TEXT_BYTES = 300, 8_000  # more than the disk has room for


@pytest.fixture
def disk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disk")
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def session(disk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    lake = {"url": f"sqlite:///{folder}/catalog.db", "warehouse": str(disk / "lake")}
    with (
        LocalCluster(folder / "data", durability="none", lake=lake, in_thread=True) as cluster,
        fluss.connect(f"fluss://{cluster.bootstrap_servers}/fluss") as opened,
    ):
        yield opened


@pytest.fixture
def table(session):
    columns = {"id": "BIGINT", "text": "BYTES"}
    name = f"full_{uuid.uuid4().hex[:8]}"
    return session.create_table(name, columns, primary_key="id", buckets=1, properties=LAKE)


def put(table, ids):
    rows = [{"id": each, "text": os.urandom(TEXT_BYTES)} for each in ids]
    table.upsert(rows)


def files(disk):
    """The files of rows, deletes, manifests and snapshots; not those of a table's metadata."""
    return {each for each in disk.rglob("*") if each.suffix in {".parquet", ".avro"}}


def snapshots(table):
    return [each.snapshot_id for each in open_table(table.info, {}).metadata.snapshots]


def rows_of(table, lake):
    return table.scan(lake=lake).to_arrow().sort_by("id")


def check_next_round(table, disk):
    subprocess.run(["mount", "-o", f"remount,size={LARGE}", str(disk)], check=True)
    one_round(table)
    assert rows_of(table, "only") == rows_of(table, "union") == rows_of(table, "off")


def test_no_room_for_the_rows(table, disk):
    put(table, range(3))
    one_round(table)
    put(table, range(ROWS))
    before, known = files(disk), snapshots(table)
    tally = fluss_lake.tier(table.name, cluster=table_url(table), now=True)
    [error] = tally.errors.values()
    assert "No space left" in error.sentence
    assert "disk may be full" in error.hint
    assert (files(disk), snapshots(table)) == (before, known)
    assert rows_of(table, "union") == rows_of(table, "off")
    check_next_round(table, disk)


def test_no_room_for_the_snapshot(table, disk):
    put(table, range(3))
    one_round(table)
    put(table, range(2, 6))
    before, known = files(disk), snapshots(table)
    round_ = begun(table)
    results = written(round_)
    filler = disk / "filler"
    fill(filler)
    try:
        with pytest.raises(FlussError, match="No space left") as raised:
            commit_round(round_, results)
        assert "disk may be full" in raised.value.hint
    finally:
        filler.unlink()
    assert (files(disk), snapshots(table)) == (before, known)
    assert rows_of(table, "union") == rows_of(table, "off")
    check_next_round(table, disk)


def fill(path):
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as out:
        for size in (1 << 16, 1 << 12):
            try:
                while out.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def table_url(table):
    return f"fluss://{table.__fluss_table__().connection.config.bootstrap_servers}"
