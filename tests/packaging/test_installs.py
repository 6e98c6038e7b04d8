"""Each package alone in an empty environment does what it is for, or says what is missing.

By default on this Python, with the versions of all other tests, and once with the lowest versions
that the packages declare. `./dev prove packages` does it on every Python of the machine, with the
newest and with the lowest versions.
"""

import json
import subprocess
import sys
import tomllib
from itertools import chain

import pytest

from tests.support.hypothesis_profiles import IS_EXHAUSTIVE
from tools.build_packages import PACKAGES, ROOT, find_uv, has_compiler

pytestmark = [
    pytest.mark.slow,  # environments are made, and servers are started in them
    pytest.mark.timeout(600),
]


def pythons():
    """This Python; in the long run each supported one of the machine, by its version.

    Those of pyenv are found if PYENV_VERSION names them, separated by colons.
    """
    if not IS_EXHAUSTIVE:
        return {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    asked = {
        f"3.{minor}": subprocess.run(
            [find_uv(), "python", "find", "--no-project", f"3.{minor}"],
            capture_output=True, text=True, check=False,
        ).stdout.strip()
        for minor in (11, 12, 13)
    }  # fmt: skip
    return {version: path for version, path in asked.items() if path}


PYTHONS = pythons()


def floors():
    """The requirements that the packages declare of other projects, with their lowest versions."""
    for package in PACKAGES:
        project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())
        extras = project["project"].get("optional-dependencies", {})
        for requirement in chain(project["project"]["dependencies"], *extras.values()):
            name, _, floor = requirement.partition(";")[0].partition(">=")
            if not name.startswith("fluss-") and package != "fluss-spark":
                yield name.partition("[")[0], floor.partition(",")[0]


# "Direct" are only the requirements of the command, so it names those of our packages.
LOWEST = (
    *("--resolution", "lowest-direct", "--only-binary", ":all:"),
    *sorted(f"{name}>={low}" for name, low in set(floors())),
)
VERSIONS = ["newest"] if IS_EXHAUSTIVE else ["pinned"]

ENGINES = {"polars", "duckdb", "pandas", "pyspark", "typer", "fsspec", "rocksdict"}

CORE = """
import fluss, fluss.aio, fluss.native, sys
from fluss.errors import FlussError
try:
    fluss.connect("embedded:")
except FlussError as error:
    print(error.hint)
print(fluss.native.describe_native())
for name in ("fluss.pandas", "fluss.fsspec"):
    try:
        __import__(name)
    except FlussError as error:
        print(error.hint)
"""
CORE_HINTS = """\
run `./dev build` in a checkout of Fluss for Python, then: pip install --find-links dist fluss-server
not installed
pip install 'pandas>=3'
pip install 'fsspec>=2025.2'
"""
EXTRAS = """
import fluss.native, fluss.pandas, fsspec, pandas, rocksdict, uvloop
print(fsspec.get_filesystem_class("fluss").__name__, fluss.native.describe_native())
"""
POLARS = """
import fluss_polars, polars
print(callable(polars.scan_fluss), hasattr(polars.DataFrame(), "fluss"))
"""
DUCKDB = """
import fluss_duckdb
from fluss.errors import FlussError
try:
    fluss_duckdb.connect(url="fluss://127.0.0.1:9").sql("FROM fluss('db.t')")
except FlussError as error:
    print(type(error).__name__)
"""
SERVER = """
import fluss
from fluss_server import LocalCluster
with LocalCluster() as cluster, fluss.connect(cluster.url) as session:
    session.append("fluss.t", {"id": [1, 2]}, create=True)
    print(session.table("fluss.t").count())
with fluss.connect("embedded:") as session:
    print(session.databases())
"""
TESTKIT = """
from importlib.metadata import entry_points
(point,) = entry_points(group="fluss.local_clusters")
print(point.load().__name__)
"""
LAKE = """
from fluss.lake.lake_format import find_format
print(type(find_format("iceberg")).__name__)
"""
SPARK = """
try:
    import fluss_spark
except ImportError as error:
    print(error.hint)
"""
NATIVE_ALONE = """
import importlib.util
print(importlib.util.find_spec("fluss_native").name, importlib.util.find_spec("fluss"))
"""
# Without a compiler there is an sdist, which installs the package without its module.
NATIVE = "used" if has_compiler() else "installed without its module: it was not compiled"
# What is installed, the packages among ENGINES that come with it, the program, and what it prints.
ALONE = [
    ("fluss-core", set(), CORE, CORE_HINTS),
    (
        "fluss-core[pandas,fsspec,snapshot,cli,fast]",
        {"pandas", "typer", "fsspec", "rocksdict"},
        EXTRAS,
        f"FlussFileSystem {NATIVE}\n",
    ),
    ("fluss-polars", {"polars"}, POLARS, "True True\n"),
    ("fluss-duckdb", {"duckdb"}, DUCKDB, "ConnectError\n"),
    ("fluss-server", {"rocksdict"}, SERVER, "2\n['fluss']\n"),
    ("fluss-testkit", set(), TESTKIT, "RealServer\n"),
    ("fluss-lake", {"fsspec"}, LAKE, "Iceberg\n"),
    ("fluss-native", set(), NATIVE_ALONE, "fluss_native None\n"),
    ("fluss-spark", set(), SPARK, "pip install 'pyspark>=4.2'\n"),
]

# Without `fast`: fluss-native has a wheel for this Python only, and an sdist for others. uvloop is
# among the floors, and is installed.
EVERYTHING = (
    "fluss-core[pandas,fsspec,snapshot,cli]",
    "fluss-polars",
    "fluss-duckdb",
    "fluss-server",
    "fluss-testkit",
    "fluss-lake",
)
ALL_DOORS = """
import duckdb, pandas as pd, polars as pl, pyarrow as pa
import fluss, fluss.pandas, fluss_duckdb, fluss_polars
from fluss import col

with fluss.connect("embedded:") as session:
    rows = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"], "n": [1.5, 2.5, None]})
    session.append("fluss.log", rows, create=True)
    session.upsert("fluss.keyed", rows, create=True, primary_key=["id"])
    pl.DataFrame({"id": [3], "name": ["C"]}).fluss.update("fluss.keyed")
    pd.DataFrame({"id": [1]}).fluss.delete("fluss.keyed")
    print(pl.scan_fluss("fluss.log").filter(pl.col("id") > 1).select("id").collect()["id"].to_list())
    print(pd.read_fluss("fluss.log", filter=col("id") < 3)["id"].tolist())
    con = fluss_duckdb.connect(session=session)
    print(con.sql("SELECT name, n FROM fluss('fluss.keyed') WHERE id = 3").fetchall())
    print(session.table("fluss.keyed").lookup([2]).to_pylist())
    print(session.table("fluss.keyed$changelog").to_arrow().num_rows)
"""
ALL_ANSWERS = """\
[2, 3]
[1, 2]
[('C', None)]
[{'id': 2, 'name': None, 'n': 2.5, '_found': True}]
6
"""


def parts(version):
    numbers = [int(each) for each in version.split(".") if each.isdigit()]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


@pytest.fixture(params=VERSIONS)
def versions(request, pinned):
    """The options of the installation that choose versions."""
    return {"pinned": pinned, "newest": ()}[request.param]


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
@pytest.mark.parametrize(
    ("name", "engines", "program", "printed"), ALONE, ids=[each[0] for each in ALONE]
)
def test_a_package_alone(new_environment, versions, python, name, engines, program, printed):
    environment = new_environment(python)
    environment.install(*versions, name)
    assert ENGINES & set(environment.packages()) == engines
    assert environment.python(program) == printed


def test_without_a_compiler_native_code_is_installed_without_its_module(new_environment, pinned):
    environment = new_environment()
    # A wheel of the same version would be found before the sdist, and one of a build before, too.
    words = ("--no-binary", "fluss-native", "--no-cache")
    environment.install(*pinned, *words, "fluss-native", CC="/no/such/compiler")
    environment.install(*pinned, "fluss-core")
    printed = environment.python("import fluss.native; print(fluss.native.describe_native())")
    assert printed == "installed without its module: it was not compiled\n"


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
def test_the_lowest_versions_of_everything_work(new_environment, python):
    environment = new_environment(python)
    environment.install(*LOWEST, *EVERYTHING)
    found = environment.packages()
    # Newer Pythons need later wheels of some.
    for name, floor in floors() if python == PYTHONS.get("3.11") else ():
        assert parts(found[name])[: len(parts(floor))] == parts(floor), name
    # Old packages of others warn on newer Pythons.
    assert environment.python(ALL_DOORS, warnings="default") == ALL_ANSWERS
    listed = environment.run(
        str(environment.bin / "fluss"), "--url", "embedded:", "ls", "-o", "json"
    )
    assert [json.loads(line) for line in listed.stdout.splitlines()], listed.stderr
