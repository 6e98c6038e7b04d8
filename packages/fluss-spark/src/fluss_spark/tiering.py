"""Copies tables into their lakes with the executors of Spark: `fluss_spark.tier(spark)`.

The driver runs the worker of fluss-lake: it asks the coordinator for tables, plans rounds, sends
heartbeats, and commits. The executors run the tasks of a round, one Spark task for each bucket: a
task fetches changes, folds them and writes files. The files are written by the same code of
fluss-lake as in a single process, so both commit the same rows.

Executors need fluss-core and fluss-lake, and access to the servers and to the files of the lake. A
task holds no secret: settings are sent as markers, and each executor looks up the lake's logins.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from fluss.connection.config_sources import resolve
from fluss.doors import at_door
from fluss.errors import ConfigError, MissingExtraError
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

    It does the same as `fluss_lake.tier`, which uses the threads of one process; both may run at
    the same time. Each round is one job, which Spark's UI shows with the table's name.

    Args:
        spark: The Spark session.
        tables: The names of the tables; None for all that have a lake. A name without a database
            is in the database of the session, or of the URL that `cluster` is.
        cluster: A session of Fluss, or settings to connect with; None for those of `fluss.connect`.
        once: Whether to return when the coordinator has no more tables to assign.
        now: Whether to copy all rows of the tables now, without asking the coordinator.
        on_round: Called after each round.
        **options: The options of `fluss_lake.tier` except `carry`.

    Returns:
        The totals, with the last error of each table that could not be copied.

    Raises:
        MissingExtraError: fluss-lake is not installed.
        ConfigError: There is no option of a name; the hint has the nearest one.
        FlussError: The cluster cannot be reached. Errors of single tables are in the result.
    """
    if "carry" in options:
        raise ConfigError(
            "fluss_spark.tier() has no option 'carry': Spark's executors run the tasks.",
            hint="fluss_lake.tier(carry=...) runs them elsewhere.",
            key="carry",
        )
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
    """Runs the tasks of rounds in executors; see `fluss_lake.tiering.carrying.Carrier`.

    Args:
        spark: The Spark session.
        settings: How executors connect to Fluss; secrets are markers.
    """

    def __init__(self, spark: SparkSession, settings: dict[str, Any]) -> None:
        self._spark, self._settings = spark, settings

    def __call__(
        self, round_: Round, *, cancellation: Cancellation, read_s_max: float
    ) -> list[WrittenRange]:
        """Run the tasks of a round. If one fails, remove the files of all finished tasks.

        Args:
            round_: The round.
            cancellation: Cancels Spark's job from another thread.
            read_s_max: How long a task reads; the next round reads the rest.

        Raises:
            FlussError: The first error of a task.
            Exception: An error of Spark, if the job could not be run.
        """
        if not round_.tasks:
            return []
        from fluss_spark.spark_tasks import SparkTasks  # heavy, and planners import this file

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
    """Run one task in an executor."""
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
            "Copying tables into lakes needs the package fluss-lake, which is not installed.",
            hint=f"{how_to_install('fluss-lake')}, on the driver and on the executors",
        ) from error
    return fluss_lake.tier
