"""What hints say at each door: texts by key, and by the door or the frame in use.

A hint that is right at every door is a plain text beside its error. A hint that names a method, an
option or a type has another text at each door: a session has no `new_upsert`, and a user of Polars
has no `column.cast`. Such a hint is a `Hint` with a key; its texts are in the tables here. An error
learns its door where it leaves (`FlussError.add_context(door=...)`), and its hint is rendered then.

In the texts, braces hold facts of the hint, or an option of a scan with its value:
`{mode:changelog}` is `mode='changelog'` in Python and `option('mode', 'changelog')` in Spark.

There are two kinds of keys. What to *call* depends on the door. What to do with *data* depends on
the frame that was given, as far as the door shows frames to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final


class Door(StrEnum):
    """Through what the caller uses this package."""

    CLIENT = "client"
    AIO = "aio"
    SESSION = "session"
    PANDAS = "pandas"
    POLARS = "polars"
    DUCKDB = "duckdb"
    SPARK = "spark"
    CLI = "cli"


class FrameKind(StrEnum):
    """What kind of data the caller gave, or reads."""

    ARROW = "arrow"
    ROWS = "rows"
    PANDAS = "pandas"
    POLARS = "polars"
    DUCKDB = "duckdb"
    SPARK = "spark"
    FILE = "file"


# Where a table has no text for a door, the text of this one is right there, too.
DOOR_FALL_BACKS: Final[Mapping[Door, Door]] = MappingProxyType(
    {
        Door.AIO: Door.CLIENT,
        Door.PANDAS: Door.SESSION,
        Door.POLARS: Door.SESSION,
        Door.DUCKDB: Door.SESSION,
    }
)
FRAME_FALL_BACKS: Final[Mapping[FrameKind, FrameKind]] = MappingProxyType(
    {FrameKind.ROWS: FrameKind.ARROW}
)
# The frames of doors whose callers hold no other; elsewhere the frame is the one that was given.
_FRAME_OF_DOOR: Final[Mapping[Door, FrameKind]] = MappingProxyType(
    {
        Door.PANDAS: FrameKind.PANDAS,
        Door.POLARS: FrameKind.POLARS,
        Door.DUCKDB: FrameKind.DUCKDB,
        Door.SPARK: FrameKind.SPARK,
        Door.CLI: FrameKind.FILE,
    }
)


class Hint:
    """A hint by key, with the facts its texts name.

    Args:
        key: A key of `CALL_HINTS` or `DATA_HINTS`.
        facts: What stands in braces in the texts.
    """

    __slots__ = ("facts", "key")

    def __init__(self, key: HintKey, **facts: Any) -> None:
        self.key = key
        self.facts = facts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hint) and (self.key, self.facts) == (other.key, other.facts)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Hint({self.key!s}, {self.facts})"


class HintKey(StrEnum):
    """Every key; each has its texts in exactly one of the tables below."""

    # What to call.
    UPSERT_INSTEAD = "upsert_instead"
    APPEND_INSTEAD = "append_instead"
    CHANGELOG_OR_AS_OF = "changelog_or_as_of"
    OFFSETS_OF_BUCKETS = "offsets_of_buckets"
    BEGIN_WHERE_THE_LOG_DOES = "begin_where_the_log_does"
    # What to do with data.
    ADD_COLUMN = "add_column"
    ADD_COLUMN_OF_NULLS = "add_column_of_nulls"
    CAST_COLUMN = "cast_column"


CALL_HINTS: Final[Mapping[HintKey, Mapping[Door, str]]] = MappingProxyType(
    {
        HintKey.UPSERT_INSTEAD: {
            Door.CLIENT: "Use table.new_upsert(): it inserts, and replaces by key.",
            Door.SESSION: "Use session.upsert({table!r}, ...) or table.upsert(...): it inserts, "
            "and replaces by key.",
            Door.PANDAS: "Use df.fluss.upsert({table!r}): it inserts, and replaces by key.",
            Door.POLARS: "Use df.fluss.upsert({table!r}): it inserts, and replaces by key.",
            Door.DUCKDB: "Use fluss_duckdb.upsert({table!r}, ...): it inserts, and replaces by "
            "key.",
            Door.SPARK: "Leave operation out, or say option('operation', 'upsert'): it inserts, "
            "and replaces by key.",
            Door.CLI: "`fluss import {table} FILE` upserts into such a table.",
        },
        HintKey.APPEND_INSTEAD: {
            Door.CLIENT: "Use table.new_append().",
            Door.SESSION: "Use session.append({table!r}, ...) or table.append(...).",
            Door.PANDAS: "Use df.fluss.append({table!r}).",
            Door.POLARS: "Use df.fluss.append({table!r}).",
            Door.DUCKDB: "Use fluss_duckdb.append({table!r}, ...).",
            Door.SPARK: "Leave operation out, or say option('operation', 'append').",
            Door.CLI: "`fluss import {table} FILE` appends to such a table.",
        },
        HintKey.CHANGELOG_OR_AS_OF: {
            Door.CLIENT: "say {mode:changelog} for its changes, or {as_of} for an earlier state",
            Door.SESSION: "say {mode:changelog} for its changes, or {as_of} for an earlier state",
            Door.SPARK: "load('db.table$changelog') has its changes, {as_of} an earlier state",
            Door.CLI: "say {mode:changelog} for its changes; an earlier state is for `fluss sql`",
        },
        HintKey.OFFSETS_OF_BUCKETS: {
            Door.CLIENT: "write {{bucket: offset}}, or {{(partition, bucket): offset}} where the "
            "table is partitioned",
            Door.SESSION: "write {{bucket: offset}}, or {{(partition, bucket): offset}} where the "
            "table is partitioned",
            Door.SPARK: 'write {{"0": 17}} by bucket, or {{"partition/0": 17}} where the table is '
            "partitioned",
            Door.CLI: "one offset counts for all buckets",
        },
        HintKey.BEGIN_WHERE_THE_LOG_DOES: {
            Door.CLIENT: "EARLIEST_OFFSET reads from where the log begins",
            Door.SESSION: "{on_trimmed:earliest} begins there",
            Door.SPARK: "{on_trimmed:earliest} begins there",
            Door.CLI: "--start earliest begins there",
        },
    }
)

DATA_HINTS: Final[Mapping[HintKey, Mapping[FrameKind, str]]] = MappingProxyType(
    {
        HintKey.ADD_COLUMN: {
            FrameKind.ARROW: "add it: batch.append_column({column!r}, values)",
            FrameKind.ROWS: "give {column!r} in each row",
            FrameKind.PANDAS: "add it: df[{column!r}] = ...",
            FrameKind.POLARS: "add it: df.with_columns({column}=...)",
            FrameKind.DUCKDB: 'add it: SELECT *, ... AS "{column}"',
            FrameKind.SPARK: "add it: .withColumn({column!r}, ...)",
            FrameKind.FILE: "add the column {column!r} to the file",
        },
        HintKey.ADD_COLUMN_OF_NULLS: {
            FrameKind.ARROW: "add it, as NULL where there is no value: "
            "batch.append_column({column!r}, pa.nulls(len(batch)))",
            FrameKind.ROWS: "give {column!r} in each row, as None where there is no value",
            FrameKind.PANDAS: "add it, as NULL where there is no value: df[{column!r}] = None",
            FrameKind.POLARS: "add it, as NULL where there is no value: "
            "df.with_columns(pl.lit(None).alias({column!r}))",
            FrameKind.DUCKDB: "add it, as NULL where there is no value: "
            'SELECT *, NULL AS "{column}"',
            FrameKind.SPARK: "add it, as NULL where there is no value: "
            ".withColumn({column!r}, lit(None).cast({spark!r}))",
            FrameKind.FILE: "add the column {column!r} to the file, empty where there is no value",
        },
        HintKey.CAST_COLUMN: {
            FrameKind.ARROW: "cast the column: column.cast({arrow})",
            FrameKind.ROWS: "give values of another type; {column!r} is {type}",
            FrameKind.PANDAS: "cast the column: df.astype({{{column!r}: {pandas!r}}})",
            FrameKind.POLARS: "cast the column: df.with_columns(pl.col({column!r}).cast({polars}))",
            FrameKind.DUCKDB: 'cast the column: CAST("{column}" AS {duckdb})',
            FrameKind.SPARK: "cast the column: .withColumn({column!r}, "
            "col({column!r}).cast({spark!r}))",
            FrameKind.FILE: "the column {column!r} of the file must hold values of {type}",
        },
    }
)


def render(hint: str | Hint, door: Door | None = None, frame: FrameKind | None = None) -> str:
    """The text of a hint.

    Args:
        hint: A text, or a key with its facts.
        door: The door; the documented dialect where none is known.
        frame: The kind of frame that the caller gave; Arrow where none is known.
    """
    if isinstance(hint, str):
        return hint
    door = door or Door.CLIENT
    return _text_of(hint.key, door, frame).format_map(_Facts(hint.facts, door))


class _Facts(dict[str, Any]):
    """The facts of a hint; other names are options of a scan, written as the door takes them."""

    def __init__(self, facts: Mapping[str, Any], door: Door) -> None:
        super().__init__(facts)
        self._door = door

    def __missing__(self, name: str) -> _Option:
        return _Option(name, self._door)


class _Option:
    """`{mode:changelog}` in a text: `mode='changelog'`, `option('mode', 'changelog')` and so on."""

    def __init__(self, name: str, door: Door) -> None:
        self._name = name
        self._door = door

    def __format__(self, value: str) -> str:
        name, door = self._name, self._door
        written = value if value.startswith("[") else repr(value)
        if door is Door.SPARK:
            return f"option({name!r}, {written if value else '...'})"
        if door is Door.CLI and name in _CLI_OPTIONS:
            return f"--{name} {value or '...'}"
        if door in {Door.DUCKDB, Door.CLI}:  # what no command offers, `fluss sql` does
            return f"{name} := {written if value else '...'}"
        return f"{name}={written if value else ''}"


_CLI_OPTIONS: Final = frozenset({"columns", "start", "end", "mode"})


def _text_of(key: HintKey, door: Door, frame: FrameKind | None) -> str:
    if key in CALL_HINTS:
        by_door = CALL_HINTS[key]
        return by_door[door] if door in by_door else by_door[DOOR_FALL_BACKS[door]]
    kind = _FRAME_OF_DOOR.get(door) or frame or FrameKind.ARROW
    by_frame = DATA_HINTS[key]
    return by_frame[kind] if kind in by_frame else by_frame[FRAME_FALL_BACKS[kind]]
