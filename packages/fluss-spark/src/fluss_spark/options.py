"""Options as Spark users write them, as Fluss understands them.

Names are those of a scan and of a client's settings, in any case, with the names that Kafka's
source and Fluss's own connector have for the same. A name nobody knows is refused with the
nearest one. Spark hands options to workers; a secret is better a marker (`${env:NAME}`), which is
looked up where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from fluss.errors import ConfigError, InvalidValueError
from fluss.model.config import Config
from fluss.model.nearest import did_you_mean
from fluss.model.scan_options import SCAN_OPTIONS

# Other names, in lower case, for the options of a scan.
_ALIASES: Final = {
    "startingoffsets": "start",
    "startingtimestamp": "start",
    "scan.startup.mode": "start",
    "scan.incremental.start.timestamp": "start",
    "endingoffsets": "end",
    "endingtimestamp": "end",
    "scan.incremental.end.timestamp": "end",
    "asof": "as_of",
    "withmetadata": "with_metadata",
    "metadataprefix": "metadata_prefix",
    "ontrimmed": "on_trimmed",
    "missingpartitions": "missing_partitions",
    "maxparallel": "max_parallel",
}
_TABLE: Final = ("path", "table")
READING: Final = {
    "maxoffsetspertrigger": "maxOffsetsPerTrigger",
    "failondataloss": "failOnDataLoss",
    "minpartitions": "minPartitions",
    "maxpartitions": "maxPartitions",
}
WRITING: Final = {
    "operation": "operation",
    "targetcolumns": "targetColumns",
    "createifnotexists": "createIfNotExists",
    "primarykey": "primaryKey",
    "partitionby": "partitionBy",
    "bucketnum": "bucketNum",
    "exactlyonce": "exactlyOnce",
}
# What Spark itself puts among the options.
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
Operation = Literal["append", "upsert", "delete", "update"]
OPERATIONS: Final[Mapping[str, Operation]] = {
    "append": "append",
    "upsert": "upsert",
    "delete": "delete",
    "update": "update",
}


@dataclass(frozen=True, kw_only=True)
class FlussOptions:
    """What was written beside `format("fluss")`, checked.

    Args:
        table: `database.table`, or its URL.
        settings: The client's settings, by key; secrets may be markers.
        scan: The options of a scan.
        spark: The options that only Spark has, by their names here.
    """

    table: str
    settings: dict[str, Any] = field(repr=False)
    scan: dict[str, Any]
    spark: dict[str, str]

    def number(self, name: str, default: int) -> int:
        """An option that counts something.

        Raises:
            InvalidValueError: It is no positive whole number.
        """
        text = self.spark.get(name)
        if text is None:
            return default
        if not text.isdigit() or int(text) < 1:
            raise InvalidValueError(
                f"{name} is {text!r}, not a positive whole number.", option=name
            )
        return int(text)

    def flag(self, name: str, *, default: bool) -> bool:
        """An option that is true or false.

        Raises:
            InvalidValueError: It is neither.
        """
        text = self.spark.get(name)
        if text is None:
            return default
        if text.lower() not in {"true", "false"}:
            raise InvalidValueError(f"{name} is {text!r}, neither true nor false.", option=name)
        return text.lower() == "true"

    def names(self, name: str) -> list[str] | None:
        """An option that lists columns, with commas."""
        text = self.spark.get(name)
        return None if text is None else [each.strip() for each in text.split(",")]


def read_options(given: Mapping[str, str], *, what: str) -> FlussOptions:
    """Sort options out.

    Args:
        given: The options, in any case.
        what: What is being done, for messages: `read`, `write`.

    Raises:
        ConfigError: No table is named, or an option is unknown.
    """
    table: str | None = None
    settings: dict[str, Any] = {}
    scan: dict[str, Any] = {}
    spark: dict[str, str] = {}
    for key, value in given.items():
        name = key.lower()
        if name in _TABLE:
            table = value
        elif (scan_name := _ALIASES.get(name, name)) in SCAN_OPTIONS:
            scan[scan_name] = _scan_value(scan_name, value)
        elif (own := READING.get(name) or WRITING.get(name)) is not None:
            spark[own] = value
        elif name not in _OF_SPARK:
            settings[_setting(key)] = value
    if not table:
        raise _no_table(what)
    return FlussOptions(table=table, settings=settings, scan=scan, spark=spark)


def _scan_value(name: str, value: str) -> Any:
    """Texts stay texts, which every option of a scan takes; JSON offsets become a dict."""
    if name in {"start", "end"} and value.lstrip().startswith("{"):
        try:
            return json.loads(value)
        except ValueError as error:
            raise InvalidValueError(f"{name} is no JSON: {error}.", option=name) from None
    if name in {"columns", "with_metadata", "partitions"} and value.lower() not in {
        "true",
        "false",
    }:
        return [each.strip() for each in value.split(",")]
    return value


def _setting(key: str) -> str:
    name = key.lower()
    for candidate in (key, name):
        try:
            return Config.option(candidate).key
        except ConfigError:
            continue
    known = [*SCAN_OPTIONS, *READING.values(), *WRITING.values(), "path", "bootstrap.servers"]
    raise ConfigError(
        f"format('fluss') has no option {key!r}.",
        hint=did_you_mean(key, known) or "the docstring of fluss_spark.FlussDataSource lists them",
        key=key,
    )


def _no_table(what: str) -> ConfigError:
    return ConfigError(
        f"format('fluss') does not know which table to {what}.",
        hint="name it: .load('db.table'), .save('db.table'), or OPTIONS (path 'db.table') of a "
        "TEMPORARY VIEW; Spark gives no options to INSERT INTO or CREATE TABLE ... AS SELECT of a "
        "table in its own catalog",
    )
