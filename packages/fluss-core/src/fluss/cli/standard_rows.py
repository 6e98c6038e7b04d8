"""Rows from the standard input, written as they come: `tail -f log | fluss insert db.t -`.

JSON lines are read as far as they are there, so a row is not kept back until others follow. CSV is
read in blocks.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa

from fluss.cli.files.byte_sources import STANDARD, ByteSource
from fluss.cli.files.format_names import FileFormat
from fluss.cli.files.json_file import LINE_BYTES_MAX, LineError, json_batches, parsed_lines
from fluss.cli.files.row_files import RowFile
from fluss.errors import InvalidValueError

_NAME: Final = "the standard input"
_BLOCK_BYTES: Final = 1 << 20


class _LiveSource(ByteSource):
    """The standard input; a read returns what is there."""

    def read(self, size: int) -> bytes:
        """Return some of the next bytes; none at the end."""
        ahead, self._ahead = self._ahead, b""
        if ahead:
            return ahead
        found: bytes = self._stream.read(size)
        return found

    def first_line(self) -> bytes:
        """Return the first line that is not blank; `read` returns it again."""
        while b"\n" not in self._ahead.lstrip():
            if len(self._ahead) > LINE_BYTES_MAX or not (more := self._stream.read(_BLOCK_BYTES)):
                break
            self._ahead += more
        return self._ahead.lstrip().partition(b"\n")[0]


def standard_rows(
    schema: pa.Schema, file_format: FileFormat, *, optional: Collection[str], partial: bool
) -> Iterator[pa.RecordBatch]:
    """Read rows from the standard input.

    Args:
        schema: The columns of the table.
        file_format: The format of the rows.
        optional: Columns that are read only if the first row has them.
        partial: Whether that is so for all columns.

    Raises:
        InvalidValueError: A row cannot be read; the message names it.
    """
    if sys.stdin.isatty():
        sys.stderr.write("fluss: reading rows from the terminal; Ctrl-D ends them\n")
    if file_format is not FileFormat.JSON:
        with closing(RowFile(STANDARD, file_format)) as file:
            yield from file.batches(schema)
        return
    before = 0
    with closing(_LiveSource(STANDARD)) as source:
        try:
            read = _columns_of(source, schema, schema.names if partial else optional)
            for batch in json_batches(source, read, read.names):
                yield batch
                before += batch.num_rows
        except LineError as error:
            raise _located(error, before) from None


def _columns_of(source: _LiveSource, schema: pa.Schema, optional: Collection[str]) -> pa.Schema:
    """Return the columns to read: all but the optional ones that the first row lacks."""
    found = [parsed for _, parsed in parsed_lines(source.first_line())] if optional else []
    keys = found[0] if found and isinstance(found[0], dict) else {}
    return pa.schema([each for each in schema if each.name in keys or each.name not in optional])


def _located(error: LineError, before: int) -> InvalidValueError:
    column = "" if error.column is None else f", column {error.column + error.error.inside!r}"
    return InvalidValueError(
        f"{_NAME}, row {before + error.row + 1:,}{column}: {error.error.text!r} {error.error.why}.",
        hint=error.error.hint,
    )
