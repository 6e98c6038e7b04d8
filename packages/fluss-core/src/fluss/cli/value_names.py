"""The names that the help shows for the values of options and arguments, such as KEY=VALUE.

A declaration may name the value itself. For the others, typer would show the Python type, such as
list[str]. Choices are left out here: their help lists the values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

# By the name of the option, without the dashes.
_NAMES: Final = {
    "add-column": "COLUMN",
    "append": "KEY=ITEM",
    "at": "POSITION",
    "auto-increment": "COLUMN",
    "bucket-key": "COLUMNS",
    "buckets": "N",
    "command": "SQL",
    "comment": "TEXT",
    "cursor": "FILE",
    "data-dir": "FOLDER",
    "database": "DATABASE",
    "file": "FILE",
    "file-size": "N",
    "host": "ADDRESS",
    "id": "ID",
    "keep-last": "N",
    "kv-snapshot-interval": "TIME",
    "lake-option": "KEY=VALUE",
    "like": "TABLE",
    "max-rows": "N",
    "max-seconds": "SECONDS",
    "notes": "FOLDER",
    "older-than": "AGE",
    "partition-by": "COLUMNS",
    "port": "N",
    "primary-key": "COLUMNS",
    "principal": "USER",
    "rack": "RACK",
    "reset": "KEY",
    "retention-size": "SIZE",
    "rounds": "N",
    "sample": "FILE",
    "sasl-port": "N",
    "schema-file": "FILE",
    "segment-size": "SIZE",
    "server": "ID",
    "set": "KEY=VALUE",
    "skip": "N",
    "subtract": "KEY=ITEM",
    "super-user": "USER",
    "table": "TABLE",
    "tables-at-once": "N",
    "threads": "N",
    "type": "NAME=TYPE",
    "user": "NAME:VARIABLE",
    "warehouse": "PLACE",
    "where": "CONDITION",
}


def name_values(parameters: Iterable[Any]) -> None:
    """Name the values of parameters whose declarations do not.

    Args:
        parameters: The parameters of a command.
    """
    for parameter in parameters:
        if parameter.metavar is not None:
            continue
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.name.upper()
        elif not parameter.is_flag:
            long = next((name for name in parameter.opts if name.startswith("--")), "")
            parameter.metavar = _NAMES.get(long.removeprefix("--"))
