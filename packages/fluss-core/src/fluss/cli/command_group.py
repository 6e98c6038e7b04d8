"""The group of all commands of `fluss`: it loads a command when it is used, and writes its help.

A command is loaded when it is used, because it imports Arrow or an engine: `fluss -h` and
completion know the names and summaries without loading one. Commands of other packages get the same
options, help and exit codes as our own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import cleandoc
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from fluss.cli.global_options import add_global_options, refuse_cluster
from fluss.cli.value_names import name_values
from fluss.errors import MissingExtraError
from fluss.install_hints import how_to_install

GROUP: Final = "fluss.commands"
EXAMPLES: Final = "\nExamples:\n"
_NOTE: Final = "Options of `fluss -h`, such as --url and -o, may stand here as well."
_ANY_WORDS: Final = {"ignore_unknown_options": True, "allow_extra_args": True}


class Section(StrEnum):
    """A heading of `fluss -h`."""

    READ = "Read"
    WRITE = "Write"
    DEFINE = "Define"
    POSITIONS = "Positions in logs"
    CLUSTER = "Clusters and settings"
    MORE = "More"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """A command, before it is loaded.

    Args:
        name: Its name.
        summary: Its line in `fluss -h`.
        section: Where it stands there.
        target: Its function or application, as `module:name`; None where another package has it.
        package: The package to install for it.
        connects: Whether it connects to a cluster.
    """

    name: str
    summary: str
    section: Section
    target: str | None = None
    package: str | None = None
    connects: bool = True


class FlussCommand(TyperCommand):
    """A command whose help ends with its examples, as they are written.

    An option whose `metavar` is in brackets may stand without its value, which is "" then.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command line."""
        bare = {
            name
            for option in self.params
            if (getattr(option, "metavar", None) or "").startswith("[")
            for name in option.opts
        }
        end = args.index("--") if "--" in args else len(args)
        following = [*args[1:], "--"]
        spelled = [
            f"{word}=" if word in bare and after.startswith("-") else word
            for word, after in zip(args[:end], following, strict=False)
        ]
        return super().parse_args(ctx, spelled + args[end:])

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as declared
        """Write what the command does."""
        _write_paragraphs(formatter, _parts_of(self.help)[0])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        _write_parameters(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as declared
        """Write the examples."""
        _write_examples(formatter, _parts_of(self.help)[1])
        formatter.write_paragraph()
        formatter.write_text(_NOTE)


class FlussGroup(TyperGroup):
    """A group of commands, such as `fluss partitions`; its commands take the global options."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first word names."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise _unknown(self, ctx, name)
        return super().resolve_command(ctx, args)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as declared
        """Write what the commands are about."""
        _write_paragraphs(formatter, _parts_of(self.help)[0])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        _write_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with the first sentence of its help."""
        found: dict[str, Any] = {
            name: self.get_command(ctx, name) for name in self.list_commands(ctx)
        }
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary_of(each.help)) for name, each in found.items()])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as declared
        """Write the examples."""
        _write_examples(formatter, _parts_of(self.help)[1])
        formatter.write_paragraph()
        formatter.write_text(_NOTE)


class RootGroup(TyperGroup):
    """The command `fluss`, which loads a command when it is used."""

    entries: Mapping[str, CommandEntry]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as declared
        """Return the names of all commands, in the order of the help."""
        return [each.name for each in self.all_entries()]

    def all_entries(self) -> Sequence[CommandEntry]:
        """Return our own commands, and those of other packages."""
        others = [
            CommandEntry(
                name=point.name,
                summary=f"A command of the package {_package_of(point)}.",
                section=Section.MORE,
            )
            for point in entry_points(group=GROUP)
            if point.name not in self.entries
        ]
        return [*self.entries.values(), *others]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - as declared
        """Load a command; None if there is none of this name."""
        if cmd_name not in self.commands:
            entry = self.entries.get(cmd_name)
            command = _loaded(cmd_name, entry)
            if command is None:
                return None
            _share_options(command, self.params, connects=entry is None or entry.connects)
            self.commands[cmd_name] = command
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first word names."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise _unknown(self, ctx, name)
        entry = self.entries.get(name)
        if entry is not None and not entry.connects:
            refuse_cluster(ctx, name)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; after Ctrl-C the shell's prompt begins a line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            if sys.stderr.isatty():  # the terminal has shown ^C on this line
                sys.stderr.write("\n")
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, then the options."""
        self.format_commands(ctx, formatter)
        records = [each.get_help_record(ctx) for each in self.get_params(ctx)]
        with formatter.section("Options"):
            formatter.write_dl([each for each in records if each is not None])

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as declared
        """Write the names and summaries, section by section."""
        found = self.all_entries()
        for section in Section:
            rows = [(each.name, each.summary) for each in found if each.section is section]
            if rows:
                with formatter.section(section.value):
                    formatter.write_dl(rows)


class UnknownCommandError(Exception):
    """No command has the name that was typed; the exit code is that of wrong usage."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def _unknown(group: Any, context: Any, name: str) -> UnknownCommandError:
    from fluss.model.did_you_mean import did_you_mean

    path = context.command_path
    words = f"{path} {name}".removeprefix("fluss ")
    hint = did_you_mean(name, group.list_commands(context))
    takes_tables = any("--table" in each.opts for each in group.params)
    if hint is None and takes_tables:
        hint = f"a table is an option: {path} --table {name}"
    return UnknownCommandError(
        f"There is no command {words!r}.", hint or f"{path} -h lists the commands"
    )


def root_of(
    declare: Callable[..., None], entries: Sequence[CommandEntry], help_text: str
) -> RootGroup:
    """Build the command `fluss`.

    Args:
        declare: The function whose parameters are the global options.
        entries: Our own commands.
        help_text: What `fluss -h` begins with.
    """
    app = typer.Typer(
        name="fluss",
        cls=RootGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=help_text, invoke_without_command=True)(declare)
    root = typer.main.get_command(app)
    if not isinstance(root, RootGroup):
        raise TypeError(f"typer made a {type(root).__name__} of the root group")
    root.entries = {each.name: each for each in entries}
    return root


def group_of(help_text: str, functions: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """Return an application of several commands, such as `fluss partitions ls`.

    Args:
        help_text: What they are about.
        functions: The function of each command.
    """
    app = typer.Typer(
        cls=FlussGroup,
        help=help_text,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
    )
    app.callback()(_nothing)
    for name, function in functions.items():
        app.command(name, cls=FlussCommand)(function)
    return app


def _nothing() -> None:
    """Do nothing: the options of the group are noted while they are parsed."""


# --- loading --------------------------------------------------------------------------------------


def _loaded(name: str, entry: CommandEntry | None) -> Any:
    if entry is not None and entry.target is not None:
        module, _, attribute = entry.target.partition(":")
        return _command_of(name, getattr(import_module(module), attribute))
    for point in entry_points(group=GROUP):
        if point.name == name:
            return _command_of(name, point.load())
    if entry is None or entry.package is None:
        return None
    return _command_of(name, _missing(name, entry.package), **_ANY_WORDS)


def _command_of(name: str, target: Any, **settings: Any) -> Any:
    """Build the command of a function, or of another application.

    An application with one command, or with only a callback, becomes one command.
    """
    if isinstance(target, typer.Typer):
        if target.registered_groups or len(target.registered_commands) > 1:
            group = typer.main.get_command(target)
            group.name = name
            return group
        target = _function_of(target)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=FlussCommand, context_settings=settings)(target)
    return typer.main.get_command(app)


def _function_of(other: typer.Typer) -> Callable[..., None]:
    """Return the function of the single command of another application."""
    if other.registered_callback is not None and not other.registered_commands:
        return other.registered_callback.callback or _nothing
    (command,) = other.registered_commands
    return command.callback or _nothing


def _share_options(command: Any, shared: Sequence[Any], *, connects: bool) -> None:
    name_values(command.params)
    add_global_options(command, shared, connects=connects)
    for inner in getattr(command, "commands", {}).values():
        _share_options(inner, shared, connects=connects)


def _missing(name: str, package: str) -> Callable[[], None]:
    def refuse() -> None:
        raise MissingExtraError(
            f"`fluss {name}` is in another package.", hint=how_to_install(package)
        )

    refuse.__doc__ = f"In another package: {how_to_install(package)}"
    return refuse


def _package_of(point: EntryPoint) -> str:
    if point.dist is not None:
        return point.dist.name
    return point.value.partition(":")[0].partition(".")[0]


# --- help -----------------------------------------------------------------------------------------


def _parts_of(help_text: str | None) -> tuple[str, str]:
    """Return what a command does, and its examples."""
    about, _, examples = cleandoc(help_text or "").partition(EXAMPLES)
    return about.strip(), cleandoc(examples)


def _summary_of(help_text: str | None) -> str:
    """Return the first sentence of a help."""
    paragraph = " ".join(_parts_of(help_text)[0].partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    """Write the arguments without the Python types that typer adds, and the options."""
    arguments, options = [], []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append((record[0].partition(" <")[0], record[1]))
        else:
            options.append(record)
    for title, records in (("Arguments", arguments), ("Options", options)):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def _write_paragraphs(formatter: Any, text: str) -> None:
    for paragraph in text.split("\n\n"):
        formatter.write_paragraph()
        if paragraph.startswith("    "):  # a block that is shown as it is written
            formatter.write("".join(f"  {line}\n" for line in paragraph.splitlines()))
            continue
        with formatter.indentation():
            formatter.write_text(paragraph)


def _write_examples(formatter: Any, text: str) -> None:
    if text:
        with formatter.section("Examples"):
            for line in text.splitlines():
                formatter.write(f"  {line}".rstrip() + "\n")
