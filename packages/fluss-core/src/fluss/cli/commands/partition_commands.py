"""The commands of partitions: ls, add, drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fluss.cli.command_group import group_of
from fluss.cli.confirming import YesOption, confirm
from fluss.cli.global_options import GlobalOptions
from fluss.cli.scan_arguments import NameArgument
from fluss.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from fluss.model.tables.partitions import PartitionSpec
    from fluss.session import Table

_SpecsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PARTITION",
        help="key=value, or key=value/key=value; with one key its value is enough.",
        show_default=False,
    ),
]


def list_partitions(
    context: typer.Context,
    name: NameArgument,
    *,
    long: Annotated[
        bool, typer.Option("--long", "-l", help="Show ids and rows beside each name.")
    ] = False,
) -> None:
    """List the partitions of a table, one per line.

    Examples:
        fluss partitions ls shop.visits
        fluss partitions ls -l shop.visits
    """
    from fluss.cli.commands.inspect_commands import PARTITION, partition_records, write_names
    from fluss.cli.row_output import write_records

    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        _check_partitioned(table)
        if long:
            write_records(partition_records(table), PARTITION, cluster.output)
            return
        write_names([each.partition_name for each in table.partitions()], cluster)


def add_partitions(
    context: typer.Context,
    name: NameArgument,
    partitions: _SpecsArgument,
    *,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave one that exists as it is.")
    ] = False,
) -> None:
    """Add partitions to a table.

    Examples:
        fluss partitions add shop.visits day=2026-01-31
        fluss partitions add shop.visits 2026-02-01 2026-02-02 --if-not-exists
        fluss partitions add shop.sales year=2026/region=EU
    """
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        specs = specs_of(partitions, table)
        for spec in specs:
            table.create_partition(spec, ignore_if_exists=if_not_exists)
            cluster.report(f"added partition {spec} to {table.name}")


def drop_partitions(
    context: typer.Context,
    name: NameArgument,
    partitions: _SpecsArgument,
    *,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="One that is not there is no error.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Drop partitions of a table, with all their rows.

    Examples:
        fluss partitions drop shop.visits day=2025-01-31
        fluss partitions drop shop.visits 2025-01-30 2025-01-31 --yes
    """
    cluster: GlobalOptions = context.obj
    with cluster.table(name) as table:
        specs = specs_of(partitions, table)
        shown = ", ".join(map(str, specs))
        confirm(f"Drop {shown} of {table.name} with all rows?", yes=yes)
        for spec in specs:
            table.drop_partition(spec, ignore_if_not_exists=if_exists)
            cluster.report(f"dropped partition {spec} of {table.name}")


def specs_of(texts: Sequence[str], table: Table) -> list[PartitionSpec]:
    """Parse partitions: `key=value/key=value`, or the name that `ls` shows.

    Raises:
        InvalidNameError: A text does not have one value for each partition key.
        UnsupportedOperationError: The table has no partitions.
    """
    from fluss.model.tables.partitions import (
        parse_partition_name,
        parse_qualified_partition_name,
        partition_values,
    )

    _check_partitioned(table)
    specs = []
    for text in texts:
        if "=" not in text:
            specs.append(parse_partition_name(text, table.partition_by))
            continue
        spec = parse_qualified_partition_name(text.replace(",", "/"))
        partition_values(spec, table.partition_by)  # refuses a key that is not the table's
        specs.append(spec)
    return specs


def _check_partitioned(table: Table) -> None:
    if not table.partition_by:
        raise UnsupportedOperationError(
            f"{table.name} is not partitioned.",
            hint="a table is partitioned when it is created: `fluss create ... --partition-by day`",
            table=table.name,
        )


app = group_of(
    "List, add and drop the partitions of a table.",
    {"ls": list_partitions, "add": add_partitions, "drop": drop_partitions},
)
