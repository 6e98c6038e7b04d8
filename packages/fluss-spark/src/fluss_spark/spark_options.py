"""Parses and checks the options of `format("fluss")`.

Names are those of a scan and of the client's settings, in any case, and the names that Kafka's
source and Fluss's own connector have for the same. An unknown name is refused with the nearest one.
Options of writing have no effect on reading, and vice versa, because a view has one set of options
for both. Spark passes options to workers; a secret should be a marker (`${env:NAME}`), which is
looked up where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from fluss.errors import ConfigError, InvalidValueError, UnsupportedOperationError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.config import Config
from fluss.model.options.secrets import is_marker
from fluss.scan import SCAN_OPTIONS
from fluss_spark.read_bounds import FULL, parse_bound

FILTER: Final = "filter"
TIME_ZONE: Final = "timeZone"
# Other names for the options of a scan, as users write them.
ALIASES: Final = {
    "startingOffsets": "start",
    "startingTimestamp": "start",
    "scan.startup.mode": "start",
    "scan.startup.timestamp": "start",
    "scan.incremental.start.timestamp": "start",
    "endingOffsets": "end",
    "endingTimestamp": "end",
    "scan.incremental.end.timestamp": "end",
    "asOf": "as_of",
    "withMetadata": "with_metadata",
    "metadataPrefix": "metadata_prefix",
    "onTrimmed": "on_trimmed",
    "missingPartitions": "missing_partitions",
    "maxParallel": "max_parallel",
}
_STARTUP_MODE: Final = "scan.startup.mode"
_BY_TIMESTAMP: Final = "timestamp"
READING: Final = (
    "maxOffsetsPerTrigger",
    "failOnDataLoss",
    "minPartitions",
    "maxPartitions",
    "nanoseconds",
    FILTER,
    TIME_ZONE,
)
WRITING: Final = (
    "operation",
    "targetColumns",
    "createIfNotExists",
    "primaryKey",
    "partitionBy",
    "bucketNum",
    "exactlyOnce",
    "mayDiffer",
)
_NUMBERS: Final = ("maxOffsetsPerTrigger", "minPartitions", "maxPartitions", "bucketNum")
_FLAGS: Final = ("failOnDataLoss", "createIfNotExists")
# Options that Spark itself adds.
_OF_SPARK: Final = frozenset(
    {
        "owner",
        "location",
        "provider",
        "checkpointlocation",
        "queryname",
        "outputmode",
        "is_managed_location",
    }
)
# The prefix of the options of a table in Spark's catalog, which has them without it, too.
_OF_A_CATALOG: Final = "option."
_TABLE: Final = ("path", "table")
# The prefix of the properties of a new table.
_PROPERTIES: Final = "table."
_EMBEDDED: Final = "embedded:"
_DIGITS_MAX: Final = 18
# Options of other sources and clients, and what to use here.
_ELSEWHERE: Final = {
    "subscribe": "name the table: .load('db.table')",
    **dict.fromkeys(
        ("kafka.bootstrap.servers", "servers", "server", "host", "url"),
        "its name here is 'bootstrap.servers', host:port; or .load('fluss://host:9123/db.table')",
    ),
    "includeheaders": "'with_metadata' adds offset, time, bucket, partition and kind of change",
    **dict.fromkeys(
        ("follow", "streaming", "unbounded"), "spark.readStream.format('fluss') reads without end"
    ),
    "maxbytespertrigger": "'maxOffsetsPerTrigger' limits a micro-batch",
    **dict.fromkeys(
        ("numpartitions", "num_partitions"), "'maxPartitions' and 'minPartitions' limit the tasks"
    ),
    "read.optimized": "a read always sees the table as of now; 'as_of' names an earlier moment",
}
_VIEW: Final = (
    "CREATE TEMPORARY VIEW t USING fluss OPTIONS (path 'db.table') can be selected from and inserted "
    "into"
)
Operation = Literal["append", "upsert", "delete", "update"]
OPERATIONS: Final[Mapping[str, Operation]] = {
    "append": "append",
    "upsert": "upsert",
    "delete": "delete",
    "update": "update",
}


def _folded(names: Iterable[str]) -> dict[str, str]:
    return {each.lower(): each for each in names}


_SCAN: Final = {name.lower(): (name, of) for name, of in ALIASES.items()} | {
    name: (name, name) for name in SCAN_OPTIONS if name != FILTER
}
_OWN: Final = _folded([*READING, *WRITING])


@dataclass(frozen=True, kw_only=True)
class FlussOptions:
    """The checked options of `format("fluss")`.

    Args:
        table: `database.table`, or its URL.
        settings: The client's settings, by key; secrets may be markers.
        scan: The options of a scan.
        spark: The options that only this format has, by their names here.
        is_full: Whether a stream starts with the state of its table.
        properties: The properties of a new table, `table.…`.
    """

    table: str = field(repr=False)  # a URL may hold a password
    settings: dict[str, Any] = field(repr=False)
    scan: dict[str, Any]
    spark: dict[str, str]
    is_full: bool = False
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The table, for messages: `database.table`, also of a URL."""
        if "://" not in self.table:
            return self.table.partition("$")[0]
        from fluss.connection.url import hidden  # the rest of that room is heavy

        url = hidden(self.table).partition("?")[0]
        return url.rpartition("/")[2].partition("$")[0]

    def number(self, name: str, default: int) -> int:
        """Return an option that is a count.

        Raises:
            InvalidValueError: It is no positive whole number.
        """
        text = self.spark.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS_MAX or int(text) < 1:
            raise InvalidValueError(
                f"{name} is {text[:40]!r}, not a positive whole number.",
                hint="leave it out for the default",
                option=name,
            )
        return int(text)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return an option that is true or false.

        Raises:
            InvalidValueError: It is neither.
        """
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"

    def choice(self, name: str, known: tuple[str, ...], default: str) -> str:
        """Return an option that is one of a few words.

        Raises:
            InvalidValueError: It is none of them; the hint names the nearest.
        """
        text = self.spark.get(name, default).lower()
        if text not in known:
            raise InvalidValueError(
                f"{name} is {text[:40]!r}, none of {', '.join(known)}.",
                hint=did_you_mean(text, known),
                option=name,
            )
        return text

    def names(self, name: str) -> list[str] | None:
        """Return an option that lists columns, separated by commas."""
        text = self.spark.get(name)
        return None if text is None else [each.strip() for each in text.split(",")]


def read_options(given: Mapping[str, str], *, what: str) -> FlussOptions:
    """Parse and check options.

    Args:
        given: The options, in any case.
        what: The operation, for messages: `read`, `write`.

    Raises:
        ConfigError: No table is named, or an option is unknown.
        InvalidValueError: A value is not one that its option takes, or two options contradict each
            other.
    """
    tables: dict[str, str] = {}
    settings: dict[str, Any] = {}
    scan: dict[str, tuple[str, Any]] = {}
    spark: dict[str, str] = {}
    properties: dict[str, str] = {}
    is_by_timestamp = False
    for key, value in given.items():
        name = key.lower()
        if name.startswith(_OF_A_CATALOG):
            raise _of_a_catalog()
        if name in _TABLE:
            tables[name] = value
        elif name == _STARTUP_MODE and value.lower() == _BY_TIMESTAMP:
            is_by_timestamp = True
        elif name in _SCAN:
            _put(scan, *_SCAN[name], value)
        elif name.startswith(_PROPERTIES):
            properties[name] = value
        elif name in _OWN:
            spark[_OWN[name]] = value
        elif name in _ELSEWHERE:
            raise _elsewhere(key)
        elif name not in _OF_SPARK:
            settings[_setting(key)] = value
    named = set(tables.values())
    for option in named:
        check_no_password(option)
    if len(named) > 1:
        from fluss.connection.url import hidden  # the rest of that room is heavy

        shown = ", ".join(sorted(map(hidden, named)))
        raise InvalidValueError(f"path and table name two tables: {shown}.", option="table")
    if not named or "" in named:
        raise _no_table(what)
    if any(each.startswith(_EMBEDDED) for each in named):
        raise _embedded()
    values = {of: value for of, (_, value) in scan.items()}
    if is_by_timestamp and "start" not in values:
        raise ConfigError(
            f"{_STARTUP_MODE} is {_BY_TIMESTAMP!r}, and no timestamp is given.",
            hint="add scan.startup.timestamp, or startingTimestamp",
            key=_STARTUP_MODE,
        )
    is_full = values.get("start") is FULL
    if is_full:
        del values["start"]
    read = FlussOptions(
        table=named.pop(),
        settings=settings,
        scan=values,
        spark=spark,
        is_full=is_full,
        properties=properties,
    )
    _check_values(read)
    return read


def check_no_password(table: str) -> None:
    """Refuse a URL with a password: Spark shows paths in plans, in its UI and in its event log.

    Raises:
        ConfigError: It has one, or is no URL of Fluss.
    """
    if "://" not in table:
        return
    from fluss.connection.url import parse_url  # the rest of these rooms is heavy
    from fluss.scan import without_view

    url = parse_url(without_view(table.strip())[0])
    secrets = [value for key, value in url.settings.items() if Config.OPTIONS[key].secret]
    if not all(map(is_marker, [*secrets, *([] if url.password is None else [url.password])])):
        raise ConfigError(
            "The URL of the table has a password, and Spark shows it in plans, in its UI and in its "
            "event log.",
            hint="option('security.sasl.password', '${env:FLUSS_PASSWORD}'), and the URL without it",
            key="security.sasl.password",
        )


def _check_values(options: FlussOptions) -> None:
    """Refuse values that no use of the options could accept, before a server is asked."""
    for name in _FLAGS:
        options.flag(name, default=True)
    for name in _NUMBERS:
        options.number(name, 1)
    least, most = (options.number(name, 0) for name in ("minPartitions", "maxPartitions"))
    if 0 < most < least:
        raise InvalidValueError(
            f"minPartitions is {least} and maxPartitions is {most}, which is fewer.",
            hint="leave one of them out",
            option="minPartitions",
        )


def _put(scan: dict[str, tuple[str, Any]], name: str, of: str, value: str) -> None:
    is_bound = of in {"start", "end", "as_of"}
    parsed = parse_bound(value, name, is_time="timestamp" in name.lower()) if is_bound else value
    if parsed is FULL and of != "start":
        raise InvalidValueError(
            f"{name} is 'full', which is only a start of streams.",
            hint="'latest', a time, or an offset",
            option=name,
        )
    if of in scan and scan[of][1] != parsed:
        raise InvalidValueError(
            f"{scan[of][0]} and {name} both set {of}, to different values.",
            hint="leave one of them out",
            option=name,
        )
    scan[of] = (name, parsed)


def _setting(key: str) -> str:
    name = key.lower()
    for candidate in (key, name):
        try:
            return Config.option(candidate).key
        except ConfigError as error:
            # The error about an option of Fluss's Java client explains it, in either case.
            if "Java client" in error.message:
                raise
    known = [*SCAN_OPTIONS, *ALIASES, *READING, *WRITING, "path", *Config.OPTIONS]
    raise ConfigError(
        f"format('fluss') has no option {key!r}.",
        hint=did_you_mean(key, known) or "the docstring of fluss_spark.FlussDataSource lists them",
        key=key,
    )


def _elsewhere(key: str) -> ConfigError | UnsupportedOperationError:
    name = key.lower()
    sentence = f"format('fluss') has no option {key!r}."
    if "readStream" in _ELSEWHERE[name]:
        return UnsupportedOperationError(sentence, hint=_ELSEWHERE[name], option=key)
    return ConfigError(sentence, hint=_ELSEWHERE[name], key=key)


def _of_a_catalog() -> UnsupportedOperationError:
    return UnsupportedOperationError(
        "A table of Spark's own catalog cannot represent a Fluss table: Spark keeps its options and "
        "passes them neither to the reader nor to the writer.",
        hint=f"{_VIEW}; fluss_spark.register_views(spark, 'db') makes one for every table",
    )


def _embedded() -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{_EMBEDDED}... is a server inside one process, and Spark's workers are other processes.",
        hint="fluss server --data-dir data, and load('fluss://127.0.0.1:9123/db.table'); or, while "
        "a session of this process keeps the server running, option('bootstrap.servers', "
        "session.config.bootstrap_servers)",
        option="path",
    )


def _no_table(what: str) -> ConfigError:
    return ConfigError(
        f"format('fluss') does not know which table to {what}.",
        hint="name it: .load('db.table'), .save('db.table'). In SQL, Spark passes no options to a "
        f"table of its own catalog, nor to CREATE TABLE ... AS SELECT: {_VIEW}; or give them with "
        "the table: t WITH (path = 'db.table')",
    )
