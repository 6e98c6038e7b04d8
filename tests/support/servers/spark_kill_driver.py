"""A Spark driver that a test kills: it streams files into three tables until it is stopped.

Run as a program: `spark_kill_driver.py BOOTSTRAP DATABASE FOLDER`. The rows of the files in
`FOLDER/source` go into the log `exact`, into the log `naive`, where exactly once is switched off,
and into the primary-key table `keyed`. Failed queries are restarted from their checkpoints. Tasks
pause between rows, so that most of the time some of them have written and others have not. The
driver logs `ready` when each query has written rows, and exits when a file `stop` exists.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

FILES_PER_TRIGGER = 2
TARGETS = {"exact": "auto", "naive": "never", "keyed": "auto"}
PAUSE_S = 0.12


def trickle(batches):
    """Yield rows in small chunks with pauses."""
    rng = random.Random()
    for batch in batches:
        time.sleep(rng.random() * PAUSE_S)
        yield batch


def has_begun(query):
    """Return whether a query has written rows, or found nothing to write."""
    return query.lastProgress or query.status["message"].startswith("Waiting")


def say(line):
    """Log a line without buffering."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(bootstrap: str, database: str, folder: Path) -> None:
    """Run the queries."""
    import fluss_spark
    from tests.support.servers.local_spark import SETTINGS, compiled_home

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(compiled_home(Path(tempfile.mkdtemp(dir=folder))))
    conf = SETTINGS | {
        "spark.eventLog.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # The start of a Python process may take long on a busy machine.
        "spark.python.authenticate.socketTimeout": "300s",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = fluss_spark.session(
            "kills", master="local[4,4]", **{k.replace(".", "__"): v for k, v in conf.items()}
        )
    # Files as the source, because Spark gives the process of a Python source 10 s to start, which
    # is too short on a busy machine; this driver tests the sink.
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
    for name in TARGETS:  # one after the other: each starts a dozen processes
        queries[name] = start(name)
        while queries[name].isActive and not has_begun(queries[name]):
            time.sleep(0.1)
    is_ready = False
    while not (folder / "stop").exists():
        for name, query in queries.items():
            if not query.isActive:
                message = str(query.exception())
                lines = [each for each in message.splitlines() if "Error" in each]
                say(f"{name} failed: {lines[-1][:300] if lines else message[:300]}")
                queries[name] = start(name)
        if not is_ready and all(map(has_begun, queries.values())):
            is_ready = True
            say("ready")
        time.sleep(0.2)
    for running in queries.values():
        running.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
