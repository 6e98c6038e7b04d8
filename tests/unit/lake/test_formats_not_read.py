"""A lake of a format that no package reads: the error and `explain` say what reading would take."""

import asyncio
from types import SimpleNamespace

import pytest

from fluss.errors import MissingExtraError
from fluss.model.options.scan_options import LakeUse, Mode
from fluss.model.tables.table_options import DataLakeFormat
from fluss.scan import lake_planner
from fluss.scan.lake_planner import pin_lake
from tests.unit.lake.tables import schema_of, table_of

WAREHOUSE = "s3://lake/warehouse"
FILES = {"paimon": "pypaimon", "hudi": ".hoodie/", "lance": "pylance"}


def pinned(name, use=None):
    properties = {
        "table.datalake.enabled": "true",
        "table.datalake.format": name,
        f"table.datalake.{name}.warehouse": WAREHOUSE,
    }
    table = SimpleNamespace(info=table_of(schema_of(id="INT"), properties=properties))
    return asyncio.run(pin_lake(table, use, Mode.LOG, None))


def test_each_format_that_is_not_read_says_what_it_would_take():
    assert {str(each) for each in DataLakeFormat} == {*FILES, "iceberg"}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("use", [LakeUse.UNION, LakeUse.ONLY])
def test_a_requested_lake_is_refused(name, use):
    with pytest.raises(MissingExtraError, match=f"format '{name}'") as raised:
        pinned(name, use)
    assert FILES[name] in raised.value.hint
    assert f"in {WAREHOUSE}. lake='off' reads" in raised.value.hint
    assert raised.value.table == "db.t"


@pytest.mark.parametrize("name", FILES)
def test_the_default_reads_what_fluss_holds_and_says_so(name):
    found = pinned(name)
    assert found.contents is None
    assert f"no installed package reads {name}" in found.reason
    assert FILES[name] in found.reason
    assert found.reason.endswith(f"in {WAREHOUSE}.")


def test_iceberg_without_its_package_names_the_package(monkeypatch):
    monkeypatch.setattr(lake_planner, "find_format", lambda _: None)
    assert "install fluss-lake" in pinned("iceberg").reason
