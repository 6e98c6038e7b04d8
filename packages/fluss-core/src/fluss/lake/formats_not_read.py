"""What reading the lake formats would take that no package of this project offers.

The sentences are part of errors and of what `explain` says, so that a user knows which files hold
the rows, and which other program can read them.
"""

from __future__ import annotations

from typing import Final

_NEEDS: Final = {
    "paimon": "Its rows are in data files (Parquet, ORC or Avro) that the files in snapshot/, "
    "manifest/ and schema/ of the table's directory list; those of one key are merged. The package "
    "pypaimon reads them, in an environment of its own: it needs an older pyarrow than this one.",
    "hudi": "Its rows are in base files (Parquet) and in log files with the changes upon them, "
    "which the timeline in .hoodie/ lists. Flink and Spark read them.",
    "lance": "Its rows are in fragments (data/*.lance) that the manifests in _versions/ list. The "
    "package pylance reads them, without offsets and times, which Fluss does not write there.",
}


def what_it_needs(name: str) -> str:
    """Say which files a format has, and what reads them; empty for a format that is not known.

    Args:
        name: The format, as `table.datalake.format` has it.
    """
    return _NEEDS.get(name, "")
