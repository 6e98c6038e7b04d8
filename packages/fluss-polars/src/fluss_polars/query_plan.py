"""The plan of one query, made on a thread of its own, for all sources of the query to share.

Polars asks a resolver on a thread of its own and waits for the answer without looking whether
somebody has pressed Ctrl-C. So a resolver waits for its plan a moment only; where servers take
longer, its sources wait for the rest, and those Polars can end. What a resolver cannot do without,
the table, it waits for in slices of time (`ask`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import polars as pl

from fluss.scan import ScanSplit
from fluss.waiting import in_thread, is_done, wait_until

T = TypeVar("T")

# Ctrl-C must be noticed within a second.
LOOK_EVERY_S: Final = 0.1


def ask(work: Callable[[], T]) -> T:
    """What `work` gives, unless somebody presses Ctrl-C while it waits for a server.

    While Polars runs a query its handler of SIGINT only sets a flag, and any operation of Polars
    raises KeyboardInterrupt when it finds the flag. Such an operation is therefore called now and
    then. The work that was given up ends by itself, on a thread for which nobody waits.
    """
    future = in_thread(work, "fluss-polars-table")
    while not is_done(future, LOOK_EVERY_S):
        pl.DataFrame().rechunk()
    return future.result()


class Plan:
    """The splits of one query, as soon as they are known. Any thread may ask.

    Args:
        find: Gives them; called once.
    """

    def __init__(self, find: Callable[[], Sequence[ScanSplit]]) -> None:
        self._is_done = threading.Event()
        self._splits: tuple[ScanSplit, ...] = ()
        self._error: BaseException | None = None
        run = threading.Thread(
            target=self._run, args=(find,), name="fluss-polars-plan", daemon=True
        )
        run.start()

    def splits(self, timeout_s: float | None) -> tuple[ScanSplit, ...] | None:
        """The splits; None where they are not known in this time.

        Args:
            timeout_s: How long to wait; None for as long as it takes.

        Raises:
            FlussError: There can be no such plan.
        """
        if not wait_until(self._is_done.wait, timeout_s):
            return None
        if self._error is not None:
            raise self._error
        return self._splits

    def _run(self, find: Callable[[], Sequence[ScanSplit]]) -> None:
        try:
            self._splits = tuple(find())
        except BaseException as error:  # noqa: BLE001 - raised again where the splits are wanted
            self._error = error
        self._is_done.set()

    def __reduce__(self) -> tuple[Any, ...]:
        # What travels is what was pinned here, not another look at the table.
        return _made, (self.splits(None),)


def _made(splits: tuple[ScanSplit, ...]) -> Plan:
    return Plan(lambda: splits)
