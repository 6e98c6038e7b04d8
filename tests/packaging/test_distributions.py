"""The wheels and sdists: complete, described, and with nothing that does not belong there."""

import email
import re
import sys
import sysconfig
import tarfile
import tomllib
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest
import trove_classifiers

from tools.build_packages import COMPILED, PACKAGES, ROOT, has_compiler

pytestmark = pytest.mark.slow  # the packages are built, once for all tests of this folder

RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)[^)]*\)")


def project_of(name):
    return tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())["project"]


@pytest.fixture(params=PACKAGES)
def package(request):
    return request.param


@pytest.fixture
def wheel(dist, package):
    if package == COMPILED and not has_compiler():
        pytest.skip("without a C compiler the package has no wheel: install gcc, or clang")
    (path,) = dist.glob(f"{package.replace('-', '_')}-*.whl")
    with ZipFile(path) as archive:
        yield archive


def metadata_of(wheel):
    (name,) = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
    return email.message_from_string(wheel.read(name).decode())


def test_a_wheel_has_its_modules_and_nothing_else(package, wheel):
    if package == COMPILED:
        pytest.skip("has a test of its own")
    source = ROOT / "packages" / package / "src"
    expected = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files = {each for each in wheel.namelist() if not each.endswith("/")}
    assert {each for each in files if ".dist-info/" not in each} == expected
    assert any(each.endswith("/py.typed") for each in expected)


def test_the_compiled_wheel_has_the_module_and_no_source(dist):
    if not has_compiler():
        pytest.skip("without a C compiler the package has no wheel: install gcc, or clang")
    (path,) = dist.glob("fluss_native-*.whl")
    files = {each for each in ZipFile(path).namelist() if ".dist-info/" not in each}
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    names = {"__init__.py", "py.typed", "_rows.pyi", f"_rows{suffix}"}
    assert files == {f"fluss_native/{each}" for each in names}
    assert f"cp{sys.version_info.major}{sys.version_info.minor}" in path.name


def test_the_sdist_has_what_the_module_is_compiled_from(dist):
    (path,) = dist.glob("fluss_native-*.tar.gz")
    source = ROOT / "packages" / COMPILED / "src/fluss_native"
    with tarfile.open(path) as archive:
        found = {Path(each).name for each in archive.getnames()}
    assert found >= {each.name for each in source.glob("*.[ch]")} | {"setup.py"}


def test_the_license_is_in_the_wheel_and_in_the_sdist(package, wheel, dist):
    license_text = (ROOT / "LICENSE").read_bytes()
    (name,) = [each for each in wheel.namelist() if each.endswith("licenses/LICENSE")]
    assert wheel.read(name) == license_text
    (sdist,) = dist.glob(f"{package.replace('-', '_')}-*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = {Path(each.name).name: each for each in archive.getmembers() if each.isfile()}
        assert archive.extractfile(files["LICENSE"]).read() == license_text
        assert "README.md" in files


def test_the_metadata_describe_the_package(package, wheel):
    found, project = metadata_of(wheel), project_of(package)
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Requires-Python"] == ">=3.11"
    assert found["Summary"] == project["description"]
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload() == (ROOT / "packages" / package / "README.md").read_text()
    assert set(found.get_all("Classifier")) <= trove_classifiers.classifiers
    assert all("://" in each for each in found.get_all("Project-URL"))


def test_the_page_has_no_link_that_an_index_cannot_follow(package):
    page = (ROOT / "packages" / package / "README.md").read_text()
    assert not RELATIVE_LINK.findall(page)


def test_packages_require_each_other_in_one_version():
    versions = {name: project_of(name)["version"] for name in PACKAGES}
    assert len(set(versions.values())) == 1, versions
    for name in PACKAGES:
        ours = [each for each in project_of(name)["dependencies"] if each.startswith("fluss-")]
        assert all(each == f"fluss-core~={versions[name]}" for each in ours), name
        extras = chain.from_iterable(project_of(name).get("optional-dependencies", {}).values())
        for each in extras:
            if each.startswith("fluss-") and "[" not in each:
                assert each.endswith(f"~={versions[name]}"), (name, each)


def test_the_server_ships_nothing_of_the_testkit_and_the_testkit_its_launcher(dist):
    server = ZipFile(next(dist.glob("fluss_server-*.whl")))
    testkit = ZipFile(next(dist.glob("fluss_testkit-*.whl")))
    assert not [each for each in server.namelist() if "java" in each]
    assert "fluss_testkit/java_launcher/FlussNode.java" in testkit.namelist()
    points = {
        archive: archive.read(
            next(each for each in archive.namelist() if each.endswith("entry_points.txt"))
        ).decode()
        for archive in (server, testkit)
    }
    assert "fluss_server.pytest_plugin" in points[server]
    assert "fluss.local_clusters" not in points[server]
    assert "fluss_testkit.real_server:RealServer" in points[testkit]
