"""The packages as one zip file, as Spark sends them to workers where they are not installed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

from tests.support.servers.shipped import write_zip

PROGRAM = """
import fluss, pyspark_fluss
import fluss_spark.batch_reader, fluss_spark.stream_reader, fluss_spark.spark_writer
assert ".zip" in fluss.__file__ and ".zip" in fluss_spark.__file__
"""


def test_the_packages_run_from_a_zip_file(tmp_path):
    packages = write_zip(tmp_path / "fluss.zip")
    # -S: .pth files, by which this environment knows the packages, are not looked at.
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{packages}:{sysconfig.get_paths()['purelib']}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
