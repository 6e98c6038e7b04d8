"""The bar of long reads and writes: shown in terminals and notebooks, and erased at the end."""

import io
import sys
import threading

import pytest

from fluss.progress import ROWS_MIN, Amount, ProgressDisplay, is_watched


class Terminal(io.StringIO):
    def __init__(self, *, is_terminal=True):
        super().__init__()
        self.is_terminal, self.wrote = is_terminal, threading.Event()

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        self.wrote.set()
        return super().write(text)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr("fluss.progress.SILENT_S", 0.0)
    monkeypatch.setattr("fluss.progress.EVERY_S", 0.01)
    monkeypatch.delenv("FLUSS_PROGRESS", raising=False)


@pytest.fixture(params=["rich", "tqdm", "text"])
def bar(request, monkeypatch):
    if request.param != "text":
        pytest.importorskip(request.param)
    monkeypatch.setattr("fluss.progress._is_installed", lambda package: package == request.param)
    return request.param


HALF = Amount(rows=40_000, done=50_000, rows_max=100_000)
MANY = Amount(rows=1, done=1, rows_max=ROWS_MIN)


def shown(stream, amount, progress=None):
    with ProgressDisplay("db.[events]", lambda: amount, progress, stream) as display:
        if display._thread is not None and not callable(progress):
            stream.wrote.wait(10)
    return stream.getvalue()


def test_a_bar_shows_rows_percent_and_rate_and_is_erased(bar):
    stream = Terminal()
    text = shown(stream, HALF)
    assert "db.[events]" in text
    assert "40,000 rows, 50%, " in text
    assert " rows/s, 0 s" in text
    end = text[text.rindex("rows/s") :]
    assert "\r" in end or "\x1b[" in end


@pytest.mark.parametrize("package", ["tqdm", "text"])  # rich erases whole lines
def test_what_a_terminal_echoes_of_ctrl_c_is_erased(package, monkeypatch):
    if package == "tqdm":
        pytest.importorskip(package)
    monkeypatch.setattr("fluss.progress._is_installed", lambda each: each == package)
    pieces = shown(Terminal(), HALF).split("\r")
    widest = max(len(each.rstrip()) for each in pieces)
    assert any(not each.strip() and len(each) >= widest + len("^C") for each in pieces)


def test_a_stream_of_unknown_length_has_no_percent(bar):
    text = shown(Terminal(), Amount(rows=7, done=7, rows_max=None))
    assert "7 rows, " in text
    assert "%" not in text


@pytest.mark.parametrize(
    ("amount", "progress", "is_terminal"),
    [
        (MANY, False, True),
        (MANY, None, False),
        (MANY, True, False),
        (MANY._replace(rows_max=ROWS_MIN - 1), None, True),
        (MANY._replace(rows_max=0), None, True),
    ],
)
def test_nothing_is_shown_in_pipes_by_option_and_for_few_rows(amount, progress, is_terminal):
    stream = Terminal(is_terminal=is_terminal)
    assert shown(stream, amount, progress) == ""
    assert not [each for each in threading.enumerate() if each.name == "fluss-progress"]


def test_a_process_turns_it_off(monkeypatch):
    monkeypatch.setenv("FLUSS_PROGRESS", "off")
    assert shown(Terminal(), MANY) == ""
    assert shown(Terminal(), MANY, True) == ""


def test_few_rows_are_shown_where_it_is_asked_for():
    assert "1 rows" in shown(Terminal(), MANY._replace(rows_max=2), True)


def test_a_function_is_called_and_once_more_at_the_end():
    calls, amounts = [], [Amount(rows=0, done=0, rows_max=None)]
    called = threading.Event()

    def note(rows, rows_max):
        calls.append((rows, rows_max))
        called.set()

    with ProgressDisplay("t", lambda: amounts[0], note, Terminal(is_terminal=False)):
        assert called.wait(10)
        amounts[0] = Amount(rows=9, done=9, rows_max=9)
    assert calls[0] == (0, 0)
    assert calls[-1] == (9, 9)


def test_of_two_at_a_time_one_is_shown(monkeypatch):
    monkeypatch.setattr("fluss.progress._is_installed", lambda _: False)
    first, second = Terminal(), Terminal()
    with ProgressDisplay("first", lambda: MANY, None, first):
        assert first.wrote.wait(10)
        with ProgressDisplay("second", lambda: MANY, None, second) as inner:
            inner._thread.join(10)
        assert second.getvalue() == ""
    assert "1 rows" in shown(Terminal(), MANY)


def test_an_error_of_the_work_is_raised_and_the_line_erased(bar):
    stream = Terminal()

    def work():
        with ProgressDisplay("t", lambda: MANY, None, stream):
            assert stream.wrote.wait(10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not [each for each in threading.enumerate() if each.name == "fluss-progress"]


def test_a_program_without_a_console_is_not_watched(monkeypatch):
    closed = io.StringIO()
    closed.close()
    assert not is_watched(closed)
    assert not is_watched(None)
    monkeypatch.setattr(sys, "stderr", None)
    with ProgressDisplay("t", lambda: MANY):
        pass
