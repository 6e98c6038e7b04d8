"""The commands of `fluss`: their names, summaries and places, before any is loaded."""

from __future__ import annotations

from typing import Final

from fluss.cli.command_group import CommandEntry, RootGroup, Section, root_of
from fluss.cli.global_options import declare

_READ: Final = "fluss.cli.commands.read_commands"
_WRITE: Final = "fluss.cli.commands.write_commands"
_FILES: Final = "fluss.cli.commands.file_commands"
_DEFINE: Final = "fluss.cli.commands.define_commands"
_SCHEMA: Final = "fluss.cli.commands.schema_commands"

HELP: Final = """Apache Fluss tables from a terminal.

    The options stand before the command or after it. A table is named as database.table, or by a
    URL.
    """

ENTRIES: Final = (
    CommandEntry(
        name="ls",
        summary="List databases, tables or partitions.",
        section=Section.READ,
        target="fluss.cli.commands.inspect_commands:list_names",
    ),
    CommandEntry(
        name="describe",
        summary="Show a table: columns, keys, buckets, properties, rows.",
        section=Section.READ,
        target="fluss.cli.commands.inspect_commands:describe",
    ),
    CommandEntry(
        name="head", summary="Show some rows.", section=Section.READ, target=f"{_READ}:head"
    ),
    CommandEntry(
        name="tail",
        summary="Show the last rows of a log, and follow it.",
        section=Section.READ,
        target=f"{_READ}:tail",
    ),
    CommandEntry(
        name="count", summary="Count rows.", section=Section.READ, target=f"{_READ}:count"
    ),
    CommandEntry(
        name="lookup",
        summary="Look up rows by primary key.",
        section=Section.READ,
        target=f"{_READ}:lookup",
    ),
    CommandEntry(
        name="sql",
        summary="Query with DuckDB, where fluss('db.table') is a table.",
        section=Section.READ,
        package="fluss-duckdb",
    ),
    CommandEntry(
        name="export",
        summary="Write the rows of a table into a file.",
        section=Section.READ,
        target=f"{_FILES}:export_rows",
    ),
    CommandEntry(
        name="insert",
        summary="Append rows to a log table.",
        section=Section.WRITE,
        target=f"{_WRITE}:insert",
    ),
    CommandEntry(
        name="upsert",
        summary="Insert or replace rows by primary key.",
        section=Section.WRITE,
        target=f"{_WRITE}:upsert",
    ),
    CommandEntry(
        name="delete",
        summary="Delete rows by primary key, or by a condition.",
        section=Section.WRITE,
        target=f"{_WRITE}:delete",
    ),
    CommandEntry(
        name="import",
        summary="Write files into a table.",
        section=Section.WRITE,
        target=f"{_FILES}:import_rows",
    ),
    CommandEntry(
        name="create",
        summary="Create a database, or a table.",
        section=Section.DEFINE,
        target=f"{_DEFINE}:create",
    ),
    CommandEntry(
        name="drop",
        summary="Drop tables or databases.",
        section=Section.DEFINE,
        target=f"{_DEFINE}:drop",
    ),
    CommandEntry(
        name="alter",
        summary="Add columns, set or reset properties.",
        section=Section.DEFINE,
        target=f"{_DEFINE}:alter",
    ),
    CommandEntry(
        name="schema",
        summary="Print the classes of tables, as a Python file.",
        section=Section.DEFINE,
        target=f"{_SCHEMA}:schema",
    ),
    CommandEntry(
        name="diff",
        summary="Compare tables with the classes of a Python file.",
        section=Section.DEFINE,
        target=f"{_SCHEMA}:diff",
    ),
    CommandEntry(
        name="apply",
        summary="Create and alter tables as a Python file describes them.",
        section=Section.DEFINE,
        target=f"{_SCHEMA}:apply",
    ),
    CommandEntry(
        name="partitions",
        summary="List, add and drop partitions.",
        section=Section.DEFINE,
        target="fluss.cli.commands.partition_commands:app",
    ),
    CommandEntry(
        name="offsets",
        summary="Show where logs begin and end, and how far a cursor lags.",
        section=Section.POSITIONS,
        target="fluss.cli.commands.position_commands:offsets",
    ),
    CommandEntry(
        name="cursor",
        summary="Save and show positions, for jobs that read what is new.",
        section=Section.POSITIONS,
        target="fluss.cli.commands.position_commands:cursor_app",
    ),
    CommandEntry(
        name="doctor",
        summary="Examine the cluster, and say what to do.",
        section=Section.CLUSTER,
        target="fluss.cli.commands.doctor_command:doctor",
    ),
    CommandEntry(
        name="cluster",
        summary="Servers, health, settings, tags and rebalances.",
        section=Section.CLUSTER,
        target="fluss.cli.commands.cluster_commands:app",
    ),
    CommandEntry(
        name="acl",
        summary="List, grant and revoke what users may do.",
        section=Section.CLUSTER,
        target="fluss.cli.commands.access_commands:app",
    ),
    CommandEntry(
        name="config",
        summary="Show settings and their sources, choose a profile.",
        section=Section.CLUSTER,
        target="fluss.cli.commands.config_commands:app",
    ),
    CommandEntry(
        name="server",
        summary="Serve a directory as a Fluss of one node.",
        section=Section.CLUSTER,
        package="fluss-server",
        connects=False,
    ),
    CommandEntry(
        name="tier",
        summary="Copy tables into their lakes, and show how far they are.",
        section=Section.CLUSTER,
        package="fluss-lake",
    ),
    CommandEntry(
        name="demo",
        summary="Run a small shop in Fluss, and query it in every engine.",
        section=Section.CLUSTER,
        target="fluss.cli.commands.demo_command:demo",
    ),
    CommandEntry(
        name="completion",
        summary="Print the completion script for bash, zsh or fish.",
        section=Section.CLUSTER,
        target="fluss.cli.commands.completion_command:completion",
        connects=False,
    ),
)


def application() -> RootGroup:
    """Build the command line."""
    return root_of(declare, ENTRIES, HELP)
