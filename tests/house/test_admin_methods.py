"""Every method of Java's `Admin` 1.0.0 has one of ours, and the page of the docs lists them all."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from fluss import FlussAdmin
from fluss.admin.admin import AdminCore
from fluss.cli.application import ENTRIES
from fluss.session import Session, Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "administration.md"
ROW = re.compile(
    r"^\| `(\w+)` \| `(\w+)` \| `([\w.]+)` \| (?:`fluss (\w+)([\w -]*)`|[^`|]) \| ([\d.]+) \|$",
    re.MULTILINE,
)
COMMANDS = {each.name: each for each in ENTRIES}
# Read from the interface org.apache.fluss.client.admin.Admin of fluss-client 1.0.0.
JAVA = [
    "getServerNodes",
    "getTableSchema",
    "createDatabase",
    "alterDatabase",
    "getDatabaseInfo",
    "dropDatabase",
    "databaseExists",
    "listDatabases",
    "listDatabaseSummaries",
    "createTable",
    "getTableInfo",
    "dropTable",
    "tableExists",
    "listTables",
    "alterTable",
    "listPartitionInfos",
    "createPartition",
    "dropPartition",
    "getLatestKvSnapshots",
    "getKvSnapshotMetadata",
    "createKvSnapshotLease",
    "getLatestLakeSnapshot",
    "getLakeSnapshot",
    "getReadableLakeSnapshot",
    "listOffsets",
    "getTableStats",
    "listAcls",
    "createAcls",
    "dropAcls",
    "describeClusterConfigs",
    "alterClusterConfigs",
    "addServerTag",
    "removeServerTag",
    "addServerTagByRack",
    "removeServerTagByRack",
    "rebalance",
    "listRebalanceProgress",
    "cancelRebalance",
    "registerProducerOffsets",
    "getProducerOffsets",
    "deleteProducerOffsets",
    "getClusterHealth",
    "listRemoteLogManifests",
    "listKvSnapshots",
]


def rows():
    return ROW.findall(PAGE.read_text())


def test_the_page_lists_the_methods_of_java():
    assert len(JAVA) == 44
    assert sorted(java for java, *_ in rows()) == sorted(JAVA)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_method_of_java_has_one_of_ours_in_each_door(row):
    java, awaited, blocking, command, arguments, _ = row
    assert awaited == re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", java)
    assert callable(getattr(FlussAdmin, awaited))
    assert callable(getattr(AdminCore, awaited))
    kind, _, name = blocking.rpartition(".")
    assert hasattr(Table if kind == "Table" else Session, name)
    if command:
        entry = COMMANDS[command]
        module, _, target = entry.target.partition(":")
        subcommand = arguments.strip()
        if target == "app":
            app = import_module(module).app
            assert subcommand in {each.name for each in app.registered_commands}
