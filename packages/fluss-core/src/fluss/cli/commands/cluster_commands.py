"""The commands of a cluster's servers and settings: servers, health, settings, tags, rebalance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fluss.cli.command_group import group_of
from fluss.cli.confirming import YesOption, confirm
from fluss.cli.global_options import GlobalOptions

if TYPE_CHECKING:
    from fluss import AlterConfig

_SERVER: Final = (
    ("server", "string"),
    ("id", "int64"),
    ("address", "string"),
    ("rack", "string"),
)
_SETTING: Final = (("key", "string"), ("value", "string"), ("source", "string"))
_HEALTH: Final = (
    ("status", "string"),
    ("replicas", "int64"),
    ("in_sync", "int64"),
    ("buckets", "int64"),
    ("active_leaders", "int64"),
)
_PROGRESS: Final = (
    ("table_id", "int64"),
    ("partition_id", "int64"),
    ("bucket", "int64"),
    ("from", "string"),
    ("to", "string"),
    ("status", "string"),
)

_TagArgument = Annotated[
    str, typer.Argument(metavar="TAG", help="permanent_offline or temporary_offline.")
]
_IdsOption = Annotated[
    list[int] | None,
    typer.Option("--server", help="The id of a tablet server.", show_default=False),
]
_RacksOption = Annotated[
    list[str] | None,
    typer.Option("--rack", help="All tablet servers in a rack (Fluss 1.0).", show_default=False),
]
_RebalanceIdOption = Annotated[
    str | None,
    typer.Option("--id", help="A rebalance; the newest by default.", show_default=False),
]


def servers(context: typer.Context) -> None:
    """List the servers that are alive, with their racks.

    Examples:
        fluss cluster servers
    """
    from fluss.cli.row_output import write_records

    options: GlobalOptions = context.obj
    with options.session() as session:
        found = session.servers()
    records = [
        {"server": each.uid, "id": each.id, "address": str(each.address), "rack": each.rack}
        for each in found
    ]
    write_records(records, _SERVER, options.output)


def health(context: typer.Context) -> None:
    """Show how many replicas are in sync (Fluss 1.0).

    The coordinator counts them. `fluss doctor` examines a cluster of any release from outside.

    Examples:
        fluss cluster health
    """
    from fluss.cli.row_output import write_records

    options: GlobalOptions = context.obj
    with options.session() as session:
        found = session.get_cluster_health()
    record = {
        "status": str(found.status),
        "replicas": found.num_replicas,
        "in_sync": found.in_sync_replicas,
        "buckets": found.num_leader_replicas,
        "active_leaders": found.active_leader_replicas,
    }
    write_records([record], _HEALTH, options.output)


def settings(
    context: typer.Context,
    assigned: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE; replaces the value.", show_default=False),
    ] = None,
    appended: Annotated[
        list[str] | None,
        typer.Option("--append", help="KEY=ITEM; adds to a list or map.", show_default=False),
    ] = None,
    subtracted: Annotated[
        list[str] | None,
        typer.Option("--subtract", help="KEY=ITEM; takes from it.", show_default=False),
    ] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option("--reset", help="KEY; back to the servers' files.", show_default=False),
    ] = None,
) -> None:
    """Show and change the settings of the cluster.

    Which ones can change while servers run depends on their release; all changes are made, or none.

    Examples:
        fluss cluster settings
        fluss cluster settings --set kv.snapshot.interval=5min
        fluss cluster settings --reset kv.snapshot.interval
    """
    from fluss import AlterConfig
    from fluss.cli.row_output import write_records

    changes: list[AlterConfig] = [
        *(AlterConfig.set(*_pair("--set", each)) for each in assigned or []),
        *(AlterConfig.append(*_pair("--append", each)) for each in appended or []),
        *(AlterConfig.subtract(*_pair("--subtract", each)) for each in subtracted or []),
        *map(AlterConfig.delete, reset or []),
    ]
    options: GlobalOptions = context.obj
    with options.session() as session:
        if changes:
            session.alter_cluster_configs(changes)
            options.report(f"changed {', '.join(dict.fromkeys(each.key for each in changes))}")
            return
        found = session.describe_cluster_configs()
    records = [{"key": each.key, "value": each.shown, "source": str(each.source)} for each in found]
    write_records(records, _SETTING, options.output)


def _pair(option: str, text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise typer.BadParameter(f"{option} {text!r} is not KEY=VALUE")
    return key.strip(), value.strip()


def tag(
    context: typer.Context,
    name: _TagArgument,
    server: _IdsOption = None,
    rack: _RacksOption = None,
) -> None:
    """Mark servers that the next rebalance empties.

    Examples:
        fluss cluster tag permanent_offline --server 2
        fluss cluster tag temporary_offline --rack east
    """
    options: GlobalOptions = context.obj
    _check_named(server, rack)
    with options.session() as session:
        if server:
            session.add_server_tag(server, name)
        if rack:
            session.add_server_tag_by_rack(rack, name)
    options.report(f"marked {_named(server, rack)} as {name.lower()}")


def untag(
    context: typer.Context,
    name: _TagArgument,
    server: _IdsOption = None,
    rack: _RacksOption = None,
) -> None:
    """Take a tag from tablet servers.

    Examples:
        fluss cluster untag permanent_offline --server 2
    """
    options: GlobalOptions = context.obj
    _check_named(server, rack)
    with options.session() as session:
        if server:
            session.remove_server_tag(server, name)
        if rack:
            session.remove_server_tag_by_rack(rack, name)
    options.report(f"took {name.lower()} from {_named(server, rack)}")


def _check_named(server: Sequence[int] | None, rack: Sequence[str] | None) -> None:
    if not server and not rack:
        raise typer.BadParameter("which servers? Name --server or --rack")


def _named(server: Sequence[int] | None, rack: Sequence[str] | None) -> str:
    parts = [*(f"server {each}" for each in server or []), *(f"rack {each}" for each in rack or [])]
    return ", ".join(parts)


def rebalance(
    context: typer.Context,
    goals: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GOAL",
            help="rack_aware, replica_distribution or leader_distribution; the first counts most.",
            show_default=False,
        ),
    ] = None,
    *,
    yes: YesOption = False,
) -> None:
    """Move replicas between tablet servers.

    Servers with a tag are emptied. The id of the rebalance is printed.

    Examples:
        fluss cluster rebalance replica_distribution
        fluss cluster rebalance rack_aware leader_distribution --yes
    """
    options: GlobalOptions = context.obj
    with options.session() as session:
        confirm("Move replicas between the tablet servers?", yes=yes)
        typer.echo(session.rebalance(goals or ()))


def progress(context: typer.Context, rebalance_id: _RebalanceIdOption = None) -> None:
    """Show how far a rebalance is, with the buckets that it moves.

    Examples:
        fluss cluster progress
        fluss cluster progress -o json
    """
    from fluss.cli.row_output import write_records

    options: GlobalOptions = context.obj
    with options.session() as session:
        found = session.list_rebalance_progress(rebalance_id)
    if found is None:
        options.report("there was no rebalance")
        return
    options.report(str(found))
    records = [
        {
            "table_id": bucket.table_id,
            "partition_id": bucket.partition_id,
            "bucket": bucket.bucket_id,
            "from": ", ".join(map(str, each.original_replicas)),
            "to": ", ".join(map(str, each.new_replicas)),
            "status": str(each.status),
        }
        for bucket, each in sorted(found.progress_for_bucket_map.items())
    ]
    if records:
        write_records(records, _PROGRESS, options.output)


def cancel(
    context: typer.Context, rebalance_id: _RebalanceIdOption = None, *, yes: YesOption = False
) -> None:
    """Stop a rebalance; what it has moved stays where it is.

    Examples:
        fluss cluster cancel
    """
    options: GlobalOptions = context.obj
    with options.session() as session:
        confirm("Stop the rebalance?", yes=yes)
        session.cancel_rebalance(rebalance_id)
    options.report("no rebalance is running")


app = group_of(
    "Servers, health and settings of the cluster; tags and rebalances.",
    {
        "servers": servers,
        "health": health,
        "settings": settings,
        "tag": tag,
        "untag": untag,
        "rebalance": rebalance,
        "progress": progress,
        "cancel": cancel,
    },
)
