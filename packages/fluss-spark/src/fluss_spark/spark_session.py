"""The functions of `fluss_spark`: sessions that are ready for Fluss, tables, views and `explain`.

Spark's workers must run this Python, and Java must be found: `session()` arranges both; `enable`
changes what can still be changed in a session that exists.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fluss.doors import at_door
from fluss.errors import (
    ConfigError,
    InvalidNameError,
    InvalidValueError,
    UnsupportedOperationError,
)
from fluss.hints import Door
from fluss_spark.data_source import FlussDataSource
from fluss_spark.java_home import java_home
from fluss_spark.refreshed_views import refresh_by_itself
from fluss_spark.session_patches import activate_in_all_threads, give_time_zone, zone_of_session
from fluss_spark.spark_options import TIME_ZONE, check_no_password, read_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_INTERRUPTED: Final = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling save: "
    "java.lang.InterruptedException"
)
# Without it Spark 4.3 shows TIME, but refuses to compare or to group it.
_TIMES: Final = "spark.sql.timeType.enabled"
_REGISTRY: Final = "org.apache.spark.sql.execution.datasources.DataSourceManager"


def session(
    app_name: str = "fluss",
    *,
    master: str | None = None,
    remote: str | None = None,
    **conf: Any,
) -> SparkSession:
    """Return a Spark session that knows `format("fluss")`: the active one, or a new one.

    Workers run this Python, times are UTC, and Java is the machine's or that of
    the extra `fluss-spark[java]`. An active session keeps its settings, except for `conf`.

    Args:
        app_name: Its name.
        master: Where it runs; on this machine by default.
        remote: The address of a Spark Connect server, in place of `master`.
        **conf: Spark's settings, with `__` for `.`: `spark__ui__enabled=False`.

    Raises:
        MissingExtraError: There is no Java that Spark can use.
        ConfigError: A setting has an impossible name.
    """
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app_name)
    settings = {} if _is_running() else {"spark.sql.session.timeZone": "UTC"}
    address = remote or (None if master is not None else os.environ.get("SPARK_REMOTE"))
    if address is None or address.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        # Otherwise Spark takes a folder `jars` next to this Python for one of its own.
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
        home = java_home()
        if home is not None:
            os.environ["JAVA_HOME"] = str(home)
    if address is not None:
        builder = builder.remote(address)
    else:
        builder = builder.master(master or "local[*]")
        settings["spark.ui.showConsoleProgress"] = "false"
    settings |= {_setting(name): _text(value) for name, value in conf.items()}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return enable(builder.getOrCreate())


def _is_running() -> bool:
    """Return whether there is a session already, which `getOrCreate` would return."""
    from pyspark.sql import SparkSession

    try:
        return bool(SparkSession.active())
    except Exception:  # noqa: BLE001 - Spark and Spark Connect raise several when there is none
        return False


def _setting(name: str) -> str:
    """Return the name of a setting in Spark's spelling."""
    setting = name.replace("__", ".")
    if "." not in setting:
        raise ConfigError(
            f"Spark has no setting {name!r}.",
            hint=f"with '__' for '.': {name.replace('_', '__')}, or **{{'spark.ui.enabled': False}}",
            key=name,
        )
    return setting


def enable(spark: SparkSession) -> SparkSession:
    """Prepare an existing session for `format("fluss")`, and switch Spark's TIME on.

    Call it once for each session, in any thread. From then on frames can be written and streams
    started from every thread of this process, INSERT and REFRESH TABLE refresh their view, and
    reads use as many tasks as the session runs concurrently.
    """
    with suppress(Exception):  # a Spark without this setting, or one that forbids to change it
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
        # A remote server may know the format only if this session sends it; a server that PySpark
        # started here, which sets that variable, has found the format by itself.
        spark.dataSource.register(FlussDataSource)
    return spark


def _parallelism_of(spark: SparkSession) -> int | None:
    """Return how many tasks this Spark runs concurrently; None for Spark Connect."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - Spark Connect has no context, and raises several errors
        return None


def _quiet_registry(spark: SparkSession) -> None:
    """Silence Spark's warning that a format which it found by itself is registered again.

    The second registration is intended: the class that Spark found does not know how many tasks run
    concurrently. Every streaming query registers it again in a session of its own, so the level is
    never restored.
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
    """Return a table as a DataFrame, as it is when the frame is first used.

    Args:
        spark: The session.
        name: `database.table`, or its URL.
        columns: The columns to read, as a list, or separated by commas.
        where: Which rows, `"id >= 90 AND kind IN ('a', 'b')"`; partitions, buckets and offsets that
            have none are not read, whole keys are looked up.
        **options: Further options of `format("fluss")`.
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
    """Describe what the query of a frame reads: tables, columns, what is pruned, rows, tasks.

    A Python source can neither name its table in Spark's plan nor report what it leaves out. So the
    scans are planned again for this description, including rows written since.

    Args:
        frame: A frame made of `format("fluss")`, of views, or of both.

    Raises:
        InvalidValueError: It reads no table of Fluss.
        UnsupportedOperationError: It is a stream, or of Spark Connect.
    """
    # Heavy, and planners import this file, too.
    from fluss.connection.config_sources import resolve
    from fluss_spark.batch_reader import FlussBatchReader
    from fluss_spark.relations import options_of, relations_in, schema_of
    from fluss_spark.table_access import scan_of

    if not hasattr(frame, "_jdf"):
        raise UnsupportedOperationError(
            "A frame of Spark Connect does not show its plan.",
            hint="session.table('db.t').scan(...).explain() describes one scan in the same way",
        )
    if frame.isStreaming:
        raise UnsupportedOperationError(
            "A stream has no scan to explain: each micro-batch is one.",
            hint="query.lastProgress names the table and the offset of each bucket",
        )
    parallelism = _parallelism_of(frame.sparkSession)
    texts = []
    for relation in relations_in(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001 - its only way
        options = read_options(options_of(relation), what="read")
        # Spark's planner is another process, in which the active session of this one is unknown.
        settings = resolve(options.settings, with_active=False).config.written()
        options = replace(options, settings=settings)
        declared = schema_of(relation)
        scan = scan_of(options, columns=declared.names)
        tasks = len(FlussBatchReader(options, declared, parallelism).partitions())
        texts.append(f"{scan.explain()}\n  tasks: {tasks}")
    if not texts:
        raise InvalidValueError("The frame reads no table of Fluss.", hint="frame.explain()")
    return "\n".join(texts)


def _listed(columns: Sequence[str] | str) -> str:
    """Return columns as the option takes them."""
    if isinstance(columns, str):
        return columns
    for name in columns:
        if "," in name:
            raise InvalidValueError(
                f"The column {name!r} has a comma in its name, which separates columns here.",
                hint="name columns and types in spark.read.schema(...)",
                column=name,
            )
    if not columns:
        raise InvalidValueError("columns is empty.", hint="leave it out for all columns")
    return ",".join(columns)


@at_door(Door.SPARK)
def register_views(spark: SparkSession, database: str, **options: Any) -> list[str]:
    """Create a temporary view for every table of a database, in place of a catalog.

    Args:
        spark: The session.
        database: The database.
        **options: How to reach the cluster, as for `format("fluss")`.

    Returns:
        The views' names, which are the tables'.

    Raises:
        InvalidNameError: Two tables differ in nothing but case, which Spark does not tell apart.
        DatabaseNotFoundError: There is no such database; the hint names the nearest.
    """
    if "://" in database:
        raise InvalidNameError(
            "register_views takes the name of a database, not a URL.",
            hint="register_views(spark, 'db', **{'bootstrap.servers': 'host:9123'})",
        )
    parsed = read_options(
        {"path": database, **{k: _text(v) for k, v in options.items()}}, what="read"
    )
    from fluss_spark.first_connection import shared_session  # heavy; planners import this file, too

    # As another process would, without the active session of this one.
    names = shared_session(parsed.settings, with_active=False).tables(database)
    _check_views(spark, database, names)
    for name in names:
        view = f"`{name.replace('`', '``')}`"
        table(spark, f"{database}.{name}", **options).createOrReplaceTempView(view)
    return names


def _check_views(spark: SparkSession, database: str, names: Sequence[str]) -> None:
    """Refuse tables of which one view would replace the other."""
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
                "under another name, for each one you need; or spark.sql.caseSensitive=true",
                name=name,
            )


@at_door(Door.SPARK)
def upsert_batches(name: str, **options: Any) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that upserts micro-batches, for queries in update mode.

    Args:
        name: The primary-key table. A log is refused: repeated rows would be there twice.
        **options: Further options of `format("fluss")`.
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
                # The text that Spark recognises. In the long text of the error it would search for
                # it with a recursive expression, and overflow Java's stack.
                raise InterruptedError(_INTERRUPTED) from None
            raise

    return upsert


def _is_interrupt(error: Exception) -> bool:
    """Return whether the query was stopped during the write."""
    try:
        raised: Any = error.java_exception  # type: ignore[attr-defined] # of Py4JJavaError alone
        return bool(raised.getClass().getName() == "java.lang.InterruptedException")
    except Exception:  # noqa: BLE001 - it is another error, and stays what it is
        return False


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
