"""The commands of settings: which count and why, and the profiles of the user's file."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fluss.cli.command_group import group_of
from fluss.cli.files.format_names import OutputFormat
from fluss.cli.global_options import URL_VARIABLE, GlobalOptions

if TYPE_CHECKING:
    from fluss.connection.config_sources import Resolved

_SERVERS: Final = "bootstrap.servers"
_USER: Final = "security.sasl.username"


def explain_config(context: typer.Context) -> None:
    """Show the settings that count for a command, and where each comes from.

    Passwords are hidden. An option counts before a profile that it names, the environment, and the
    default profile.

    Examples:
        fluss config explain
        fluss config explain --profile prod
        fluss --url me@fluss-1:9123 config explain
    """
    from fluss.connection.config_sources import resolve

    cluster: GlobalOptions = context.obj
    url = cluster.url
    if url is not None and url.startswith("embedded:"):
        typer.echo(f"{url}    # a server that each command starts in this process")
        return
    found = _naming_url(resolve(url, profile=cluster.profile), cluster)
    if cluster.output in {None, OutputFormat.TABLE}:
        typer.echo(str(found))
        return
    from fluss.cli.row_output import write_records

    shown = found.config.to_dict()
    records = [
        {"key": key, "value": str(shown.get(key, "…")), "source": source}
        for key, source in {_SERVERS: "default", **found.sources}.items()
    ]
    write_records(
        records, [(name, "string") for name in ("key", "value", "source")], cluster.output
    )


def _naming_url(found: Resolved, cluster: GlobalOptions) -> Resolved:
    """Name the option or the variable that gave the URL."""
    name = URL_VARIABLE if cluster.given_url is None else "--url"
    sources = {key: name if each == "URL" else each for key, each in found.sources.items()}
    return replace(found, sources=sources)


def list_profiles(context: typer.Context) -> None:
    """List the profiles of the configuration file.

    The file is ~/.config/fluss/config.toml, or the one that FLUSS_CONFIG names:

        default = "dev"

        [profiles.dev]
        bootstrap.servers = "127.0.0.1:9123"

    Examples:
        fluss config profiles
        fluss config profiles -o json
    """
    from fluss.cli.row_output import write_records
    from fluss.connection.profiles import read_profiles

    cluster: GlobalOptions = context.obj
    found = read_profiles(os.environ)
    records: list[dict[str, Any]] = [
        {
            "name": profile.name,
            "default": profile.name == found.default,
            "servers": profile.settings.get(_SERVERS),
            "user": profile.settings.get(_USER),
        }
        for profile in found.profiles.values()
    ]
    if not records:
        cluster.report(f"fluss: {found.path} has no profiles; `fluss config profiles -h` shows one")
    write_records(records, _PROFILE, cluster.output)


def use_profile(
    context: typer.Context,
    profile_name: Annotated[
        str, typer.Argument(metavar="NAME", help="The profile.", show_default=False)
    ],
) -> None:
    """Make a profile the default, for commands and programs that name no cluster.

    Examples:
        fluss config use prod
    """
    from fluss.connection.profiles import PROFILE_VARIABLE, use_profile as change_default

    cluster: GlobalOptions = context.obj
    found = change_default(os.environ, profile_name)
    cluster.report(f"the default profile of {found.path} is {profile_name}")
    for variable in ("FLUSS_URL", "FLUSS_BOOTSTRAP_SERVERS", PROFILE_VARIABLE):
        if os.environ.get(variable):
            cluster.report(f"fluss: {variable} is set, and counts before it")


_PROFILE: Final = (
    ("name", "string"),
    ("default", "bool"),
    ("servers", "string"),
    ("user", "string"),
)

app = group_of(
    "Show settings and their sources, and choose a profile.",
    {"explain": explain_config, "profiles": list_profiles, "use": use_profile},
)
