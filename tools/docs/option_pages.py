"""Writes docs/options.md: every option of a scan, of a client and of a table, for every engine.

`./dev generate` writes it, and a test compares it with the declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import click

from fluss.cli.application import ENTRIES, application
from fluss.cli.command_group import Section
from fluss.model.options.config_options import ClientOptions
from fluss.model.options.declaration import Option
from fluss.model.options.scan_options import SCAN_OPTIONS
from fluss.model.tables.table_options import TableOptions
from fluss_spark.spark_options import ALIASES, READING, WRITING

_HEAD = """\
# Options

The options of [a scan](#of-a-scan) select the rows that are read. The options of [a client](#of-a-client) configure a
connection. The options of [a table](#of-a-table) are its properties. `./dev generate` writes this page from the
declarations in `fluss.model`.

## Of a scan

The options have the same names in every engine. An unknown name is refused, and the error suggests the most similar one.

| in | as |
|---|---|
| a session | `table.scan(tail=100)` |
| Polars, pandas | `pl.scan_fluss("db.table", tail=100)`, `pd.read_fluss("db.table", tail=100)` |
| SQL of DuckDB | `fluss('db.table', tail := 100)` |
| Spark | `.option("tail", 100)`; case does not matter |
| a URL | `fluss://host:9123/db.table?tail=100` |
| the command line | a flag of the table below; other options in the URL of the table |

A scan applies its options in this order: `partitions`, `start` and `end` (or `as_of`), `tail`, `filter`, `order` and
`limit`.
"""

_SPARK = """
## Of Spark alone

`format("fluss")` takes all options above, and these, which [Spark](spark.md) describes.
"""

_CLIENT = """
## Of a client

These are the keys of `fluss.Config` and of `fluss.connect(config={…})`. Each key may have the prefix
`client.`, and is also a property with underscores (`config.writer_acks`). Durations are milliseconds or
texts such as `10s`; sizes are bytes or texts such as `2mb`. A secret may be a marker: `${env:NAME}`,
`${file:PATH}`.
"""

_TABLE = """
## Of a table

These are the `properties=` of `session.create_table` and `session.alter_table`, and of a `TableDescriptor`. Other
properties are passed to the server, which accepts or refuses them.
"""


def options_page() -> str:
    """Return the whole page."""
    return "\n".join(
        [
            _HEAD,
            *_scan_table(),
            _SPARK,
            f"Reading: {_listed(each for each in READING if each not in SCAN_OPTIONS)}. Writing: {_listed(WRITING)}.",
            _CLIENT,
            _with_aliases(ClientOptions.OPTIONS.values()),
            _TABLE,
            markdown_table(TableOptions.OPTIONS.values()),
            "",
        ]
    )


def _scan_table() -> list[str]:
    flags, aliases = _flags(), _spark_aliases()
    lines = ["| option | meaning | command line | other names in Spark |", "|---|---|---|---|"]
    for name, option in SCAN_OPTIONS.items():
        cells = [f"`{name}`", _cell(option.doc), flags.get(name, ""), aliases.get(name, "")]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _flags() -> dict[str, str]:
    """Return the flags of the command line and their commands, by option of a scan."""
    found: dict[str, dict[str, list[str]]] = {}
    group = application()
    context = click.Context(group)
    for command_name in (each.name for each in ENTRIES if each.section is Section.READ):
        command = group.get_command(context, command_name)
        for parameter in command.params if command is not None else ():
            option = _OF_PARAMETERS.get((command_name, parameter.name), parameter.name)
            option = _OF_PARAMETERS.get(parameter.name, option)
            if option in SCAN_OPTIONS and parameter.opts[0].startswith("-"):
                found.setdefault(option, {}).setdefault(parameter.opts[0], []).append(command_name)
    return {
        name: "; ".join(f"`{flag}` of {', '.join(of)}" for flag, of in flags.items())
        for name, flags in found.items()
    }


# Parameters of commands that have another name than the option that they set.
_OF_PARAMETERS: Final[Mapping[Any, str]] = {
    "where": "filter",
    "metadata": "with_metadata",
    ("head", "rows"): "limit",
    ("tail", "rows"): "tail",
}


def _spark_aliases() -> dict[str, str]:
    by_option: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        by_option.setdefault(name, []).append(alias)
    return {name: _listed(aliases) for name, aliases in by_option.items()}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def _with_aliases(options: Iterable[Option[object]]) -> str:
    listed = list(options)
    table = markdown_table(listed)
    also = [f"`{alias}` is `{each.key}`" for each in listed for alias in each.aliases]
    return f"{table}\n\nFormer names: {', '.join(also)}." if also else table


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def markdown_table(options: Iterable[Option[Any]]) -> str:
    """Return the options as a table for the documentation."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for each in options:
        default = "" if each.default is None or each.default == "" else f"`{each.default}`"
        since = f" Since {each.since}." if each.since else ""
        lines.append(f"| `{each.key}` | {default} | {each.doc}{since} |")
    return "\n".join(lines)
