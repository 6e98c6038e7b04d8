"""The commands of access control: ls, grant, revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fluss.cli.command_group import group_of
from fluss.cli.confirming import YesOption, confirm
from fluss.cli.global_options import GlobalOptions

if TYPE_CHECKING:
    from fluss import AclBinding, Resource

_ENTRY: Final = (
    ("principal", "string"),
    ("operation", "string"),
    ("resource", "string"),
    ("name", "string"),
    ("host", "string"),
)

_TableOption = Annotated[
    str | None,
    typer.Option(
        "--table", help="A table, as database.table; '*' for every one.", show_default=False
    ),
]
_DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="A database, with its tables; '*' for every one, without.",
        show_default=False,
    ),
]
_ClusterOption = Annotated[bool, typer.Option("--cluster", help="Everything in the cluster.")]
_HostOption = Annotated[
    str | None,
    typer.Option("--host", help="An address that the user comes from.", show_default=False),
]


def list_entries(
    context: typer.Context,
    table: _TableOption = None,
    database: _DatabaseOption = None,
    user: Annotated[
        str | None, typer.Option("--principal", help="A user, for example ann.", show_default=False)
    ] = None,
    *,
    cluster: _ClusterOption = False,
) -> None:
    """List who may do what.

    Examples:
        fluss acl ls
        fluss acl ls --principal ann
        fluss acl ls --table shop.orders -o json
    """
    from fluss import AclBindingFilter
    from fluss.cli.row_output import write_records

    resource = _resource(table, database, is_cluster=cluster)
    facts: dict[str, Any] = {"principal": user}
    if resource is not None:
        facts |= {"resource_type": resource.type, "resource_name": resource.name}
    options: GlobalOptions = context.obj
    with options.session() as session:
        found = session.list_acls(AclBindingFilter(**facts))
    write_records([_record(each) for each in found], _ENTRY, options.output)


def grant(
    context: typer.Context,
    user: Annotated[
        str, typer.Argument(metavar="USER", help="A user, for example ann; '*' for everyone.")
    ],
    operations: Annotated[
        list[str],
        typer.Argument(
            metavar="OPERATION",
            help="read, write, create, drop, alter, describe or all.",
            show_default=False,
        ),
    ],
    table: _TableOption = None,
    database: _DatabaseOption = None,
    host: _HostOption = None,
    *,
    cluster: _ClusterOption = False,
) -> None:
    """Allow a user operations with a table, a database or the cluster.

    Examples:
        fluss acl grant ann read write --table shop.orders
        fluss acl grant ann all --database shop
        fluss acl grant '*' describe --cluster
    """
    from fluss import AclBinding

    resource = _needed(_resource(table, database, is_cluster=cluster))
    entries = [AclBinding(resource, user, each, host or "*") for each in operations]
    options: GlobalOptions = context.obj
    with options.session() as session:
        session.create_acls(entries)
    for entry in entries:
        options.report(str(entry))


def revoke(
    context: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", help="A user, for example ann.")],
    operations: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="OPERATION", help="Which; all of them by default.", show_default=False
        ),
    ] = None,
    table: _TableOption = None,
    database: _DatabaseOption = None,
    host: _HostOption = None,
    *,
    cluster: _ClusterOption = False,
    yes: YesOption = False,
) -> None:
    """Take back what was granted; without operations, everything with that resource.

    Examples:
        fluss acl revoke ann write --table shop.orders
        fluss acl revoke ann --database shop --yes
    """
    from fluss import AclBindingFilter

    resource = _needed(_resource(table, database, is_cluster=cluster))
    filters = [
        AclBindingFilter(
            resource_type=resource.type,
            resource_name=resource.name,
            principal=user,
            operation=each,
            host=host,
        )
        for each in operations or ["any"]
    ]
    options: GlobalOptions = context.obj
    with options.session() as session:
        found = [entry for each in filters for entry in session.list_acls(each)]
        if not found:
            options.report(f"{user} has no such entry for {resource}")
            return
        confirm(f"Take back: {'; '.join(map(str, found))}?", yes=yes)
        for entry in session.drop_acls(found):
            options.report(f"taken back: {entry}")


def _resource(table: str | None, database: str | None, *, is_cluster: bool) -> Resource | None:
    from fluss import Resource

    named = [
        *([] if table is None else [Resource.table(table)]),
        *([] if database is None else [Resource.database(database)]),
        *([Resource.cluster()] if is_cluster else []),
    ]
    if len(named) > 1:
        raise typer.BadParameter("name one of --table, --database and --cluster")
    return named[0] if named else None


def _needed(resource: Resource | None) -> Resource:
    if resource is None:
        raise typer.BadParameter("with what? Name --table, --database or --cluster")
    return resource


def _record(entry: AclBinding) -> dict[str, str]:
    return {
        "principal": str(entry.principal),
        "operation": str(entry.operation),
        "resource": str(entry.resource.type),
        "name": entry.resource.name,
        "host": entry.host,
    }


app = group_of(
    "List, grant and revoke what users may do.",
    {"ls": list_entries, "grant": grant, "revoke": revoke},
)
