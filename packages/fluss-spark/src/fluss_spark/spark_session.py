"""Spark sessions that are ready for Fluss, and the short ways to its tables.

Spark's workers must run this Python, and Java must be found: `session()` sees to that, `enable` to
what can still be set in a session that runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fluss.doors import at_door
from fluss.errors import ConfigError, InvalidNameError, InvalidValueError
from fluss.hints import Door
from fluss_spark.data_source import FlussDataSource
from fluss_spark.java_home import java_home
from fluss_spark.reader_zone import give_time_zone, zone_of_session
from fluss_spark.spark_options import TIME_ZONE, check_no_password, read_options
from fluss_spark.views import refresh_by_itself
from fluss_spark.writer_threads import activate_in_all_threads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INTERRUPTED: Final = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling save: "
    "java.lang.InterruptedException"
)
# Without it Spark 4.3 shows TIME, and refuses to compare or to group it.
_TIMES: Final = "spark.sql.timeType.enabled"
_REGISTRY: Final = "org.apache.spark.sql.execution.datasources.DataSourceManager"


def session(
    app_name: str = "fluss",
    *,
    master: str | None = None,
    remote: str | None = None,
    **conf: Any,
) -> SparkSession:
    """A Spark session that knows `format("fluss")`, or the one that runs.

    Workers run this Python, times are UTC, and Java is the machine's or that of
    `pip install 'fluss-spark[java]'`. One that runs keeps what it is set to, but for `conf`.

    Args:
        app_name: Its name.
        master: Where it runs; on this machine by default.
        remote: The address of a Spark Connect server, in place of `master`.
        **conf: Spark's settings, with `__` for `.`: `spark__ui__enabled=False`.

    Raises:
        MissingExtraError: There is no Java that Spark can use.
        ConfigError: A setting has a name that none can have.
    """
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app_name)
    settings = {} if _is_running() else {"spark.sql.session.timeZone": "UTC"}
    afar = remote or (None if master is not None else os.environ.get("SPARK_REMOTE"))
    if afar is None or afar.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        # Otherwise Spark takes a folder `jars` beside this Python for one of its own.
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
        home = java_home()
        if home is not None:
            os.environ["JAVA_HOME"] = str(home)
    if afar is not None:
        builder = builder.remote(afar)
    else:
        builder = builder.master(master or "local[*]")
        settings["spark.ui.showConsoleProgress"] = "false"
    settings |= {_setting(name): _text(value) for name, value in conf.items()}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return enable(builder.getOrCreate())


def _is_running() -> bool:
    """Whether there is a session already, which `getOrCreate` would give back."""
    from pyspark.sql import SparkSession

    try:
        return bool(SparkSession.active())
    except Exception:  # noqa: BLE001 - Spark and Spark Connect have several for that there is none
        return False


def _setting(name: str) -> str:
    """A setting of Spark as it is written here, as Spark knows it."""
    setting = name.replace("__", ".")
    if "." not in setting:
        raise ConfigError(
            f"Spark has no setting {name!r}.",
            hint=f"with '__' for '.': {name.replace('_', '__')}, or **{{'spark.ui.enabled': False}}",
            key=name,
        )
    return setting


def enable(spark: SparkSession) -> SparkSession:
    """Teach a session that runs `format("fluss")`, how many tasks it runs at once, and TIME.

    Once for each session, in any thread. From then on frames are written and streams are started
    from every thread of this process, and INSERT and REFRESH TABLE read their view anew.
    """
    with suppress(Exception):  # a Spark without this setting, or whose owner keeps it
        if _TIMES not in spark.conf.getAll:
            spark.conf.set(_TIMES, "true")
    parallelism = _parallelism_of(spark)
    if parallelism is not None:
        activate_in_all_threads()
        refresh_by_itself()
        give_time_zone()
        source = type("FlussDataSource", (FlussDataSource,), {"parallelism": parallelism})
        _quiet_registry(spark)
        spark.dataSource.register(source)
    elif "SPARK_LOCAL_REMOTE" not in os.environ:
        # A server elsewhere may find the format only among what this session has sent it; one that
        # PySpark has started here, and says so in that variable, has found it by itself.
        spark.dataSource.register(FlussDataSource)
    return spark


def _parallelism_of(spark: SparkSession) -> int | None:
    """How many tasks this Spark runs at once; one afar does not say."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - Spark Connect has no context, and several ways to say so
        return None


def _quiet_registry(spark: SparkSession) -> None:
    """Has Spark not warn that a format which it has found by itself is registered once more.

    That is meant: what it has found does not know how many tasks run at once. Every streaming query
    registers it again in a session of its own, so this is for good.
    """
    with suppress(Exception):  # a Spark that logs in another way may warn
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - there is no other way to its loggers
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(_REGISTRY, log4j.Level.ERROR)


@at_door(Door.SPARK)
def table(
    spark: SparkSession,
    name: str,
    *,
    columns: Sequence[str] | str | None = None,
    where: str | None = None,
    **options: Any,
) -> DataFrame:
    """A table as a DataFrame, as it is when the frame is first used.

    Args:
        spark: The session.
        name: `database.table`, or its URL.
        columns: The columns wanted, in a list, or with commas; only these are read.
        where: Which rows, `"id >= 90 AND kind IN ('a', 'b')"`; partitions, buckets and offsets that
            have none are not read, whole keys are looked up.
        **options: Further options, as of `format("fluss")`.
    """
    check_no_password(name)
    listed = None if columns is None else _listed(columns)
    reader = spark.read.format("fluss")
    if where is not None:
        reader = reader.option(TIME_ZONE, zone_of_session(spark)).option("filter", where)
    if listed is not None:
        reader = reader.option("columns", listed)
    for key, value in options.items():
        reader = reader.option(key, _text(value))
    return reader.load(name)


def explain(frame: DataFrame) -> str:
    """What the query of a frame reads of Fluss: tables, columns, what is left out, rows, tasks.

    The scans are planned once more for it; what has been written since is counted in.

    Args:
        frame: A frame made of `format("fluss")`, of views, or of both.

    Raises:
        InvalidValueError: It reads no table of Fluss.
        UnsupportedOperationError: It is a stream, or of Spark Connect.
    """
    from fluss_spark.explaining import explained  # heavy; planners import this file, too

    return explained(frame, _parallelism_of(frame.sparkSession))


def _listed(columns: Sequence[str] | str) -> str:
    """Columns as the option takes them."""
    if isinstance(columns, str):
        return columns
    for each in columns:
        if "," in each:
            raise InvalidValueError(
                f"The column {each!r} has a comma in its name, which parts columns here.",
                hint="name columns and types in spark.read.schema(...)",
                column=each,
            )
    if not columns:
        raise InvalidValueError("columns names none.", hint="leave it out for all of them")
    return ",".join(columns)


@at_door(Door.SPARK)
def register_views(spark: SparkSession, database: str, **options: Any) -> list[str]:
    """A temporary view for every table of a database, in place of a catalog.

    Args:
        spark: The session.
        database: The database.
        **options: How to reach the cluster, as of `format("fluss")`.

    Returns:
        The views' names, which are the tables'.

    Raises:
        InvalidNameError: Two tables differ in nothing but case, which Spark does not tell apart.
        DatabaseNotFoundError: There is no such database; the hint names the nearest.
    """
    if "://" in database:
        raise InvalidNameError(
            "register_views is given a database, and not a URL.",
            hint="register_views(spark, 'db', **{'bootstrap.servers': 'host:9123'})",
        )
    told = read_options(
        {"path": database, **{k: _text(v) for k, v in options.items()}}, what="read"
    )
    from fluss_spark.table_access import session_elsewhere  # heavy; planners import this file, too

    with session_elsewhere(told.settings) as opened:
        names = opened.tables(database)
    _check_views(spark, database, names)
    for name in names:
        view = f"`{name.replace('`', '``')}`"
        table(spark, f"{database}.{name}", **options).createOrReplaceTempView(view)
    return names


def _check_views(spark: SparkSession, database: str, names: Sequence[str]) -> None:
    """Refuse tables of which one view would take the other's place."""
    if spark.conf.get("spark.sql.caseSensitive", "false") == "true":
        return
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InvalidNameError(
                f"{database} has the tables {other!r} and {name!r}, and to Spark both would be one "
                "view.",
                hint=f"fluss_spark.table(spark, '{database}.{name}').createOrReplaceTempView(...) "
                "under another name, for each that is wanted; or spark.sql.caseSensitive=true",
                name=name,
            )


@at_door(Door.SPARK)
def upsert_batches(name: str, **options: Any) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls to upsert every micro-batch, for queries in update mode.

    Args:
        name: The primary-key table; a log is refused, in which repeated rows would be there twice.
        **options: Further options, as of `format("fluss")`.
    """
    check_no_password(name)

    def upsert(batch: DataFrame, batch_id: int) -> None:
        del batch_id  # the same rows again change nothing
        writer = batch.write.format("fluss").mode("append").option("operation", "upsert")
        for key, value in options.items():
            writer = writer.option(key, _text(value))
        try:
            writer.save(name)
        except Exception as error:
            if _is_interrupt(error):
                # What Spark recognises; in the long text of the error it would search for it with a
                # recursive expression, and overflow Java's stack.
                raise InterruptedError(_INTERRUPTED) from None
            raise

    return upsert


def _is_interrupt(error: Exception) -> bool:
    """Whether the query was stopped in the middle of this."""
    try:
        raised: Any = error.java_exception  # type: ignore[attr-defined] # of Py4JJavaError alone
        return bool(raised.getClass().getName() == "java.lang.InterruptedException")
    except Exception:  # noqa: BLE001 - it is another error, and stays what it is
        return False


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
