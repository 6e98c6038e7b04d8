"""The shell of `fluss sql`: lines, commands and completion, then a process on a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import socket
import subprocess
import sys
import time

import pytest

import fluss_duckdb
from fluss_duckdb.shell import prompt as prompt_module
from fluss_duckdb.shell.completion import Completer
from fluss_duckdb.shell.sql_shell import SqlShell
from fluss_duckdb.shell.statement_runner import StatementRunner
from fluss_server.local_cluster import LocalCluster

ENDS_S = 60.0


@pytest.fixture
def type_lines(con, monkeypatch, capsys, tmp_path):
    """Run a shell on these lines, and return what it shows."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(prompt_module, "_readline", None)
    monkeypatch.setenv("COLUMNS", "64")

    def run(*lines):
        given = iter(lines)

        def read(_):
            line = next(given, None)
            if line is None:
                raise EOFError
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr("builtins.input", read)
        SqlShell(con, StatementRunner(con), None).run()
        shown = capsys.readouterr()
        return re.sub(r"\d+\.\d{3} s", "T s", shown.out).splitlines()[1:], shown.err.splitlines()

    return run


def test_a_statement_may_have_several_lines(type_lines, events):
    out, err = type_lines(
        "SELECT id,",
        f"  name FROM {events.name}",
        "-- ;",
        "WHERE id = 5;",
        "",
        "SELECT 1 AS a; SELECT",
        "2 AS b;",
    )
    assert err == []
    assert out == [
        "id  name", " 5  n5", "(1 row, T s)",
        "a", "1", "(1 row, T s)",
        "b", "2", "(1 row, T s)", "",
    ]  # fmt: skip


def test_ctrl_c_empties_the_line_and_errors_do_not_end_the_shell(type_lines):
    out, err = type_lines(
        "SELECT 'open",
        KeyboardInterrupt(),
        "SELEC 1; SELECT 2;",
        ".nothing",
        "FROM fluss('x.y');",
        "SELECT 3 AS c;",
    )
    assert out == ["", "c", "3", "(1 row, T s)", ""]
    assert [each for each in err if each.startswith("fluss: ")] == [
        'fluss: syntax error at or near "SELEC"',
        "fluss: There is no command .nothing.",
        next(each for each in err if "'x" in each),
    ]


def test_commands_change_what_is_shown(type_lines, keyed, shared, tmp_path):
    file = tmp_path / "q.sql"
    file.write_text("SELECT 7 AS f; SELECT 8 AS g")
    out, err = type_lines(
        ".timer off", ".rows 2", "SELECT * FROM range(5) t(i);", ".mode line", "SELECT 1 AS a, NULL AS long;",
        ".mode json", "SELECT 1 AS a;", ".mode csv", f".read {file}", ".mode x", ".rows 0", ".timer", "quit", "SELECT 9;",
    )  # fmt: skip
    assert out == [
        "i", "0", "1", "(first 2 rows; LIMIT or .rows shows more or fewer)",
        "   a = 1", "long = NULL", "(1 row)",
        '{"a": 1}', "f", "7", "g", "8",
    ]  # fmt: skip
    assert err == [
        "fluss: There is no mode 'x'.",
        "  hint: table, line, json, csv, arrow",
        "fluss: .rows takes a number from 1 to 10,000.",
        "fluss: .timer takes on or off.",
    ]
    out, err = type_lines(".timer off", f".tables {shared}", f".schema {keyed.name}", ".help")
    assert "keyed" in out
    assert f"CREATE TABLE {keyed.name} (" in out
    assert any(each.startswith(".tables [DATABASE]") for each in out)
    assert [each for each in out if len(each) > 75] == []


def test_wide_tables_are_shortened_with_a_hint(type_lines):
    columns = ", ".join(f"'{'x' * 20}' AS column_{each}" for each in range(9))
    out, _ = type_lines(".timer off", f"SELECT {columns};")
    assert all(len(each) <= 64 for each in out[:2])
    assert out[0].startswith("column_0")
    assert out[0].endswith("column_8")
    assert re.match(r"… \d of 9 columns do not fit: name the ones to see", out[2])


def test_words_are_completed(con, events, keyed, shared):
    runner = StatementRunner(con)
    runner.names.database = None
    completer = Completer(runner.names, [".mode", ".tables"])
    assert completer.matches(".m", ".m") == [".mode"]
    assert completer.matches("sel", "sel") == ["select"]
    assert "SELECT" in completer.matches("SEL", "SEL")
    assert shared in completer.matches(shared[:10], f"FROM {shared[:10]}")
    assert completer.matches(f"{shared}.ev", f"FROM {shared}.ev") == [events.name]
    assert "day" in completer.matches("da", f"SELECT * FROM {events.name} WHERE da")
    runner.names.database = shared
    assert "keyed" in completer.matches("key", "FROM key")
    assert "day" in completer.matches("da", " WHERE da", "SELECT * FROM events\n")


class Terminal:
    """A process on a terminal."""

    def __init__(self, words, environment):
        self._main, other = pty.openpty()
        self.process = subprocess.Popen(
            words, stdin=other, stdout=other, stderr=other, env=environment, start_new_session=True
        )
        os.close(other)
        self.shown = ""

    def type(self, text):
        os.write(self._main, text.encode())

    def wait_for(self, text):
        """Wait until the screen shows a text after what was seen before."""
        ends = time.monotonic() + ENDS_S
        while (at := self.shown.find(text)) < 0:
            assert time.monotonic() < ends, (text, self.shown)
            if select.select([self._main], [], [], 0.2)[0]:
                try:
                    self.shown += os.read(self._main, 65_536).decode(errors="replace")
                except OSError:  # the process has ended
                    assert text in self.shown, self.shown
        seen, self.shown = self.shown[: at + len(text)], self.shown[at + len(text) :]
        return seen

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._main)


@pytest.mark.one_server
@pytest.mark.slow  # starts a server twice, and a process
def test_a_shell_lives_through_ctrl_c_and_a_restart_of_the_server(tmp_path):
    line = (  # Ctrl-C reaches the process whose terminal this is
        "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "from fluss.cli import main; sys.exit(main())"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with LocalCluster(tmp_path / "data", durability="process", port=port) as cluster:
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "xterm"}
        environment.pop("FLUSS_URL", None)
        with fluss_duckdb.connect(url=cluster.url) as con:
            con.session.append("fluss.rows", {"number": [1, 2, 3]}, create=True, buckets=1)
        terminal = Terminal([sys.executable, "-c", line, "--url", cluster.url, "sql"], environment)
        try:
            terminal.wait_for("fluss> ")
            terminal.type("SELECT sum(number) AS s FROM fluss.ro\t;\n")
            assert "fluss.rows" in terminal.wait_for("(1 row")
            terminal.wait_for("fluss> ")
            terminal.type(
                "SELECT count(*) FROM range(1000000000) a(b), range(1000) c(d) WHERE b * d % 7 = 3;\n"
            )
            terminal.wait_for("= 3;")
            time.sleep(1.0)  # until it runs
            terminal.type("\x03")
            terminal.wait_for("interrupted")
            terminal.wait_for("fluss> ")
            cluster.kill()
            cluster.stop()
            cluster.start()
            terminal.type("SELECT sum(number) + 36 AS s FROM fluss.rows;\n")
            assert "42" in terminal.wait_for("(1 row")
            terminal.wait_for("fluss> ")
            terminal.type("\x04")
            assert terminal.process.wait(ENDS_S) == 0
        finally:
            terminal.close()
    history = (tmp_path / "state" / "fluss" / "sql_history").read_text()
    assert "SELECT sum(number) + 36 AS s FROM fluss.rows;" in history
