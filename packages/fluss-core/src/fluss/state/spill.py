"""Tables on disk, divided into parts, for rows that do not fit into memory together.

A part is a file of Arrow batches in a temporary directory, which is removed with the `Spill`. The
caller assigns rows to parts; rows of one part keep their order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from fluss.records.arrow.numpy_arrays import from_numpy
from fluss.rows.buffers.columns import Int64Array

PARTS: Final = 32


class Spill:
    """`PARTS` files, written first and then read, by one thread."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="fluss-spill-")
        self._writers: dict[int, _FileWriter] = {}

    def write(self, table: pa.Table, parts: Int64Array) -> None:
        """Append rows to their parts."""
        if not table.num_rows:
            return
        # numpy sorts numbers of 16 bits in linear time.
        order = np.argsort(parts.astype(np.uint16), kind="stable")
        ordered = table.take(from_numpy(order))
        edges = np.searchsorted(parts[order], np.arange(PARTS + 1))
        for part in range(PARTS):
            start, stop = int(edges[part]), int(edges[part + 1])
            if start < stop:
                self._writer(part, table.schema).write_table(ordered.slice(start, stop - start))

    def read(self, part: int) -> Iterator[pa.Table]:
        """Read the rows of one part, to which nothing can be written afterwards."""
        writer = self._writers.get(part)
        if writer is None:
            return
        writer.close()
        with pa.OSFile(str(self._path(part))) as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])

    def close(self) -> None:
        """Remove the files. Idempotent."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._directory.cleanup()

    def _writer(self, part: int, schema: pa.Schema) -> _FileWriter:
        if part not in self._writers:
            self._writers[part] = _FileWriter(str(self._path(part)), schema)
        return self._writers[part]

    def _path(self, part: int) -> Path:
        return Path(self._directory.name) / f"{part}.arrow"


class _FileWriter:
    """A stream of batches into a file; `close` is idempotent."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._file = pa.OSFile(path, "wb")
        self._stream = pa.ipc.new_stream(self._file, schema, options=_options())
        self._is_open = True

    def write_table(self, table: pa.Table) -> None:
        self._stream.write_table(table)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._stream.close()
            self._file.close()


def _options() -> Any:
    fast = "lz4" if pa.Codec.is_available("lz4") else None
    return pa.ipc.IpcWriteOptions(compression=fast)
