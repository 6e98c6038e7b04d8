"""Names of tables, columns and partitions, for tools that complete what a user types.

Such a tool starts for every key press, so nothing here loads Arrow, and a cluster that does not
answer within a moment has no names.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from fluss.admin.admin import AdminCore, admin_of
from fluss.connection.config_sources import resolve
from fluss.connection.shared_connections import share_connection
from fluss.errors import FlussError
from fluss.model.paths import TablePath
from fluss.waiting import in_thread, is_done

ANSWER_S_MAX: Final = 1.0
DATABASES_MAX: Final = 50
NAMES_MAX: Final = 2_000

Ask = Callable[[AdminCore], Coroutine[Any, Any, list[str]]]


def table_names(prefix: str) -> Ask:
    """Ask for the tables, as `database.table`, that begin with a prefix."""
    named, dot, _ = prefix.partition(".")

    async def ask(admin: AdminCore) -> list[str]:
        databases = sorted(await admin.list_databases())
        chosen = [each for each in databases if (each == named if dot else each.startswith(prefix))]
        names: list[str] = []
        for database in chosen[:DATABASES_MAX]:
            tables = sorted(await admin.list_tables(database))
            names += [f"{database}.{table}" for table in tables]
        return [each for each in names if each.startswith(prefix)][:NAMES_MAX]

    return ask


def database_names(prefix: str) -> Ask:
    """Ask for the databases that begin with a prefix."""

    async def ask(admin: AdminCore) -> list[str]:
        return [each for each in sorted(await admin.list_databases()) if each.startswith(prefix)]

    return ask


def column_names(table: str, *, only_key: bool = False) -> Ask:
    """Ask for the columns of a table, or for those of its primary key."""

    async def ask(admin: AdminCore) -> list[str]:
        info = await admin.get_table_info(TablePath.parse(table))
        return list(info.primary_keys if only_key else info.schema.column_names)

    return ask


def partition_names(table: str) -> Ask:
    """Ask for the partitions of a table, as `key=value/key=value`."""

    async def ask(admin: AdminCore) -> list[str]:
        found = await admin.list_partition_infos(TablePath.parse(table))
        return sorted(str(each.partition_spec) for each in found)[:NAMES_MAX]

    return ask


def names_at(url: str | None, profile: str | None, ask: Ask) -> list[str]:
    """Ask a cluster for names; there are none where it cannot be asked within a moment.

    Args:
        url: The cluster; None for that of the profile or the environment.
        profile: A profile of the configuration file.
        ask: What to ask.
    """
    if url is not None and url.startswith("embedded:"):
        return []  # a server would have to be started

    def work() -> list[str]:
        share = share_connection(resolve(url, profile=profile).config)
        return share.connection.engine.run(ask(admin_of(share.connection)))

    found = in_thread(work, "fluss-names")
    try:
        return found.result() if is_done(found, ANSWER_S_MAX) else []
    except FlussError:
        return []
