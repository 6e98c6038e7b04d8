"""Says which files hold the rows of lake formats that no package of this project reads.

The sentences are part of errors and of `explain`, so that a user knows where the rows are, and
which other program can read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NEEDS: Final = {
    "paimon": "The rows are in data files (Parquet, ORC or Avro), which the files in snapshot/, "
    "manifest/ and schema/ of the table's directory list; rows with equal keys have to be merged. "
    "The package pypaimon reads them, in a separate environment: it needs an older pyarrow.",
    "hudi": "The rows are in base files (Parquet) and in log files with later changes, which the "
    "timeline in .hoodie/ of the table's directory lists. Flink and Spark read them.",
    "lance": "The rows are in fragments (data/*.lance), which the manifests in _versions/ of the "
    "table's directory list. The package pylance reads them, without buckets, offsets and times: "
    "Fluss does not write those to Lance.",
}


def what_it_needs(name: str, properties: Mapping[str, str]) -> str:
    """Say which files a format has, where they are, and what reads them.

    Args:
        name: The format, as `table.datalake.format` has it.
        properties: The properties of the table.

    Returns:
        The sentences; empty for an unknown format.
    """
    needs = _NEEDS.get(name, "")
    warehouse = properties.get(f"table.datalake.{name}.warehouse")
    if not needs or not warehouse:
        return needs
    return f"{needs} The lake's tables are in {warehouse}."
