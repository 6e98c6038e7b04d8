"""Runs a function over a list of inputs in Spark's executors, one task for each input.

Inputs and results are bytes. If the function raises an exception, the task returns it pickled, so
the driver gets the error with its type, and the results of all other tasks. If the task itself
failed, Spark would run it again, keep only the text of the error, and drop the other results. So
Spark repeats a task only if its executor was lost. Spark Connect is supported.
"""

from __future__ import annotations

import pickle
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from fluss.errors import FlussError
from fluss_spark.worker_memory import freeze_modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work = Callable[[bytes], bytes]
# One job has at most as many tasks; further inputs follow in the next job.
TASKS_MAX: Final = 10_000
_RESULT: Final = pa.schema([("input", pa.int64()), ("result", pa.binary()), ("error", pa.binary())])
_DESCRIPTION: Final = "spark.job.description"
_RESULT_DDL: Final = "input bigint, result binary, error binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one input, or its error.

    Attributes:
        result: What the function returned; None if it failed.
        error: The exception; None if the function succeeded.
    """

    result: bytes | None = None
    error: BaseException | None = None


class SparkTasks:
    """Runs functions in the executors of a session.

    Args:
        spark: The Spark session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tag = f"fluss-{uuid.uuid4().hex}"

    def run(self, work: Work, inputs: Sequence[bytes], *, description: str) -> list[Outcome]:
        """Call a function with each input; return the outcomes in the order of the inputs.

        Args:
            work: The function; executors must be able to import its module.
            inputs: The inputs.
            description: The description of the job in Spark's UI.

        Raises:
            Exception: An error of Spark, if the job could not be run or was cancelled.
        """
        outcomes: list[Outcome] = []
        for first in range(0, len(inputs), TASKS_MAX):
            some = inputs[first : first + TASKS_MAX]
            with self._described(description):
                outcomes += self._run_job(work, some)
        return outcomes

    def cancel(self) -> None:
        """Cancel the jobs of this object that are running. Any thread may call it."""
        context = _context_of(self._spark)
        with suppress(Exception):  # a session that has ended has no jobs
            if context is None:
                self._spark.interruptTag(self._tag)
            else:
                context.cancelJobsWithTag(self._tag)

    def _run_job(self, work: Work, inputs: Sequence[bytes]) -> list[Outcome]:
        places = self._spark.range(0, len(inputs), 1, len(inputs))
        with warnings.catch_warnings():
            # Spark warns about new versions of pandas, but these tasks do not use pandas.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
            frame = places.mapInArrow(_task(work, inputs), _RESULT_DDL)
        done = frame.collect()
        outcomes = {row["input"]: _outcome(row["result"], row["error"]) for row in done}
        return [outcomes[place] for place in range(len(inputs))]

    @contextmanager
    def _described(self, description: str) -> Iterator[None]:
        """Show a description in Spark's UI, and mark the jobs so that `cancel` finds them."""
        context = _context_of(self._spark)
        if context is None:
            self._spark.addTag(self._tag)
            try:
                yield
            finally:
                self._spark.removeTag(self._tag)
            return
        # In Spark 4.3, tags of the context reach Python's jobs, and tags of the session do not.
        before = context.getLocalProperty(_DESCRIPTION)
        context.addJobTag(self._tag)
        context.setJobDescription(description)
        try:
            yield
        finally:
            context.removeJobTag(self._tag)
            context.setLocalProperty(_DESCRIPTION, before)


def _context_of(spark: SparkSession) -> Any:
    """Return the session's context; None for Spark Connect, which has none."""
    try:
        return spark.sparkContext
    except Exception:  # noqa: BLE001 - Spark Connect raises several errors
        return None


def _task(
    work: Work, inputs: Sequence[bytes]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that a task of Spark calls with the positions of its inputs."""
    given = list(inputs)
    purpose = getattr(work, "__qualname__", "task")

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield _row(place, work, given[place])
        # The daemon collects garbage after each task: four empty tasks took 0.45 s of processor
        # time, and take 0.24 s.
        freeze_modules(purpose)

    return run


def _row(place: int, work: Work, given: bytes) -> pa.RecordBatch:
    result, error = None, None
    try:
        result = work(given)
    except Exception as raised:  # noqa: BLE001 - the driver raises it again
        error = _pickled(raised)
    columns = [pa.array([place]), pa.array([result], pa.binary()), pa.array([error], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_RESULT)


def _pickled(error: Exception) -> bytes:
    """Return an exception as bytes; one that cannot be pickled keeps its text only."""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - exceptions of libraries fail in many ways
        return pickle.dumps(FlussError(f"{type(error).__name__}: {error}"))
    return data


def _outcome(result: bytes | bytearray | None, error: bytes | bytearray | None) -> Outcome:
    if error is not None:
        return Outcome(error=pickle.loads(error))  # noqa: S301 - from our own tasks
    return Outcome(result=None if result is None else bytes(result))
