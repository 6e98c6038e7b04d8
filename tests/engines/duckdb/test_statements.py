"""Ctrl-C ends the statement that runs, and none that comes after it."""

import signal
import threading

import pytest

from fluss_duckdb.statements import Statement, _watcher

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
