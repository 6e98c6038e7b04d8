"""The demo shows a shop, asks every engine however it is ended, and leaves nothing behind."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fluss
from tests.support.terminal import CTRL_C, Terminal

pytestmark = pytest.mark.slow  # each test runs a demo

PROGRAM = [sys.executable, "-c", "import sys; from fluss.cli import main; sys.exit(main())", "demo"]
UNDER_DEV = [str(Path(__file__).resolve().parents[3] / "dev"), "demo"]
ALL_RIGHT = "3 engines asked; all as in the books."
HOW_TO_GO_ON = "Ctrl-C: ask the engines"


@pytest.fixture
def temporary(tmp_path):
    """An empty folder for temporary files; the demo must leave it empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    yield folder
    assert not list(folder.iterdir()), "the demo left files"


def environment(temporary):
    return {**os.environ, "TMPDIR": str(temporary)}


def test_in_a_pipe_it_ends_by_itself_with_the_right_totals(temporary):
    done = subprocess.run(
        [*PROGRAM, "--rounds", "4"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(temporary),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ALL_RIGHT in done.stdout
    assert "2,000 orders" in done.stdout
    assert "8,000 clicks" in done.stdout
    assert "clicks: 8,000 in the lake, 0 left in the log; read: 8,000" in done.stdout
    assert_answers(done.stdout)


def test_without_a_lake_it_says_what_a_lake_would_add(temporary):
    without = PROGRAM[2].replace("import sys;", "import sys; sys.modules['fluss_lake'] = None;")
    done = subprocess.run(
        [*PROGRAM[:2], without, "demo", "--rounds", "2"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(temporary),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ALL_RIGHT in done.stdout
    assert done.stdout.count("fluss-lake") == 2, "one sentence, with the command"
    assert "in the lake" not in done.stdout


# 64 columns are half a laptop's screen.
@pytest.mark.parametrize(("words", "columns"), [(UNDER_DEV, 80), (PROGRAM, 64)])
def test_on_a_screen_ctrl_c_closes_the_shop_and_asks_the_engines(temporary, words, columns):
    with Terminal(words, columns=columns, env=environment(temporary)) as terminal:
        terminal.wait_for(HOW_TO_GO_ON)
        terminal.wait_for("/basket")
        live = terminal.screen.display
        assert any(line.startswith(HOW_TO_GO_ON) for line in live), "below the live figures"
        terminal.type(CTRL_C)
        assert terminal.wait() == 0, terminal.text
        assert ALL_RIGHT in terminal.text
        assert_answers(terminal.text)
        assert HOW_TO_GO_ON not in terminal.text, "the live figures make way for the last ones"
        assert re.search(
            r"^  [\d,]+ orders, a log partitioned by day$", terminal.text, re.MULTILINE
        )
        on_screen = "\n".join(terminal.screen.display)
        assert "Revenue by country" in on_screen, "the answers fit a screen of 24 lines"


def test_sigterm_closes_the_shop_as_ctrl_c_does(temporary):
    with Terminal(PROGRAM, env=environment(temporary)) as terminal:
        terminal.wait_for(HOW_TO_GO_ON)
        terminal.process.terminate()
        assert terminal.wait() == 0, terminal.text
        assert ALL_RIGHT in terminal.text


def test_a_closed_terminal_ends_it(temporary):
    with Terminal(PROGRAM, env=environment(temporary)) as terminal:
        terminal.wait_for(HOW_TO_GO_ON)
        terminal.process.send_signal(signal.SIGHUP)
        assert terminal.wait() == 128 + signal.SIGHUP, terminal.text


def test_keep_leaves_the_server_and_prints_programs_that_run(temporary):
    done = subprocess.run(
        [*PROGRAM, "--rounds", "2", "--keep"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(temporary),
    )
    pid = int(re.search(r"To stop the server: kill (\d+)", done.stdout).group(1))
    try:
        assert done.returncode == 0, done.stdout + done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 64, "lines to copy are not broken"
        servers = re.search(r"The database fluss_demo stays at (\S+)\.", done.stdout).group(1)
        programs = re.findall(
            r"^# (\w+)\n(.*?)\n\n(?=#|The database)", done.stdout, re.MULTILINE | re.DOTALL
        )
        assert [name for name, _ in programs] == ["duckdb", "pandas", "polars"]
        with fluss.connect(f"fluss://{servers}"):
            for _, program in programs:
                found = {}
                exec(program, found)  # noqa: S102 - what the demo prints for a notebook
                assert len(list(found["answer"])) == 8
    finally:
        os.kill(pid, signal.SIGTERM)
        wait_for_end(pid)


def assert_answers(text):
    """Each country has the same sum in the books and in every engine."""
    rows = re.findall(
        r"^ *([A-Z]{2}) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) *$", text, re.MULTILINE
    )
    assert len(rows) == 8, text
    for _, books, *answers in rows:
        assert set(answers) == {books}


def wait_for_end(pid):
    """Wait for a process that is not our child; its parent may not have collected it."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(500):
            os.kill(pid, 0)
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return
            time.sleep(0.02)
        raise AssertionError(f"the server {pid} runs still")
