"""The rule for time zones, for rows, frames and engines (decision 0008).

* A timestamp without a zone is in UTC where the column is TIMESTAMP_LTZ.
* A timestamp with a zone is refused where the column is TIMESTAMP, also one in UTC: it can become a
  wall clock time in more than one way, and each loses the zone.
* An engine with a time zone for timestamps without one (Spark and DuckDB have that of the session)
  is not overruled: there, such a timestamp is refused with the cast of the engine as a hint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fluss.hints import Hint, HintKey

if TYPE_CHECKING:
    import pyarrow as pa

# Why a timestamp with a zone is refused, as the end of a sentence.
ZONE_WOULD_BE_LOST: Final = "its zone would be lost"
# What to do with such timestamps, by frame.
KEEP_ZONE: Final = HintKey.WRITE_WALL_CLOCK_TIMES


def keep_zone(column: str) -> Hint:
    """Return the hint for timestamps with a zone, for a column of wall clock times."""
    return Hint(KEEP_ZONE, column=column)


def lacks_zone(given: pa.DataType, target: pa.DataType) -> bool:
    """Return whether values of one Arrow type lack a zone that the other has; also nested ones."""
    return _any_timestamp(given, target, given_has_zone=False)


def loses_zone(given: pa.DataType, target: pa.DataType) -> bool:
    """Return whether values of one Arrow type have a zone that the other lacks."""
    return _any_timestamp(given, target, given_has_zone=True)


def _any_timestamp(given: pa.DataType, target: pa.DataType, *, given_has_zone: bool) -> bool:
    from pyarrow import types

    if types.is_timestamp(given) and types.is_timestamp(target):
        has_zone = given.tz is not None
        return has_zone is given_has_zone and (target.tz is not None) is not has_zone
    return any(
        _any_timestamp(one, other, given_has_zone=given_has_zone)
        for one, other in _inner(given, target)
    )


def _inner(given: pa.DataType, target: pa.DataType) -> list[tuple[pa.DataType, pa.DataType]]:
    """Return pairs of the types inside two types; fields of structs are matched by name."""
    from pyarrow import types

    if types.is_struct(given) and types.is_struct(target):
        names = {field.name for field in given} & {field.name for field in target}
        return [(given.field(name).type, target.field(name).type) for name in sorted(names)]
    if types.is_struct(given) or types.is_struct(target) or given.num_fields != target.num_fields:
        return []
    fields = range(given.num_fields)
    return [(given.field(index).type, target.field(index).type) for index in fields]
