"""`.ci/run` runs a few failed tests once more, and passes only when they pass then."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.house.sources import ROOT

# Stands in for ./dev: logs its arguments, and ends with the next code of the file `codes`.
FAKE_DEV = """#!/usr/bin/env bash
[ "$1" = test ] || exit 0
echo "$*" >>calls
code=$(head -n 1 codes); sed -i 1d codes
exit "$code"
"""


@pytest.fixture
def clone(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "dev").write_text(FAKE_DEV)
    (tmp_path / "dev").chmod(0o755)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    return tmp_path


@pytest.mark.parametrize(
    ("codes", "failed", "expected", "calls"),
    [
        pytest.param([0], 0, 0, 1, id="all pass"),
        pytest.param([1, 0], 2, 0, 2, id="what failed passes then"),
        pytest.param([1, 1], 2, 1, 2, id="a test fails twice"),
        pytest.param([1], 6, 1, 1, id="too many fail"),
        pytest.param([2], 1, 2, 1, id="interrupted"),
    ],
)
def test_the_run_ends_as_it_should(clone, codes, failed, expected, calls):
    cache = clone / ".pytest_cache/v/cache/lastfailed"
    cache.parent.mkdir(parents=True)
    names = [f"tests/test_a.py::test_{number}" for number in range(failed)]
    cache.write_text(json.dumps(dict.fromkeys(names, True)))
    (clone / "codes").write_text("".join(f"{code}\n" for code in codes))
    run = subprocess.run(
        ["bash", ".ci/run"], cwd=clone, check=False, capture_output=True, text=True
    )
    assert run.returncode == expected, run.stdout + run.stderr
    asked = (clone / "calls").read_text().splitlines()
    assert len(asked) == calls
    if calls > 1:
        assert "--last-failed" in asked[1]
        assert "-n0" in asked[1]
    unsteady = calls > 1 and expected == 0
    assert all((f"{name}\n" in run.stdout.partition("Unsteady")[2]) == unsteady for name in names)
