"""A Spark driver made to be killed: streams files into three tables until it is told to stop.

Run as a program: `spark_kill_driver.py BOOTSTRAP DATABASE FOLDER`. The rows of the files in
`FOLDER/source` go into the log `exact`, into the log `naive`, where exactly once is switched off,
and into the primary-key table `keyed`. Queries that fail are started again from their checkpoints.
Between rows the tasks pause, so that most of the time some of them have written and others have
not. Says `ready` when each query has written something, and ends when there is a file `stop`.
"""

from __future__ import annotations

import os
import random
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

FILES_PER_TRIGGER = 2
TARGETS = {"exact": "auto", "naive": "never", "keyed": "auto"}
PAUSE_S = 0.12


def trickle(batches):
    """Hand rows on, a little at a time."""
    rng = random.Random()
    for each in batches:
        time.sleep(rng.random() * PAUSE_S)
        yield each


def has_begun(query):
    """Whether a query has written something, or found nothing to write."""
    return query.lastProgress or query.status["message"].startswith("Waiting")


def say(line):
    """Have it in the log at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(bootstrap: str, database: str, folder: Path) -> None:
    """Run the queries."""
    import fluss_spark
    from tests.support.servers.local_spark import SETTINGS

    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SETTINGS | {
        "spark.eventLog.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # How long a Python process may take to begin, on a machine that has much else to do.
        "spark.python.authenticate.socketTimeout": "300s",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = fluss_spark.session(
            "kills", master="local[4,4]", **{k.replace(".", "__"): v for k, v in conf.items()}
        )
    # Files, because Spark gives the process of a Python source 10 s to begin, whatever the machine
    # has to do besides; a query that cannot begin shows nothing of its sink.
    source = (
        spark.readStream.schema("id bigint")
        .option("maxFilesPerTrigger", FILES_PER_TRIGGER)
        .parquet(str(folder / "source"))
        .selectExpr("id", "concat(cast(id as string), repeat('x', 1000)) text")
    )
    rows = source.mapInArrow(trickle, source.schema)

    def start(name: str):
        writer = rows.writeStream.format("fluss").option("bootstrap.servers", bootstrap)
        return (
            writer.option("exactlyOnce", TARGETS[name])
            .option("checkpointLocation", str(folder / name))
            .start(f"{database}.{name}")
        )

    queries = {}
    for name in TARGETS:  # one after the other: each has a dozen processes to begin
        queries[name] = start(name)
        while queries[name].isActive and not has_begun(queries[name]):
            time.sleep(0.1)
    is_ready = False
    while not (folder / "stop").exists():
        for name, query in queries.items():
            if not query.isActive:
                said = str(query.exception())
                lines = [each for each in said.splitlines() if "Error" in each]
                say(f"{name} failed: {lines[-1][:300] if lines else said[:300]}")
                queries[name] = start(name)
        if not is_ready and all(map(has_begun, queries.values())):
            is_ready = True
            say("ready")
        time.sleep(0.2)
    for each in queries.values():
        each.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
