"""Reads many rows column by column, with one position per row.

The bytes are not trusted: every step checks that each position stays inside its row. A step reads
only the rows it is given (those that are not NULL) and returns dense arrays. The codecs decide what
is read in which order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from fluss.errors import CorruptDataError
from fluss.rows.buffers.byte_runs import padded, words_of
from fluss.rows.buffers.columns import BoolArray, ByteArray, Int64Array, Values
from fluss.rows.formats.varint import (
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    read_varint_column,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """Bytes to read from, padded so that a word may be read at any position in them.

    `origin` is where byte 0 stood in what the caller handed in; errors count from there.
    """

    data: ByteArray
    length: int
    origin: int = 0


@dataclass(slots=True, kw_only=True, eq=False)
class RowCursor:
    """The next byte to read of every row. `what` names the rows in errors."""

    source: Source
    at: Int64Array
    ends: Int64Array
    what: str

    @classmethod
    def over(cls, data: ByteArray, starts: Int64Array, ends: Int64Array, *, what: str) -> Self:
        """Return a cursor over rows `data[starts[i]:ends[i]]`.

        Raises:
            CorruptDataError: A row does not lie inside the data.
        """
        outside = (starts < 0) | (ends < starts) | (ends > len(data))
        if outside.any():
            _refuse(what, starts, outside, "it does not lie inside the data")
        origin = int(starts.min(initial=len(data)))
        stop = int(ends.max(initial=origin))
        return cls(
            source=Source(data=padded(data[origin:stop]), length=stop - origin, origin=origin),
            at=starts - origin,
            ends=ends - origin,
            what=what,
        )

    @classmethod
    def inside(cls, source: Source, starts: Int64Array, lengths: Int64Array, *, what: str) -> Self:
        """Return a cursor over parts of rows whose bounds another cursor has checked."""
        return cls(source=source, at=starts.copy(), ends=starts + lengths, what=what)

    def fork(self) -> RowCursor:
        """Return another cursor at the same position, which moves independently."""
        return RowCursor(source=self.source, at=self.at.copy(), ends=self.ends, what=self.what)

    def __len__(self) -> int:
        return len(self.at)

    def position(self, rows: Int64Array | None) -> Int64Array:
        """Return where these rows stand; all of them for None. The result is the caller's own."""
        return self.at.copy() if rows is None else self.at[rows]

    def skip(self, rows: Int64Array | None, lengths: Int64Array | int, why: str = "") -> None:
        """Move these rows forward.

        Raises:
            CorruptDataError: A length is negative or leads out of its row.
        """
        left = self.ends - self.at if rows is None else self.ends[rows] - self.at[rows]
        wrong = (left < lengths) | (np.asarray(lengths) < 0)
        if wrong.any():
            at = self.position(rows)
            self.refuse(at, wrong, why or "it ends in the middle of a value", rows)
        if rows is None:
            self.at += lengths
        else:
            self.at[rows] += lengths

    def fixed(self, rows: Int64Array | None, dtype: str) -> Values:
        """Read the next value of this little-endian type in each of these rows."""
        at = self.position(rows)
        values: Values = words_of(self.source.data, dtype)[at]
        self.skip(rows, values.dtype.itemsize)
        return values

    def varints(self, rows: Int64Array | None) -> npt.NDArray[np.int32]:
        """Read the next 32-bit varint in each of these rows."""
        return self._numbers(rows, VARINT_BYTES_MAX).astype("<u4").view("<i4")

    def varlongs(self, rows: Int64Array | None) -> Int64Array:
        """Read the next 64-bit varint in each of these rows."""
        return self._numbers(rows, VARLONG_BYTES_MAX).view("<i8")

    def runs(self, rows: Int64Array | None) -> tuple[Int64Array, Int64Array]:
        """Read a varint length and its bytes in each of these rows; return starts and lengths."""
        lengths = self.varints(rows).astype(np.int64)
        starts = self.position(rows)
        self.skip(rows, lengths, "a length leads out of it")
        return starts, lengths

    def _numbers(self, rows: Int64Array | None, bytes_max: int) -> npt.NDArray[np.uint64]:
        at = self.position(rows)
        values, lengths = read_varint_column(self.source.data, at)
        if int(lengths.max(initial=0)) > bytes_max:
            self.refuse(at, lengths > bytes_max, f"no number ends within {bytes_max} bytes", rows)
        self.skip(rows, lengths)
        return values

    def finish(self) -> None:
        """Checks that every row has been read to its end."""
        left = self.at != self.ends
        if left.any():
            self.refuse(self.at, left, "bytes are left over after its last field")

    def refusal(self, rows: Int64Array | None) -> Callable[[BoolArray, str], None]:
        """`refuse` for values that begin where these rows stand now."""
        at = self.position(rows)
        return lambda wrong, why: self.refuse(at, wrong, why, rows)

    def refuse(
        self, at: Int64Array, wrong: BoolArray, why: str, rows: Int64Array | None = None
    ) -> None:
        """Raises for the first wrong row; `at` is where reading stood in each of `rows`."""
        _refuse(self.what, at + self.source.origin, wrong, why, rows)


def _refuse(
    what: str, at: Int64Array, wrong: BoolArray, why: str, rows: Int64Array | None = None
) -> None:
    first = int(np.flatnonzero(wrong)[0])
    row = first if rows is None else int(rows[first])
    raise CorruptDataError(
        f"{what} {row} cannot be read at byte {int(at[first])}: {why}.",
        what=what,
        index=row,
        at=int(at[first]),
        why=why,
    )
