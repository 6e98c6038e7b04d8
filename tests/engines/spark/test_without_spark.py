"""The error where PySpark is not installed."""

from __future__ import annotations

import subprocess
import sys


def test_without_pyspark_the_import_names_the_package():
    program = """
import sys
sys.modules["pyspark"] = None
try:
    import fluss_spark
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "fluss_spark needs PySpark.\n  hint: pip install 'pyspark>=4.2'\n"
