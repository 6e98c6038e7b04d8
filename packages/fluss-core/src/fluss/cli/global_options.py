"""The options that every command of `fluss` takes, before the command or after it.

They name the cluster, the format of the output, and how much is reported. A command reads them from
`context.obj`. This file is loaded by `fluss -h` and by completion, so it imports no Arrow.
"""

from __future__ import annotations

import copy
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fluss.cli.files.format_names import OutputFormat
from fluss.errors import ConfigError

if TYPE_CHECKING:
    from fluss.session import Session, Table

URL_VARIABLE: Final = "FLUSS_URL"
PROGRESS_VARIABLE: Final = "FLUSS_PROGRESS"
_PASSWORD: Final = "security.sasl.password"  # noqa: S105 - the name of the option


@dataclass(slots=True, kw_only=True)
class GlobalOptions:
    """What the global options say; they are noted while the words of a command are parsed.

    Args:
        given_url: The URL of `--url`.
        profile: The profile of `--profile`.
        output: The format of `--output`; None for the default of the command.
        is_verbose: Whether the log of the client is shown.
        is_quiet: Whether only errors are reported.
        no_progress: Whether progress bars are left out.
        traceback: Whether an error is shown with its traceback.
    """

    given_url: str | None = None
    profile: str | None = None
    output: OutputFormat | None = None
    is_verbose: bool = False
    is_quiet: bool = False
    no_progress: bool = False
    traceback: bool = False

    def note(self, field: str, option: str, value: Any) -> None:
        """Note the value of an option that was given.

        Raises:
            BadParameter: It was given before with another value, or contradicts another option.
        """
        before = getattr(self, field)
        if before not in {None, False} and before != value:
            raise typer.BadParameter(f"{option} is given twice: {before} and {value}")
        setattr(self, field, value)
        if self.is_quiet and self.is_verbose:
            raise typer.BadParameter("--quiet and --verbose contradict each other")
        if self.is_verbose:
            logging.getLogger("fluss").setLevel(logging.INFO)
        if self.is_quiet or self.no_progress:
            os.environ[PROGRESS_VARIABLE] = "off"

    # --- what is reported ---------------------------------------------------------------------

    @property
    def shows_progress(self) -> bool:
        """Whether a progress bar may be drawn on the standard error."""
        return not self.is_quiet and not self.no_progress and sys.stderr.isatty()

    def report(self, text: str) -> None:
        """Report what was done, on the standard error."""
        if not self.is_quiet:
            typer.echo(text, err=True)

    # --- the cluster --------------------------------------------------------------------------

    @property
    def is_given(self) -> bool:
        """Whether an option names the cluster, not only the environment."""
        return self.given_url is not None or self.profile is not None

    @property
    def url(self) -> str | None:
        """The URL of `--url`, or of FLUSS_URL where no option names the cluster."""
        return self.given_url if self.is_given else os.environ.get(URL_VARIABLE) or None

    @contextmanager
    def session(self, url: str | None = None) -> Iterator[Session]:
        """Open a session for one command.

        Args:
            url: A URL among the command's arguments; it replaces FLUSS_URL.

        Raises:
            BadParameter: `--url` names a cluster as well.
        """
        if url is not None and self.given_url is not None:
            raise typer.BadParameter(
                "--url and the URL of the table both name a cluster; leave one of them out"
            )
        with _connected(url or self.url, self.profile) as session:
            yield session

    @contextmanager
    def named(self, name: str) -> Iterator[tuple[Session, str]]:
        """Open a session, and return the name in it of a table given by name or by URL."""
        if not is_url(name):
            with self.session() as session:
                yield session, name
            return
        with self.session(name) as session:
            yield session, str(session.path_of())

    @contextmanager
    def table(self, name: str) -> Iterator[Table]:
        """Open a table by `database.table` or by its URL."""
        if is_url(name):
            with self.session(name) as session:
                yield session.table()
        else:
            with self.session() as session:
                yield session.table(name)


def _connected(url: str | None, profile: str | None) -> Session:
    """Open a session; a password that is missing is asked for on the terminal."""
    from fluss.session import connect

    try:
        return connect(url, profile=profile)
    except ConfigError as error:
        if error.facts.get("key") != _PASSWORD or not sys.stdin.isatty():
            raise
    return connect(
        url, profile=profile, password=typer.prompt("Password", hide_input=True, err=True)
    )


def is_url(name: str) -> bool:
    """Whether the name of a table is a URL."""
    return ":" in name


# --- the options themselves ---------------------------------------------------------------------


def declare(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            help="The cluster: host:9123, fluss://user@host:9123/database, or embedded:./folder. "
            "Without --url and --profile: FLUSS_URL, FLUSS_BOOTSTRAP_SERVERS, the default profile, "
            "or 127.0.0.1:9123.",
            metavar="URL",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            help="A profile of the configuration file; it overrides the environment.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        OutputFormat | None,
        typer.Option(
            "--output",
            "--format",
            "-o",
            help="How rows are written: table, json, csv or arrow. Default: a table on a screen, "
            "JSON lines in a pipe.",
            metavar="FORMAT",
            show_default=False,
        ),
    ] = None,
    *,
    is_quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Report errors only.")] = False,
    is_verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the log of the client.")
    ] = False,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="Draw no progress bars.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show errors with their traceback.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Apache Fluss tables from a terminal."""
    if version:
        from fluss import __version__

        typer.echo(f"fluss {__version__}")
        raise typer.Exit(0)
    _note_all(
        context,
        {
            "url": url,
            "profile": profile,
            "output": output,
            "is_quiet": is_quiet,
            "is_verbose": is_verbose,
            "no_progress": no_progress,
            "traceback": traceback,
        },
    )
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


_CLUSTER: Final = frozenset({"url", "profile"})


def add_global_options(command: Any, shared: Sequence[Any], *, connects: bool = True) -> None:
    """Let a command take the global options as well, except for names that it uses itself.

    Args:
        command: The command.
        shared: The parameters that typer made of `declare`.
        connects: Whether the command connects to a cluster.
    """
    taken = {each for parameter in command.params for each in parameter.opts}
    for option in shared:
        free = [each for each in option.opts if each not in taken]
        if option.name == "version" or not free:
            continue
        copied = copy.copy(option)
        copied.opts = free
        copied.hidden, copied.expose_value = True, False
        refused = option.name in _CLUSTER and not connects
        copied.callback = _refuse_one if refused else _note_one
        command.params.append(copied)


def refuse_cluster(context: Any, command: str) -> None:
    """Refuse options before a command that connects to no cluster, if they name one."""
    if any(context.params.get(name) is not None for name in _CLUSTER):
        raise _refused(f"fluss {command}")


def _refuse_one(context: Any, parameter: Any, value: Any) -> Any:  # noqa: ARG001 - as declared
    if value is not None:
        raise _refused(context.command_path)
    return value


def _refused(command: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"--url and --profile name a cluster to connect to, and `{command}` connects to none; "
        "leave them out"
    )


def options_of(context: Any) -> GlobalOptions:
    """Return the global options of a running command."""
    found: GlobalOptions = context.ensure_object(GlobalOptions)
    return found


def _note_one(context: Any, parameter: Any, value: Any) -> Any:
    _note_all(context, {parameter.name: value})
    return value


def _note_all(context: Any, given: dict[str, Any]) -> None:
    options = options_of(context)
    for name, value in given.items():
        if value is not None and value is not False:
            field = "given_url" if name == "url" else name
            shown = name.removeprefix("is_").replace("_", "-")
            options.note(field, f"--{shown}", value)
