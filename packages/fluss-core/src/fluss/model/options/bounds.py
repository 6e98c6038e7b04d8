"""Where a scan begins and ends, as people write it: an offset, a time, an offset for each bucket.

`bound_of` parses every form into a `Bound`. A `Cursor` is the bound of a finished scan, so that the
next one begins where it ended. `scan.plan_scan` finds the offsets of a bound in each log; nothing
here knows the time of day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from fluss.errors import InvalidValueError
from fluss.hints import Hint, HintKey
from fluss.model.did_you_mean import did_you_mean
from fluss.model.offsets import EARLIEST_OFFSET, LATEST_OFFSET, OffsetSpec, OffsetType
from fluss.model.options.units import parse_duration_ms
from fluss.model.paths import TableBucket

OFFSET_MAX = 2**63 - 1
CURSOR_LENGTH_MAX = 16 * 1024 * 1024
_CURSOR_VERSION = 1


# A partition is named, or known by its id; a table without partitions has None.
BucketOffsetKey = tuple[str | int | None, int]


class BoundKind(StrEnum):
    """The kind of a bound."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    OFFSETS = "offsets"
    TIME = "time"
    AGO = "ago"
    CURSOR = "cursor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where a scan of one table ended: the next offset of each bucket.

    It is stored as text (`to_json`, `str`), and holds neither rows nor secrets. Partitions that
    were created after it are read from their beginning.

    Attributes:
        table_id: The table; one that is dropped and created again has another id.
        offsets: For each (partition id, bucket), the next offset.
    """

    table_id: int
    offsets: tuple[tuple[tuple[int | None, int], int], ...]

    @classmethod
    def of(cls, table_id: int, offsets: Mapping[TableBucket, int]) -> Self:
        """Return the cursor at these offsets."""
        places = (
            ((bucket.partition_id, bucket.bucket_id), offset)
            for bucket, offset in sorted(offsets.items())
        )
        return cls(table_id=table_id, offsets=tuple(places))

    def to_json(self) -> str:
        """Return the cursor as text."""
        rows = [[partition, bucket, offset] for (partition, bucket), offset in self.offsets]
        return json.dumps(
            {"version": _CURSOR_VERSION, "table_id": self.table_id, "offsets": rows},
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the text of a cursor.

        Raises:
            InvalidValueError: The text is not that of a cursor.
        """
        if len(text) > CURSOR_LENGTH_MAX:
            raise InvalidValueError(f"A cursor of {len(text)} characters is too long to be one.")
        try:
            found = json.loads(text)
            if found["version"] != _CURSOR_VERSION:
                raise ValueError(f"its version is {found['version']!r}")  # noqa: TRY301 - one way out
            table_id = _whole(found["table_id"])
            rows = [
                ((None if partition is None else _whole(partition), _whole(bucket)), _whole(offset))
                for partition, bucket, offset in found["offsets"]
            ]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidValueError(
                f"The text {text[:40]!r} is not a cursor: {error}.",
                hint=Hint(HintKey.CURSOR_OF_A_SCAN),
            ) from None
        return cls(table_id=table_id, offsets=tuple(rows))

    def __str__(self) -> str:
        return self.to_json()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One end of a scan.

    Attributes:
        kind: Which of the following it is.
        number: The offset, the time in milliseconds since 1970, or how many milliseconds ago.
        offsets: For kind `offsets`: an offset for each (partition, bucket).
        cursor: For kind `cursor`.
    """

    kind: BoundKind
    number: int = 0
    offsets: tuple[tuple[BucketOffsetKey, int], ...] = ()
    cursor: Cursor | None = None

    @property
    def is_time(self) -> bool:
        """Whether the rows' commit timestamps decide."""
        return self.kind in {BoundKind.TIME, BoundKind.AGO}

    def at(self, now_ms: int) -> Bound:
        """Return the same bound, with a time ago counted from `now_ms`."""
        if self.kind is not BoundKind.AGO:
            return self
        return Bound(kind=BoundKind.TIME, number=max(0, now_ms - self.number))

    def __str__(self) -> str:
        match self.kind:
            case BoundKind.OFFSET:
                return f"offset {self.number}"
            case BoundKind.TIME:
                return _moment(self.number)
            case BoundKind.AGO:
                return f"{self.number} ms ago"
            case BoundKind.OFFSETS:
                return f"offsets of {len(self.offsets)} buckets"
            case _:
                return self.kind.value


EARLIEST = Bound(kind=BoundKind.EARLIEST)
LATEST = Bound(kind=BoundKind.LATEST)


def bound_of(value: Any, name: str) -> Bound:
    """Parse a bound.

    Args:
        value: One of the forms that `HintKey.SCAN_POSITION` lists.
        name: The name of the option, for messages.

    Raises:
        InvalidValueError: The value has none of these forms.
    """
    match value:
        case Bound():
            return value
        case Cursor():
            return Bound(kind=BoundKind.CURSOR, cursor=value)
        case OffsetSpec():
            return _of_spec(value)
        case bool():
            raise _refused(value, name)
        case OffsetType() | str():
            return _of_text(str(value), name)
        case int():
            return _of_offset(value, name)
        case datetime():
            return Bound(kind=BoundKind.TIME, number=_milliseconds(value, name))
        case timedelta():
            ago = abs(value) // timedelta(milliseconds=1)
            return Bound(kind=BoundKind.AGO, number=ago)
        case Mapping():
            return _of_mapping(value, name)
        case _:
            rows = _rows_of(value)
            if rows is None:
                raise _refused(value, name)
            return _of_rows(rows, name)


def _rows_of(value: Any) -> Sequence[Any] | None:
    """The rows of a frame of offsets; None for anything else."""
    for method in ("to_pylist", "to_dicts"):  # of Arrow and Polars
        if hasattr(value, method):
            rows: Sequence[Any] = getattr(value, method)()
            return rows
    return value if isinstance(value, list | tuple) else None


def _of_rows(rows: Sequence[Any], name: str) -> Bound:
    """Parse the ends of buckets, as `table.offsets()` gives them."""
    offsets = {}
    for row in rows:
        if not isinstance(row, Mapping) or not {"bucket", "end"} <= row.keys():
            raise _refused(
                row, name, "give table.offsets(): its columns are partition, bucket, end"
            )
        partition = row.get("partition")
        # pandas has a NaN for the partition of a table that has none.
        offsets[None if isinstance(partition, float) else partition, row["bucket"]] = row["end"]
    return _of_mapping(offsets, name)


def _of_spec(spec: OffsetSpec) -> Bound:
    if spec.timestamp_ms is not None:
        return Bound(kind=BoundKind.TIME, number=spec.timestamp_ms)
    return EARLIEST if spec.type is OffsetType.EARLIEST else LATEST


def _of_text(given: str, name: str) -> Bound:
    text = given.strip()
    folded = text.lower()
    if folded in {"earliest", "latest"}:
        return EARLIEST if folded == "earliest" else LATEST
    if text.startswith("{"):
        return Bound(kind=BoundKind.CURSOR, cursor=Cursor.from_json(text))
    if text.isascii() and text.isdecimal() and len(text) < len(str(OFFSET_MAX)):
        return _of_offset(int(text), name)
    if text.startswith("-"):
        try:
            return Bound(kind=BoundKind.AGO, number=parse_duration_ms(text[1:]))
        except ValueError:
            raise _refused(given, name) from None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = did_you_mean(folded, ["earliest", "latest"])
        raise _refused(given, name, hint) from None
    return Bound(kind=BoundKind.TIME, number=_milliseconds(moment, name))


def _of_offset(offset: int, name: str) -> Bound:
    if offset == EARLIEST_OFFSET:
        return EARLIEST
    if offset == LATEST_OFFSET:
        return LATEST
    if not 0 <= offset <= OFFSET_MAX:
        raise _refused(offset, name)
    return Bound(kind=BoundKind.OFFSET, number=offset)


def _of_mapping(offsets: Mapping[Any, Any], name: str) -> Bound:
    places: dict[BucketOffsetKey, int] = {}
    for key, offset in offsets.items():
        match key:
            case TableBucket():
                place: BucketOffsetKey = (key.partition_id, key.bucket_id)
            case (str() | int() | None as partition, int() as bucket):
                place = (partition, bucket)
            case int() if not isinstance(key, bool):
                place = (None, key)
            case _:
                raise _refused({key: offset}, name)
        is_whole = isinstance(offset, int) and not isinstance(offset, bool)
        if not is_whole or not EARLIEST_OFFSET <= offset <= OFFSET_MAX:
            raise _refused({key: offset}, name)
        places[place] = offset
    return Bound(kind=BoundKind.OFFSETS, offsets=tuple(places.items()))


def _milliseconds(moment: datetime, name: str) -> int:
    if moment.utcoffset() is None:
        raise InvalidValueError(
            f"{name} is the time {moment}, which has no zone.",
            hint=Hint(HintKey.SAY_ZONE),
        )
    milliseconds = -((_EPOCH - moment) // timedelta(milliseconds=1))  # rounded up: not earlier
    if milliseconds < 0:
        raise InvalidValueError(
            f"{name} is the time {moment}, which is before 1970.",
            hint="'earliest' is where the log begins",
        )
    return milliseconds


def _moment(timestamp_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"{timestamp_ms} ms after 1970"


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= OFFSET_MAX:
        raise ValueError(f"{value!r} is not a number from 0 on")
    return value


def _refused(value: object, name: str, hint: str | None = None) -> InvalidValueError:
    return InvalidValueError(
        f"{name}={value!r} does not say where a scan {'begins' if name == 'start' else 'ends'}.",
        hint=hint or Hint(HintKey.SCAN_POSITION),
        option=name,
    )


_EPOCH = datetime.fromtimestamp(0, UTC)
