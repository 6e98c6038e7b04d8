"""The names of formats, as options take them; loads no library."""

from __future__ import annotations

from enum import StrEnum


class OutputFormat(StrEnum):
    """How rows are written to the standard output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


class FileFormat(StrEnum):
    """The format of a file of rows."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"
