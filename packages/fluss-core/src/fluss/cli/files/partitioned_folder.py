"""Writes rows into a folder of files, one folder per value of the partition columns, as Hive does.

    orders/day=2026-01-01/country=DE/part-0.parquet

The partition columns are in the names of the folders and not in the files, as Spark, DuckDB, Polars
and Arrow write and read them. The folder gets its name when all files are complete. Few files are
open: the one unused for longest is closed, and a later row of its partition begins another part.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.cli.files.cell_texts import texts_of
from fluss.cli.files.file_formats import Write, open_file
from fluss.cli.files.format_names import FileFormat
from fluss.cli.files.input_files import hive_part
from fluss.errors import InvalidValueError, LimitExceededError
from fluss.model.did_you_mean import did_you_mean

OPEN_FILES_MAX: Final = 64
GROUP_BYTES: Final = 4 << 20  # of each open file, in memory
PARTITIONS_MAX: Final = 10_000


@contextmanager
def open_partitioned(
    folder: str, file_format: FileFormat, schema: pa.Schema, by: Sequence[str]
) -> Iterator[Write]:
    """Open a folder for batches; on an error nothing is left of it.

    Args:
        folder: Its path; it must not exist, or be empty.
        file_format: The format of the files.
        schema: The columns.
        by: The columns that choose the folder.

    Raises:
        InvalidValueError: A column is missing, or the folder has files.
    """
    _check(folder, schema, by)
    path = Path(folder).resolve()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.mkdir()
        with ExitStack() as stack:
            parts = _Parts(unfinished, file_format, schema, by)
            stack.callback(parts.close)
            yield parts.write
        if path.exists():
            path.rmdir()
        unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _check(folder: str, schema: pa.Schema, by: Sequence[str]) -> None:
    for name in by:
        if name not in schema.names:
            raise InvalidValueError(
                f"--partition-by: there is no column {name!r}.",
                hint=did_you_mean(name, schema.names),
            )
    if len(by) == len(schema.names):
        raise InvalidValueError(
            "--partition-by names all columns, and the files would have none.",
            hint="leave one of them out",
        )
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidValueError(
            f"{folder} exists already.",
            hint="name a new folder: an export writes a folder as a whole",
        )


class _Parts:
    """The open files of a folder."""

    def __init__(
        self, folder: Path, file_format: FileFormat, schema: pa.Schema, by: Sequence[str]
    ) -> None:
        self._folder, self._format, self._by = folder, file_format, list(by)
        self._schema = pa.schema([each for each in schema if each.name not in self._by])
        self._open: OrderedDict[str, tuple[ExitStack, Write]] = OrderedDict()
        self._begun: Counter[str] = Counter()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, each into its folder."""
        rows = batch.select(self._schema.names)
        for name, positions in _folders_of(batch, self._by):
            self._writer_of(name)(rows.take(positions) if positions is not None else rows)

    def close(self) -> None:
        """Complete all files."""
        while self._open:
            self._close_oldest()

    def _writer_of(self, name: str) -> Write:
        found = self._open.get(name)
        if found is not None:
            self._open.move_to_end(name)
            return found[1]
        if len(self._open) == OPEN_FILES_MAX:
            self._close_oldest()
        if len(self._begun) == PARTITIONS_MAX and name not in self._begun:
            raise LimitExceededError(
                f"--partition-by gives more than {PARTITIONS_MAX:,} folders.",
                hint="choose columns with fewer values",
            )
        path = self._folder / name / f"part-{self._begun[name]}.{self._format.value}"
        path.parent.mkdir(parents=True, exist_ok=True)
        stack = ExitStack()
        write = stack.enter_context(
            open_file(path, self._format, self._schema, group_bytes=GROUP_BYTES)
        )
        self._begun[name] += 1
        self._open[name] = (stack, write)
        return write

    def _close_oldest(self) -> None:
        _, (stack, _) = self._open.popitem(last=False)
        stack.close()


def _folders_of(batch: pa.RecordBatch, by: Sequence[str]) -> Iterator[tuple[str, pa.Array | None]]:
    """Yield the folders of the rows of a batch, and which rows belong to each; None for all."""
    if not batch.num_rows:
        return
    texts = [texts_of(batch.column(name)) for name in by]
    encoded = [pc.dictionary_encode(each, null_encoding="encode") for each in texts]
    code = np.zeros(batch.num_rows, np.int64)
    for encoded_column in encoded:
        code = code * len(encoded_column.dictionary) + np.asarray(encoded_column.indices)
    found, first = np.unique(code, return_index=True)
    for one, row in zip(found, first, strict=True):
        values = zip(by, (each[int(row)].as_py() for each in texts), strict=True)
        name = "/".join(hive_part(column, value) for column, value in values)
        yield name, None if len(found) == 1 else pa.array(np.flatnonzero(code == one))
