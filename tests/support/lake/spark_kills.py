"""Kills during a round of tiering on Spark: in an executor's task, or of the driver itself.

As a program it is a driver: `spark_kills.py URL MASTER STEP VICTIM MARKER TABLE...` copies tables,
and kills at a step, once: the file MARKER says that it has happened. Tests also call `killing_task`
in a session of their own.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

# What an executor does, and before the return of which function it is killed.
TASK_STEPS = ("fetch", "write", "return")
# What the driver does next where it is killed: functions of `round_driver`.
DRIVER_STEPS = ("begin_round", "prepare_offsets", "commit_change", "_report", "Committed")


def first_time(marker: str) -> bool:
    """Make the file; return False where it exists already."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def killing_task(step: str, victim: str, marker: str) -> Callable[[bytes], bytes]:
    """The function of a task that kills at a step, for the first time that it gets there.

    Args:
        step: One of `TASK_STEPS`.
        victim: `worker` for the Python process of the task, `executor` also for the Java process
            that has started it, or a process id.
        marker: The file that is made when it happens.
    """

    def kill() -> None:
        if not first_time(marker):
            return
        if victim == "executor":
            daemon = os.getppid()
            fields = Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()
            os.kill(int(fields[1]), signal.SIGKILL)
        if victim.isdigit():
            os.kill(int(victim), signal.SIGKILL)
            return  # the task goes on without its driver
        os.kill(os.getpid(), signal.SIGKILL)

    def run(data: bytes) -> bytes:
        from fluss_lake.tiering import file_writer, write_range

        read, finish = write_range.read_range, file_writer.ParquetFile.finish

        def read_some(*given: Any) -> Any:
            for stretch in read(*given):
                yield stretch
                kill()

        def finished(*given: Any, **more: Any) -> Any:
            kill()
            return finish(*given, **more)

        if step == "fetch":
            write_range.read_range = read_some
        if step == "write":
            file_writer.ParquetFile.finish = finished
        try:
            import pickle

            task, settings, read_s_max = pickle.loads(data)  # noqa: S301 - from our own driver
            done = write_range.carry_out(task, settings, read_s_max=read_s_max)
        finally:
            write_range.read_range, file_writer.ParquetFile.finish = read, finish
        if step == "return":
            kill()
        return pickle.dumps(done)

    return run


def patch_driver(step: str) -> None:
    """Make this process kill itself where the driver of a round calls a function."""
    from fluss_lake.tiering import round_driver, worker

    def killed(*given: object, **more: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    module = worker if step == "begin_round" else round_driver
    getattr(module, step)  # the step exists
    setattr(module, step, killed)


def main(url: str, master: str, step: str, victim: str, marker: str, *tables: str) -> None:
    """Copy the tables."""
    import fluss
    import fluss_spark
    from fluss_spark import tiering
    from tests.support.servers.local_spark import SETTINGS, compiled_home

    os.environ["PYSPARK_PYTHON"] = sys.executable
    if master.startswith("local["):  # executors of their own work in Spark's own home
        folder = tempfile.mkdtemp(dir=Path(marker).parent)
        os.environ["SPARK_HOME"] = str(compiled_home(Path(folder)))
    conf = SETTINGS | {"spark.eventLog.enabled": "false"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, of the newest pandas
        spark = fluss_spark.session(
            "kills", master=master, **{key.replace(".", "__"): conf[key] for key in conf}
        )
    if step in TASK_STEPS:
        given = str(os.getpid()) if victim == "driver" else victim
        tiering._carry_out = killing_task(step, given, marker)
    elif step in DRIVER_STEPS and first_time(marker):
        patch_driver(step)
    with fluss.connect(url) as session:
        done = fluss_spark.tier(spark, list(tables), cluster=session, now=True)
    for error in done.errors.values():
        raise error
    spark.stop()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(*sys.argv[1:])
