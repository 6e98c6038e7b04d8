"""Ctrl-C ends every call that blocks, whatever handler the process has; then the process ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# The server is stopped, and the program that is interrupted is ours.
pytestmark = pytest.mark.one_server

ROOT = Path(__file__).resolve().parents[3]
INTERRUPTED_S_MAX = 1.0
CALLS_MIN = 50
IN_PYTEST = "from tests.support.servers.interrupted_calls import main\ndef test(): main({imports!r}, 'default')"


def run_calls(imports, handler, folder):
    if handler == "pytest":
        program = folder / "test_program.py"
        program.write_text(IN_PYTEST.format(imports=imports))
        start = ["-m", "pytest", "-q", "-s", "-c", "/dev/null", "-p", "no:cacheprovider", program]
    else:
        start = ["-m", "tests.support.servers.interrupted_calls", imports, handler]
    return subprocess.run(
        [sys.executable, *start],
        cwd=ROOT, capture_output=True, text=True, timeout=150, check=False,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip


@pytest.mark.slow  # each of the programs starts a server and interrupts some fifty calls
@pytest.mark.parametrize(
    ("imports", "handler"),
    [
        ("", "default"),
        ("polars,pandas,duckdb", "default"),
        ("polars,pandas,duckdb", "own"),
        ("polars", "pytest"),
    ],
)
def test_every_call_that_blocks_ends_within_a_second(imports, handler, tmp_path):
    wrong = _checked_calls(imports, handler, tmp_path)
    if wrong:  # on a busy machine one may be late, or end before the signal; not the same one twice
        wrong &= _checked_calls(imports, handler, tmp_path)
    assert not wrong


def _checked_calls(imports, handler, folder):
    """Run the calls, check what they raise, and return those that did not end in time after it."""
    done = run_calls(imports, handler, folder)
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    expected = {"own": {"OwnError"}}.get(handler, {"KeyboardInterrupt"})
    after_signal = [outcome for outcome in outcomes if outcome["after_s"] >= 0]
    assert not [outcome for outcome in after_signal if outcome["raised"] not in expected]
    assert len(outcomes) > CALLS_MIN
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr
    return {
        outcome["call"] for outcome in outcomes if not 0 <= outcome["after_s"] < INTERRUPTED_S_MAX
    }
