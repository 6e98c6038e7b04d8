"""The wheels of the server and of the testkit, built as they are published."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[3]


def build_command(package, out):
    """Return a command that builds a wheel: with uv where the machine has it, else with pip."""
    for uv in (shutil.which("uv"), ROOT / ".dev" / "uv" / "bin" / "uv"):
        if uv is not None and Path(uv).exists():
            return [
                str(uv),
                "build",
                "--no-sources",
                "--quiet",
                "--wheel",
                "--out-dir",
                str(out),
                str(package),
            ]
    python = getattr(sys, "_base_executable", sys.executable)  # our own environment has no pip
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    return [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(package)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The names and the entry points in each wheel, by package."""
    found = {}
    for name in ("fluss-server", "fluss-testkit"):
        out = tmp_path_factory.mktemp(name)
        # A copy: a build may write beside its sources.
        package = shutil.copytree(ROOT / "packages" / name, out / name)
        command = build_command(package, out)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if "uv_build" in done.stderr or "uv-build" in done.stderr:
            pytest.skip("the build backend uv_build cannot be downloaded here")
        assert done.returncode == 0, done.stderr
        (wheel,) = out.glob("*.whl")
        with ZipFile(wheel) as archive:
            names = [entry for entry in archive.namelist() if not entry.endswith("/")]
            (points,) = [entry for entry in names if entry.endswith("entry_points.txt")]
            found[name] = names, archive.read(points).decode()
    return found


def test_the_server_ships_python_files_and_nothing_of_the_testkit(wheels):
    names, points = wheels["fluss-server"]
    own = [name for name in names if ".dist-info/" not in name]
    assert "fluss_server/local_cluster.py" in own
    assert all(name.startswith("fluss_server/") for name in own)
    assert {Path(name).suffix for name in own} == {".py", ".typed"}
    assert not [name for name in own if "java" in name]
    assert "fluss.local_clusters" not in points
    assert "fluss_server.pytest_plugin" in points


def test_the_testkit_ships_its_java_launcher_and_its_entry_point(wheels):
    names, points = wheels["fluss-testkit"]
    assert "fluss_testkit/java_launcher/FlussNode.java" in names
    assert "fluss_testkit/java_launcher/watchdog.py" in names
    assert "[fluss.local_clusters]" in points
    assert "fluss_testkit.real_server:RealServer" in points
