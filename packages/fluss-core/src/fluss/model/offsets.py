"""Where reading begins: names for offsets that only the server can resolve.

Programs give it in four ways, from four generations of documents: an `OffsetSpec`, an
`OffsetType`, a text, or keywords. `offset_spec` accepts them all and returns an `OffsetSpec`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean

EARLIEST_OFFSET = -2
LATEST_OFFSET = -1

TIMESTAMP_MS_MAX = 2**63 - 1


class OffsetType(StrEnum):
    """Which end of the log, or a time in it."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True, repr=False)
class OffsetSpec:
    """An offset by its meaning: the earliest, the latest, or the first at or after a time.

    Example:
        >>> OffsetSpec.timestamp(1_704_067_200_000)
        OffsetSpec.timestamp(1704067200000)
    """

    type: OffsetType
    timestamp_ms: int | None = None

    if TYPE_CHECKING:
        Earliest: ClassVar[OffsetSpec]
        Latest: ClassVar[OffsetSpec]

    def __post_init__(self) -> None:
        if (self.type is OffsetType.TIMESTAMP) != (self.timestamp_ms is not None):
            raise InvalidValueError(
                f"An offset by {self.type} is given with the time {self.timestamp_ms!r}.",
                hint="a time belongs to 'timestamp', and only to it",
            )
        if self.timestamp_ms is not None and not 0 <= self.timestamp_ms <= TIMESTAMP_MS_MAX:
            raise InvalidValueError(
                f"The time {self.timestamp_ms} is not one in milliseconds since 1970."
            )

    @staticmethod
    def earliest() -> OffsetSpec:
        """Return the first offset that is still retained."""
        return OffsetSpec.Earliest

    @staticmethod
    def latest() -> OffsetSpec:
        """Return the offset of the next row."""
        return OffsetSpec.Latest

    @staticmethod
    def timestamp(ts: int) -> OffsetSpec:
        """Return the first offset at or after a time, in milliseconds since 1970 in UTC."""
        return OffsetSpec(OffsetType.TIMESTAMP, _milliseconds(ts))

    Timestamp = timestamp

    def __repr__(self) -> str:
        shown = "" if self.timestamp_ms is None else self.timestamp_ms
        return f"OffsetSpec.{self.type}({shown})"


OffsetSpec.Earliest = OffsetSpec(OffsetType.EARLIEST)
OffsetSpec.Latest = OffsetSpec(OffsetType.LATEST)


def offset_spec(
    spec: OffsetSpec | OffsetType | str | int | datetime | None = None,
    *,
    offset_type: OffsetType | str | None = None,
    timestamp: int | datetime | None = None,
) -> OffsetSpec:
    """Return the requested offset, given in any of the four ways.

    Args:
        spec: An `OffsetSpec`, an `OffsetType`, its text, a time in milliseconds or with a zone,
            or `EARLIEST_OFFSET` or `LATEST_OFFSET`.
        offset_type: The type alone, as in the first documents.
        timestamp: The time that belongs to the type `timestamp`.

    Raises:
        InvalidValueError: When no offset is given, or two that differ.
    """
    if spec is not None and offset_type is not None:
        raise InvalidValueError(
            f"The offset is given twice: as {spec!r} and as offset_type={offset_type!r}.",
            hint="leave one of them out",
        )
    asked = spec if spec is not None else offset_type
    if isinstance(asked, str):
        return _of_type(asked, timestamp)
    if asked is not None and timestamp is not None:
        raise InvalidValueError(f"{asked!r} and timestamp={timestamp!r} are both given.")
    if isinstance(asked, OffsetSpec):
        return asked
    if asked is None and timestamp is None:
        raise InvalidValueError("No offset is given.", hint="pass OffsetSpec.latest(), for example")
    if asked is None:
        return OffsetSpec.timestamp(_milliseconds(timestamp))
    if asked == EARLIEST_OFFSET:
        return OffsetSpec.Earliest
    if asked == LATEST_OFFSET:
        return OffsetSpec.Latest
    return OffsetSpec.timestamp(_milliseconds(asked))


def _of_type(text: str, timestamp: int | datetime | None) -> OffsetSpec:
    folded = text.strip().lower()
    known = [each.value for each in OffsetType]
    if folded not in known:
        raise InvalidValueError(
            f"{text!r} is not a kind of offset.",
            hint=did_you_mean(text, known) or f"write one of {', '.join(known)}",
        )
    if folded == OffsetType.TIMESTAMP and timestamp is None:
        raise InvalidValueError(
            "The offset is to be found by a time, and no time is given.",
            hint="add timestamp=, in milliseconds since 1970",
        )
    return OffsetSpec(OffsetType(folded), None if timestamp is None else _milliseconds(timestamp))


def _milliseconds(value: object) -> int:
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise InvalidValueError(
                f"The time {value} has no zone.",
                hint="say which: value.replace(tzinfo=timezone.utc), or value.astimezone()",
            )
        return (value - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValueError(f"{value!r} is not a time in milliseconds since 1970.")
    return value


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
