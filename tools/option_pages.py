"""Writes docs/options.md: every option of a scan, of a client and of a table, from its declaration.

`./dev generate` writes it, and a test compares it with the declarations.
"""

from __future__ import annotations

from collections.abc import Iterable

from fluss.model.options.config_options import ClientOptions
from fluss.model.options.declaration import Option, markdown_table
from fluss.model.options.scan_options import SCAN_OPTIONS
from fluss.model.tables.table_options import TableOptions

_HEAD = """\
# Options

This page is written by `./dev generate` from the declarations in `fluss.model`.

## Of a scan

`table.scan(…)`, `pl.scan_fluss("db.table", …)`, `fluss('db.table', … := …)` in SQL, `pd.read_fluss`,
a URL's `?…` and Spark's `.option(…)` take the same names. An unknown one is refused with the nearest.
"""

_CLIENT = """
## Of a client

The keys of `fluss.Config` and of `fluss.connect(config={…})`. Each may be written with the prefix
`client.`, and as a property with underscores (`config.writer_acks`). Durations are milliseconds or
texts such as `10s`, sizes are bytes or texts such as `2mb`. Secrets may be markers: `${env:NAME}`,
`${file:PATH}`.
"""

_TABLE = """
## Of a table

The `properties=` of `session.create_table` and `session.alter_table`, and of a `TableDescriptor`. What
is not listed here goes to the server as it is, which accepts or refuses it.
"""


def options_page() -> str:
    """Return the whole page."""
    scan = ["| option | meaning |", "|---|---|"]
    scan += [f"| `{name}` | {_cell(option.doc)} |" for name, option in SCAN_OPTIONS.items()]
    return "\n".join(
        [
            _HEAD,
            *scan,
            _CLIENT,
            _with_aliases(ClientOptions.OPTIONS.values()),
            _TABLE,
            markdown_table(TableOptions.OPTIONS.values()),
            "",
        ]
    )


def _with_aliases(options: Iterable[Option[object]]) -> str:
    listed = list(options)
    table = markdown_table(listed)
    also = [f"`{alias}` is `{each.key}`" for each in listed for alias in each.aliases]
    return f"{table}\n\nFormer names: {', '.join(also)}." if also else table


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
