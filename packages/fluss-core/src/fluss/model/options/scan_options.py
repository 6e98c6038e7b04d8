"""The options of a scan: one table of them, the same at every door and in every engine.

`ScanOptions` is the result of checking: names are known, values are of one type each, and no two
contradict each other. `scan.plan_scan` decides what they mean for a table. A URL writes options as
text, and every option parses its text as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from fluss.errors import ConfigError, InvalidValueError
from fluss.hints import Hint, HintKey
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.bounds import Bound, BoundKind, bound_of
from fluss.model.predicates.filter_text import SqlFilter, parse_filter
from fluss.model.predicates.predicate import Predicate
from fluss.model.tables.partitions import parse_qualified_partition_name

LOG_OFFSET: Final = "_log_offset"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
BUCKET: Final = "_bucket"
PARTITION: Final = "_partition"
CHANGE_TYPE: Final = "_change_type"
METADATA_COLUMNS: Final = (LOG_OFFSET, COMMIT_TIMESTAMP, BUCKET, PARTITION, CHANGE_TYPE)
CHANGELOG_COLUMNS: Final = (CHANGE_TYPE, LOG_OFFSET, COMMIT_TIMESTAMP)
METADATA_PREFIX: Final = "_"

ROWS_MAX: Final = 2**63 - 1
PARALLEL_MAX: Final = 256


class Mode(StrEnum):
    """The kind of the rows of a scan."""

    STATE = "state"
    LOG = "log"
    CHANGELOG = "changelog"
    BINLOG = "binlog"


class Order(StrEnum):
    """The order in which rows come."""

    NONE = "none"
    BUCKET = "bucket"
    TIMESTAMP = "timestamp"


class Strategy(StrEnum):
    """How the state of a primary-key table is found."""

    SCAN_KV = "scan_kv"
    LIMIT_SCAN = "limit_scan"
    SNAPSHOT = "snapshot"
    CHANGELOG = "changelog"


class LakeUse(StrEnum):
    """Which rows of a table that is copied into a lake are read."""

    UNION = "union"
    ONLY = "only"
    OFF = "off"


# How partitions are chosen: a name, or the values that some partition keys may have.
PartitionChoice = str | tuple[tuple[str, tuple[Any, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """The options of one scan; `scan_options` parses them.

    Each attribute is described in `SCAN_OPTIONS`. They are applied in one order, at every door and
    in every engine: `partitions`, `start` and `end` (or `as_of`) first, then `tail`, then `filter`,
    then `order` and `limit`. The condition and the limit of an engine come after all of them
    (`scan.narrow`).
    """

    columns: tuple[str, ...] | None = None
    filter: Predicate | SqlFilter | None = None
    start: Bound | None = None
    end: Bound | None = None
    tail: int | None = None
    limit: int | None = None
    partitions: tuple[PartitionChoice, ...] | None = None
    mode: Mode | None = None
    as_of: Bound | None = None
    with_metadata: tuple[str, ...] = ()
    order: Order = Order.NONE
    max_parallel: int | None = None
    missing_partitions: str = "error"
    on_trimmed: str = "error"
    strategy: Strategy | None = None
    lake: LakeUse | None = None
    metadata_prefix: str = METADATA_PREFIX

    @property
    def metadata_names(self) -> dict[str, str]:
        """The metadata columns by the names they have in this scan."""
        return {self.metadata_prefix + each[1:]: each for each in METADATA_COLUMNS}


def scan_options(given: Mapping[str, Any]) -> ScanOptions:
    """Parse the options of a scan; an option that is None is not set.

    Raises:
        ConfigError: There is no option of a name; the hint names the nearest.
        InvalidValueError: A value is not one its option takes, or two contradict each other.
    """
    return with_options(ScanOptions(), given)


def with_options(options: ScanOptions, given: Mapping[str, Any]) -> ScanOptions:
    """Change some options of a scan; None sets an option back.

    Raises:
        ConfigError: There is no option of a name; the hint names the nearest.
        InvalidValueError: A value is not one its option takes, or two contradict each other.
    """
    checked: dict[str, Any] = {}
    for name, value in given.items():
        option = SCAN_OPTIONS.get(name)
        if option is None:
            raise unknown_option(name)
        default = ScanOptions.__dataclass_fields__[name].default
        checked[name] = default if value is None else option.parse(value, name)
    changed = replace(options, **checked)
    _check_metadata(changed)
    _check_together(changed)
    return changed


def unknown_option(name: str) -> ConfigError:
    """Return the error for an option that no scan has."""
    if name in {"session", "connection", "client"}:
        return ConfigError(
            f"A scan has no option {name!r}.", hint=Hint(HintKey.TABLE_OF_SESSION), key=name
        )
    hint = did_you_mean(name, SCAN_OPTIONS) or f"the options are {', '.join(SCAN_OPTIONS)}"
    return ConfigError(f"A scan has no option {name!r}.", hint=hint, key=name)


# --- what each option takes -----------------------------------------------------------------------


def _names(value: Any, name: str) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, Iterable):
        raise InvalidValueError(f"{name}={value!r} is not a list of columns.", option=name)
    names = tuple(each.strip() if isinstance(value, str) else each for each in listed)
    for column in names:
        if not isinstance(column, str):
            raise InvalidValueError(f"{name} names the column {column!r}, which is no text.")
    twice = [each for each in names if names.count(each) > 1]
    if twice:
        raise InvalidValueError(f"{name} names the column {twice[0]!r} twice.", option=name)
    return names


def is_arrow_expression(value: Any) -> bool:
    """Return whether a value is an expression of pyarrow; pyarrow is not loaded to find out."""
    kind = type(value)
    return kind.__name__ == "Expression" and kind.__module__.partition(".")[0] == "pyarrow"


def _predicate(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return parse_filter(value)
    if isinstance(value, Predicate | SqlFilter) or is_arrow_expression(value):
        # SQL and expressions become predicates when the columns of the table are known.
        return value
    raise InvalidValueError(
        f"{name} is a condition in SQL or a predicate, not {value!r}.",
        hint=Hint(HintKey.WRITE_PREDICATE),
        option=name,
    )


def _whole(low: int, high: int, what: str) -> Callable[[Any, str], int]:
    def parse(value: Any, name: str) -> int:
        number = _number(value)
        if number is None or not low <= number <= high:
            raise InvalidValueError(f"{name}={value!r} is not {what}.", option=name, value=value)
        return number

    return parse


_rows = _whole(0, ROWS_MAX, "a number of rows from 0 on")
_parallel = _whole(1, PARALLEL_MAX, f"a number from 1 to {PARALLEL_MAX}")


def _number(value: Any) -> int | None:
    """Return a whole number, or the text of one; None for any other value."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value[: len(str(ROWS_MAX))])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _partitions(value: Any, name: str) -> tuple[PartitionChoice, ...]:
    if isinstance(value, str):
        return tuple(_partition(each.strip(), name) for each in value.split(","))
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        return (_partition(value, name),)
    return tuple(_partition(each, name) for each in value)


def _partition(value: Any, name: str) -> PartitionChoice:
    if isinstance(value, str):
        if "=" not in value:
            return value
        spec = parse_qualified_partition_name(value).spec_map
        return tuple((key, (text,)) for key, text in spec.items())
    if isinstance(value, Mapping):
        return tuple(
            (str(key), tuple(each) if isinstance(each, list | tuple | set | frozenset) else (each,))
            for key, each in value.items()
        )
    raise InvalidValueError(
        f"{name} names the partition {value!r}.",
        hint=Hint(HintKey.PARTITION_CHOICE),
        option=name,
    )


def _one_of(members: type[StrEnum]) -> Callable[[Any, str], Any]:
    def parse(value: Any, name: str) -> Any:
        known = [each.value for each in members]
        folded = value.lower() if isinstance(value, str) else ""
        if folded not in known:
            raise InvalidValueError(
                f"{name}={value!r} is none of {', '.join(known)}.",
                hint=did_you_mean(folded, known) or "write one of them",
                option=name,
            )
        return members(folded)

    return parse


def _remedy(other: str) -> Callable[[Any, str], str]:
    def parse(value: Any, name: str) -> str:
        if value not in {"error", other}:
            raise InvalidValueError(
                f"{name}={value!r} is neither 'error' nor {other!r}.", option=name
            )
        return str(value)

    return parse


def _metadata(value: Any, name: str) -> tuple[str, ...]:
    if value is True or (isinstance(value, str) and value.lower() == "true"):
        return METADATA_COLUMNS
    if value is False or (isinstance(value, str) and value.lower() == "false"):
        return ()
    return _names(value, name)


def _prefix(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidValueError(f"{name}={value!r} is not the beginning of a column's name.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOption:
    """One option.

    Attributes:
        parse: How its values are parsed.
        doc: What it does.
        takes: The type of its values, as `model.options.argument_types` names it.
    """

    parse: Callable[[Any, str], Any]
    doc: str
    takes: str


SCAN_OPTIONS: Final[Mapping[str, ScanOption]] = {
    "columns": ScanOption(
        takes="Names",
        parse=_names,
        doc="The columns that are read, in this order; metadata columns may be among them.",
    ),
    "filter": ScanOption(
        takes="Condition",
        parse=_predicate,
        doc="The condition that rows fulfil: SQL such as `id > 5 AND kind IN ('a', 'b')`, a "
        "predicate of `col()`, or an expression of pyarrow.",
    ),
    "start": ScanOption(
        takes="Place",
        parse=bound_of,
        doc="The start of the scan, inclusive: an offset, a time, `table.offsets()`, or the "
        "cursor of another scan.",
    ),
    "end": ScanOption(
        takes="Place",
        parse=bound_of,
        doc="The end of the scan, exclusive; by default the end of the log when the scan is "
        "planned.",
    ),
    "tail": ScanOption(
        takes="int",
        parse=_rows,
        doc="The maximum number of rows in all: the last ones by time, bucket and offset, "
        "before the filter is applied.",
    ),
    "limit": ScanOption(
        takes="int",
        parse=_rows,
        doc="The maximum number of rows in all, after the filter is applied.",
    ),
    "partitions": ScanOption(
        takes="Partitions",
        parse=_partitions,
        doc="The partitions to read: names, 'key=value', or {key: value or values}.",
    ),
    "mode": ScanOption(
        takes="Mode | ModeName",
        parse=_one_of(Mode),
        doc="What is read: state (the rows of a primary-key table), log, changelog, or binlog.",
    ),
    "as_of": ScanOption(
        takes="Place",
        parse=bound_of,
        doc="Read the state, or the log, as it was at an offset, a time, a cursor or "
        "`table.offsets()`.",
    ),
    "with_metadata": ScanOption(
        takes="bool | Names",
        parse=_metadata,
        doc=f"True, or which of {', '.join(METADATA_COLUMNS)} to add.",
    ),
    "order": ScanOption(
        takes="Order | OrderName",
        parse=_one_of(Order),
        doc="The order of the rows: none (as they arrive), bucket (bucket by bucket), or "
        "timestamp.",
    ),
    "max_parallel": ScanOption(
        takes="int", parse=_parallel, doc="The maximum number of splits that are read concurrently."
    ),
    "missing_partitions": ScanOption(
        takes='Literal["error", "skip"]',
        parse=_remedy("skip"),
        doc="What to do if a partition does not exist any more: error, or skip.",
    ),
    "on_trimmed": ScanOption(
        takes='Literal["error", "earliest"]',
        parse=_remedy("earliest"),
        doc="What to do if rows after the start were removed: error, or earliest, which begins "
        "at the first offset that is left.",
    ),
    "strategy": ScanOption(
        takes="Strategy | StrategyName",
        parse=_one_of(Strategy),
        doc="The way to read the state: scan_kv, limit_scan, snapshot or changelog; by default "
        "the fastest one that the servers support.",
    ),
    "lake": ScanOption(
        takes="LakeUse | LakeName",
        parse=_one_of(LakeUse),
        doc="What is read of a table with a lake: union (the rows in the lake and the later "
        "rows of the log), only (the rows in the lake), or off (the rows in Fluss). By "
        "default union, if the lake has a snapshot and can be read.",
    ),
    "metadata_prefix": ScanOption(
        takes="str",
        parse=_prefix,
        doc="The prefix of the names of metadata columns, instead of '_'.",
    ),
}

# A log that is followed has no end, so it has no options that need one.
FOLLOW_OPTIONS: Final = tuple(
    name for name in SCAN_OPTIONS if name not in {"end", "tail", "limit", "as_of", "order", "lake"}
)


# --- options that exclude each other --------------------------------------------------------------


def _check_metadata(options: ScanOptions) -> None:
    names = options.metadata_names
    for column in options.with_metadata:
        if column not in names and column not in METADATA_COLUMNS:
            hint = did_you_mean(column, names) or f"they are {', '.join(names)}"
            raise InvalidValueError(
                f"with_metadata names {column!r}, which is no metadata column.", hint=hint
            )


def _check_together(options: ScanOptions) -> None:
    for first, second in (("as_of", "end"), ("as_of", "start"), ("as_of", "tail")):
        if getattr(options, first) is not None and getattr(options, second) is not None:
            raise _contradiction(first, second)
    if options.mode is Mode.STATE:
        for name in ("start", "end", "tail"):
            if getattr(options, name) is not None:
                raise InvalidValueError(
                    f"{name}= cuts a log, and mode='state' has none to cut.",
                    hint=Hint(HintKey.CHANGELOG_OR_AS_OF),
                    option=name,
                )
    check_order(options.start, options.end)


def check_order(start: Bound | None, end: Bound | None) -> None:
    """Refuse a scan that begins after its end, as far as the two can be compared.

    Raises:
        InvalidValueError: It begins after its end.
    """
    if start is None or end is None or start.kind is not end.kind:
        return
    if start.kind in {BoundKind.OFFSET, BoundKind.TIME} and start.number > end.number:
        raise InvalidValueError(f"The scan begins at {start} and ends before that, at {end}.")
    if start.kind is BoundKind.AGO and start.number < end.number:
        raise InvalidValueError(f"The scan begins {start} and ends before that, {end}.")
    ends = dict(end.offsets)
    for place, first in start.offsets:
        if 0 <= ends.get(place, first) < first:
            _, bucket = place
            raise InvalidValueError(
                f"The scan of bucket {bucket} begins at offset {first} and ends before that, at "
                f"offset {ends[place]}."
            )


def _contradiction(first: str, second: str) -> InvalidValueError:
    return InvalidValueError(
        f"{first}= and {second}= are both given, and each determines which rows are read.",
        hint="leave one of them out",
        option=second,
    )
