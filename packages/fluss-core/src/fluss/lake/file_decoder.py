"""What an engine may lend to a lake format: its own decoder of Parquet files.

A decoder turns stored bytes into Arrow, and decides nothing: which files, rows and columns are
read, what a column is called now, and which rows are deleted is decided by the lake format. So a
decoder may give up at any time, and the format reads the same rows by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa


class FileDecoder(Protocol):
    """Decodes rows of Parquet files on local disks; several threads may call it concurrently."""

    def __call__(
        self, path: str, columns: Sequence[str], *, first_row: int, rows: int
    ) -> Sequence[pa.RecordBatch]:
        """Decode consecutive rows of a file.

        Args:
            path: The path of the file.
            columns: The names of columns in the file; they are of plain types.
            first_row: The position of the first row in the file.
            rows: How many rows.

        Returns:
            All of these rows. Strings and bytes may be views.

        Raises:
            Exception: Any exception means that the rows have to be read in another way.
        """
        ...
