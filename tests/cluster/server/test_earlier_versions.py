"""Directories of earlier versions are upgraded once, with everything that was acknowledged.

The program of `tests.support.servers.damage_world` made `earlier/format-1.tar.xz` with a
fluss-server that had no ledger: `killed` by SIGKILL in its second run, `ended` cleanly.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from fluss.errors import LocalServerError
from fluss.model.types.factory import DataTypes
from fluss.wire import messages as pb
from fluss_server.data_layout import CATALOG, CLEAN_MARK, DATA, LEDGER
from tests.support.differential.differential_tables import KINDS, DifferentialTable
from tests.support.servers.damage_world import DATABASE, World, look
from tests.support.servers.embedded import Clock, running
from tests.support.servers.embedded_table import LogTable
from tests.support.servers.ledgers import ended_cleanly
from tests.support.servers.raw_client import RawConnection

EARLIER = Path(__file__).parent / "earlier"


@pytest.fixture(params=["killed", "ended"])
def earlier(tmp_path, request):
    """A directory of format 1, and the responses of its server."""
    with tarfile.open(EARLIER / "format-1.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    known = json.loads((EARLIER / "format-1.json").read_text())[request.param]
    return tmp_path / request.param, known


def world_of(connection, known):
    world = World(times=known["times"], writer=known["writer"])
    kinds = {kind.name: kind for kind in KINDS}
    for name, count in known["schemas"].items():
        table = world.tables[name] = DifferentialTable(kinds[name])
        for number in range(1, count):
            table.add_column(f"extra_{number}", DataTypes.string())
        path = pb.PbTablePath(database_name=DATABASE, table_name=name)
        world.ids[name] = connection.call(pb.GetTableInfoRequest(table_path=path)).table_id
        if table.kind.partition_by:
            listed = connection.call(pb.ListPartitionInfosRequest(table_path=path))
            world.partitions[name] = {
                each.partition_spec.partition_key_values[0].value: each.partition_id
                for each in listed.partitions_info
            }
    return world


def differences(directory, known):
    clock = Clock(known["now_ms"])
    with running(directory, clock=clock) as server:
        connection = RawConnection(server.address)
        seen = look(world_of(connection, known), connection)
        connection.close()
    found = {
        repr(key): hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()
        for key, value in seen.items()
    }
    return [key for key, value in known["seen"].items() if found.get(key) != value]


def test_everything_is_there_and_is_upgraded_once(earlier, caplog):
    directory, known = earlier
    assert (directory / CLEAN_MARK).exists() == (directory.name == "ended")
    assert not differences(directory, known)
    assert "created by an earlier version" in caplog.text
    assert ended_cleanly(directory)
    assert not (directory / CLEAN_MARK).exists()
    caplog.clear()
    assert not differences(directory, known)
    assert "earlier version" not in caplog.text
    with running(directory) as server:
        connection = RawConnection(server.address)
        assert connection.call(pb.InitWriterRequest()).writer_id > known["writer"]
        assert LogTable(connection, "fresh").fetch().high_watermark == 0
        connection.close()


def test_a_directory_with_missing_files_is_not_upgraded(earlier):
    directory, _ = earlier
    segments = sorted((directory / DATA).rglob("log_rows-*/log-0/*.log"))
    segments[1].unlink()
    with pytest.raises(LocalServerError, match="rows between them are missing"), running(directory):
        pass


def test_an_interrupted_upgrade_restarts(earlier, monkeypatch):
    directory, known = earlier

    def broken_off(*_):
        raise OSError("the machine is switched off")

    with monkeypatch.context() as patched:
        patched.setattr("fluss_server.data_directory.OpenDirectory.begin", broken_off)
        with pytest.raises(LocalServerError, match="switched off"), running(directory):
            pass
    assert (directory / LEDGER).exists()
    assert not differences(directory, known)


def test_an_earlier_catalog_beside_a_ledger_is_a_refusal(earlier):
    directory, _ = earlier
    shutil.copy(directory / CATALOG, directory / "kept")
    with running(directory):
        pass
    for path in directory.glob(f"{CATALOG}*"):
        path.unlink()
    (directory / "kept").rename(directory / CATALOG)
    with pytest.raises(LocalServerError, match="earlier version"), running(directory):
        pass
