"""Runs the tasks of a round: in threads of this process, or where a `Carrier` runs them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Protocol

from fluss.errors import FlussError
from fluss.net.cancellation import Cancellation
from fluss_lake.tiering.range_task import WrittenRange
from fluss_lake.tiering.round_driver import Round, abort_round
from fluss_lake.tiering.write_range import ends_after, write_range


class Carrier(Protocol):
    """Runs the tasks of a round, for example in the executors of Spark."""

    def __call__(
        self, round_: Round, *, cancellation: Cancellation, read_s_max: float
    ) -> list[WrittenRange]:
        """Run all tasks of a round. If one fails, remove all written files.

        Args:
            round_: The round.
            cancellation: Cancels the tasks from another thread.
            read_s_max: How long a task reads; the next round reads the rest.

        Raises:
            FlussError: The first error of a task.
        """
        ...


class ThreadCarrier:
    """Runs tasks in threads of this process.

    Args:
        threads: How many tasks run concurrently.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __call__(
        self, round_: Round, *, cancellation: Cancellation, read_s_max: float
    ) -> list[WrittenRange]:
        """Run all tasks of a round; see `Carrier`."""
        return _carry_out_all(
            round_,
            threads=self._threads,
            cancellation=cancellation,
            is_late=ends_after(read_s_max),
        )


def _carry_out_all(
    round_: Round,
    *,
    threads: int,
    cancellation: Cancellation,
    is_late: Callable[[], bool],
) -> list[WrittenRange]:
    """Run the tasks of a round in threads. If one fails, cancel the others."""
    if not round_.tasks:
        return []
    one_failed = Cancellation()
    forget = cancellation.listen(one_failed.cancel)
    with ThreadPoolExecutor(threads, thread_name_prefix="fluss-tier") as pool:
        futures = [
            pool.submit(
                write_range,
                task,
                round_.table,
                round_.lake.io,
                cancellation=one_failed,
                is_late=is_late,
            )
            for task in round_.tasks
        ]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            if any(future.done() and future.exception() is not None for future in futures):
                one_failed.cancel()
                wait(futures)
        except BaseException:
            one_failed.cancel()
            raise
        finally:
            forget()
    return _results(round_, futures, cancellation)


def _results(
    round_: Round, futures: list[Future[WrittenRange]], cancellation: Cancellation
) -> list[WrittenRange]:
    errors = [error for future in futures if (error := future.exception()) is not None]
    if not errors:
        return [future.result() for future in futures]
    abort_round(round_, [future.result() for future in futures if future.exception() is None])
    cancellation.check()
    # The other tasks fail because they were cancelled; the first error names the cause.
    first = next((error for error in errors if not _is_follow_up(error)), errors[0])
    raise first


def _is_follow_up(error: BaseException) -> bool:
    return isinstance(error, FlussError) and error.sentence == Cancellation.error().sentence
