"""Ctrl-C ends the statement that runs, and none that comes after it."""

import os
import signal
import socket
import threading

import pytest

from fluss_duckdb.statements import Statement, _Watcher, _watcher

WAIT_S = 10


def interrupt_while_watching(statement, until):
    """Press Ctrl-C while the statement runs, which ends when `until` is set."""
    with _watcher.watching(statement):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            assert until.wait(WAIT_S)


def test_a_statement_that_has_ended_is_not_interrupted():
    is_cancelled, may_go_on, is_over = (threading.Event() for _ in range(3))
    interrupts = []

    def cancel_slowly():
        is_cancelled.set()
        may_go_on.wait(WAIT_S)

    late = Statement(lambda: interrupts.append("late"))
    late.cancel = cancel_slowly
    with pytest.raises(KeyboardInterrupt):
        interrupt_while_watching(late, until=is_cancelled)
    may_go_on.set()

    following = Statement(is_over.set)
    with pytest.raises(KeyboardInterrupt):
        interrupt_while_watching(following, until=is_over)
    assert interrupts == []


class LateWatcher(_Watcher):
    """A watcher whose thread begins to read when the test says so."""

    def _ensure_thread(self):
        if self._pid < 0:
            self._reads, self._writes = socket.socketpair()
            self._writes.setblocking(False)
            self._pid = os.getpid()

    def begin(self):
        self._thread = threading.Thread(target=self._watch, args=(self._reads,))
        self._thread.start()

    def close(self):
        self._writes.close()
        self._thread.join()
        self._reads.close()


def interrupt_late(watcher, statement, is_over):
    """Let the watcher read what an earlier statement left, and then press Ctrl-C."""
    with watcher.watching(statement):
        watcher.begin()
        assert not is_over.wait(0.1)
        assert not statement.is_interrupted
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            assert is_over.wait(WAIT_S)


def test_a_signal_that_is_read_late_ends_no_later_statement():
    is_over = threading.Event()
    watcher, first, second = LateWatcher(), Statement(), Statement(is_over.set)
    with pytest.raises(KeyboardInterrupt), watcher.watching(first):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupt_late(watcher, second, is_over)
    watcher.close()
