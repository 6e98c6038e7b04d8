"""Copies tables into their lakes with the executors of Spark: `fluss_spark.tier(spark)`.

The driver runs the worker of fluss-lake: it asks the coordinator for tables, plans rounds, sends
heartbeats, and commits. The executors carry out the tasks of a round, one Spark task for each
bucket: they fetch, fold and write files. The code that writes a file is that of fluss-lake, so a
round in Spark commits what a round in one process would.

Executors need fluss-core and fluss-lake, and reach the servers and the files of the lake. A task
carries no secret: settings travel as markers, and logins of the lake are found by each executor.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from fluss.connection.config_sources import resolve
from fluss.doors import at_door
from fluss.errors import MissingExtraError
from fluss.hints import Door
from fluss.install_hints import how_to_install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fluss.net.cancellation import Cancellation
    from fluss_lake.tiering.range_task import WrittenRange
    from fluss_lake.tiering.round_driver import Round
    from fluss_lake.tiering.service import Tally
    from fluss_lake.tiering.worker import RoundReport
    from fluss_spark.spark_tasks import Outcome

# Rounds of several tables run concurrently, so that small tables do not leave executors idle.
TABLES_MAX: Final = 4


@at_door(Door.SPARK)
def tier(
    spark: SparkSession,
    tables: str | Iterable[str] | None = None,
    *,
    cluster: Any = None,
    once: bool = False,
    now: bool = False,
    on_round: Callable[[RoundReport], None] | None = None,
    **options: Any,
) -> Tally:
    """Copy the rows of tables into their lakes, with the executors of a Spark session.

    The same as `fluss_lake.tier`, which copies with the threads of one process; both may run beside
    each other. Each round is one job, which Spark's UI shows with the table's name.

    Args:
        spark: The session.
        tables: The names of the tables; all that have a lake otherwise.
        cluster: A session of Fluss, or settings to connect with; as of `fluss.connect` otherwise.
        once: Whether it ends when the coordinator has no more tables to give.
        now: Whether it copies all rows of the tables now, without asking the coordinator.
        on_round: Called after each round.
        **options: As of `fluss_lake.tier`.

    Returns:
        What was copied.

    Raises:
        MissingExtraError: fluss-lake is not installed.
        FlussError: The coordinator cannot be reached.
    """
    lake = _lake()
    settings = resolve(cluster.config if hasattr(cluster, "config") else cluster).config.written()
    options.setdefault("tables_max", TABLES_MAX)
    return lake(
        tables,
        cluster=cluster,
        once=once,
        now=now,
        on_round=on_round,
        carry=SparkCarrier(spark, settings),
        **options,
    )


class SparkCarrier:
    """Carries out the tasks of rounds in executors.

    Args:
        spark: The session.
        settings: How executors connect to Fluss; secrets as markers.
    """

    def __init__(self, spark: SparkSession, settings: dict[str, Any]) -> None:
        self._spark, self._settings = spark, settings

    def __call__(
        self, round_: Round, *, cancellation: Cancellation, read_s_max: float
    ) -> list[WrittenRange]:
        """Carry out the tasks of a round; if one fails, no file is left.

        Args:
            round_: The round.
            cancellation: Cancels Spark's job from another thread.
            read_s_max: How long a task reads; what is left belongs to the next round.

        Raises:
            FlussError: The first error of a task.
            Exception: Spark's own, where it could not run the job.
        """
        if not round_.tasks:
            return []
        from fluss_spark.spark_tasks import SparkTasks  # heavy; planners import this file, too

        tasks = SparkTasks(self._spark)
        inputs = [pickle.dumps((each, self._settings, read_s_max)) for each in round_.tasks]
        forget = cancellation.listen(tasks.cancel)
        try:
            outcomes = tasks.run(_carry_out, inputs, description=_description(round_))
        except Exception:
            cancellation.check()  # Spark's error would only say that the job was cancelled
            raise
        finally:
            forget()
        return _written(round_, outcomes)


def _written(round_: Round, outcomes: Sequence[Outcome]) -> list[WrittenRange]:
    from fluss_lake.tiering.round_driver import abort_round

    written = [pickle.loads(each.result) for each in outcomes if each.result is not None]  # noqa: S301 - our own
    errors = [each.error for each in outcomes if each.error is not None]
    if not errors:
        return written
    abort_round(round_, written)
    raise errors[0]


def _carry_out(data: bytes) -> bytes:
    """Carry out one task, in an executor."""
    from fluss_lake.tiering.write_range import carry_out

    task, settings, read_s_max = pickle.loads(data)  # noqa: S301 - from our own driver
    return pickle.dumps(carry_out(task, settings, read_s_max=read_s_max))


def _description(round_: Round) -> str:
    return f"fluss tier {round_.table.info.table_path}: {len(round_.tasks)} buckets"


def _lake() -> Callable[..., Tally]:
    try:
        import fluss_lake
    except ImportError as error:
        raise MissingExtraError(
            "Tables are copied into lakes by the package fluss-lake, which is not installed.",
            hint=f"{how_to_install('fluss-lake')}, on the driver and on the executors",
        ) from error
    return fluss_lake.tier
