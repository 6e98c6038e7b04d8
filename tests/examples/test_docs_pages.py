"""The programs and terminal sessions of the README and of the documentation print their output.

One process that has imported all engines runs all pages of a worker. The README and the guides are
run on a real Fluss if there is one, all other pages on an embedded server. Spark's pages run in the
session of its tests: tests/engines/spark/test_guide.py.
"""

import importlib.util
import re
import sys
import tomllib
import types
from pathlib import Path

import pytest

import fluss
from fluss_server import LocalCluster
from tests.support.pages.page_runner import WRITTEN_ADDRESS, PageRunner
from tests.support.pages.page_steps import steps_of, without_durations

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SPARK = "import fluss_spark"
# Its programs are streaming queries; tests/engines/spark/test_exactly_once.py runs similar ones.
EXACTLY_ONCE = DOCS / "guide/exactly-once.md"
# Its program needs Java; tests of its package start such clusters.
TESTKIT = ROOT / "packages/fluss-testkit/README.md"
# Records of what was run and decided, with code that was true then.
HISTORY = ("decisions", "proofs")
README = ROOT / "README.md"


def page_steps(page):
    # The consoles of the README install packages and start servers.
    steps = steps_of(page.read_text(), with_consoles=page != README)
    return [each for each in steps if SPARK not in each.text]


def pages_with_steps():
    for page in [README, *sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("packages/*/README.md"))]:
        is_history = page.is_relative_to(DOCS) and page.relative_to(DOCS).parts[0] in HISTORY
        is_for_spark = page != README and SPARK in page.read_text()
        is_elsewhere = is_history or is_for_spark or page in {EXACTLY_ONCE, TESTKIT}
        if not is_elsewhere and page_steps(page):
            yield page


PAGES = list(pages_with_steps())


GUIDES = [each for each in PAGES if each == README or each.parent.name == "guide"]
OTHERS = [each for each in PAGES if each not in GUIDES]


def path_in_repository(page):
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def server():
    with LocalCluster(durability="none", in_thread=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def runner():
    runner = PageRunner()
    yield runner
    runner.close()


@pytest.mark.slow  # the first page imports all engines, and some pages start commands
@pytest.mark.one_server
@pytest.mark.parametrize("page", GUIDES, ids=path_in_repository)
def test_a_guide_prints_its_output(cluster, runner, page, tmp_path):
    check(runner, page, tmp_path, cluster.bootstrap)


@pytest.mark.slow  # as above
@pytest.mark.parametrize("page", OTHERS, ids=path_in_repository)
def test_a_page_prints_its_output(server, runner, page, tmp_path):
    check(runner, page, tmp_path, server.bootstrap_servers)


def check(runner, page, folder, bootstrap):
    steps = page_steps(page)
    answer = runner.run(steps, folder, bootstrap)
    assert answer["error"] is None, answer["error"]
    for step, printed in zip(steps, answer["printed"], strict=True):
        expected = step.printed.replace(WRITTEN_ADDRESS, bootstrap)
        assert without_durations(printed) == without_durations(expected)
    assert answer["stderr"] == ""


def test_the_files_for_schedulers_load_new_rows_only(server, tmp_path, monkeypatch):
    """Airflow and Dagster are stood in for by what the files use of them."""
    page = (DOCS / "cookbook/airflow-dagster.md").read_text()
    for step in steps_of(page):
        if step.kind == "file":
            (tmp_path / step.name).write_text(step.text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("FLUSS_BOOTSTRAP_SERVERS", server.bootstrap_servers)
    variables = schedulers(monkeypatch)
    with fluss.connect() as session:
        session.create_database("shop")
        try:
            session.append("shop.orders", {"id": [1, 2]}, create=True)
            load("orders_dag", tmp_path)
            first = variables["orders_cursor"]
            assert session.table("shop.orders_by_id").count() == 2
            session.append("shop.orders", {"id": [3]})
            load("orders_dag", tmp_path)
            assert session.table("shop.orders_by_id").count() == 3
            asset = load("orders_asset", tmp_path).orders_by_id
            assert asset(dagster_context(first)).metadata["cursor"] == variables["orders_cursor"]
        finally:
            session.drop_database("shop", cascade=True)


def schedulers(monkeypatch):
    """Put modules in place of the schedulers; return the variables of Airflow."""
    variables = {}
    airflow, sdk = types.ModuleType("airflow"), types.ModuleType("airflow.sdk")
    sdk.dag = lambda **_: lambda function: function
    sdk.task = lambda **_: lambda function: function
    sdk.Variable = types.SimpleNamespace(
        get=lambda name, *, default: variables.get(name, default), set=variables.__setitem__
    )
    pendulum, dagster = types.ModuleType("pendulum"), types.ModuleType("dagster")
    pendulum.datetime = lambda *_: None
    dagster.asset = lambda function: function
    dagster.AssetExecutionContext = object
    dagster.MaterializeResult = types.SimpleNamespace
    for module in (airflow, sdk, pendulum, dagster):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return variables


def dagster_context(cursor):
    """A context in which the last materialization has this cursor."""
    metadata = {"cursor": types.SimpleNamespace(value=cursor)}
    last = types.SimpleNamespace(asset_materialization=types.SimpleNamespace(metadata=metadata))
    instance = types.SimpleNamespace(get_latest_materialization_event=lambda _: last)
    return types.SimpleNamespace(instance=instance, asset_key="orders_by_id")


def load(name, folder):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_pages():
    assert len(PAGES) > 30
    assert README in PAGES


def test_what_is_installed_exists():
    text = README.read_text()
    lines = re.findall(r"pip install --find-links dist (.*?)(?:  #.*)?\n", text)
    found = re.findall(r"(fluss-\w+)(?:\[([\w,]+)\])?", " ".join(lines))
    # The test kit is not for users; the README lists it in the table of packages.
    assert len(found) + 1 == len(list((ROOT / "packages").iterdir()))
    assert "(packages/fluss-testkit)" in text
    for name, extras in found:
        project = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())
        known = project["project"].get("optional-dependencies", {})
        assert set(filter(None, extras.split(","))) <= set(known), name
