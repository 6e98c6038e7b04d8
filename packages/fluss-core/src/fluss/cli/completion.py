"""Completes the line that a shell passes: commands, options, their values, tables and columns.

The words before the cursor choose a command and a parameter of it; the name of the parameter says
what its values are. Nothing here loads Arrow, and an error means no candidates: a completion that
fails must not disturb the line that is being typed.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fluss.cli.global_options import GlobalOptions

Candidate = tuple[str, str]  # the word, and what it means


def complete(root: Any, environ: Mapping[str, str]) -> int:
    """Write the candidates for the line in the environment, one in each line."""
    try:
        words, incomplete = split_line(environ.get("_FLUSS_LINE", ""))
        found = list(candidates(root, words[1:], incomplete))
    except Exception:  # noqa: BLE001 - see above
        return 1
    shell = environ["_FLUSS_COMPLETE"]
    for word, meaning in found:
        sys.stdout.write(f"{_shown(shell, word, meaning, incomplete, environ)}\n")
    sys.stdout.flush()
    return 0


def split_line(line: str) -> tuple[list[str], str]:
    """Return the words of a line before its last one, and the last one, as far as it is typed."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words = list(_words(lexer, words))
    except ValueError:  # a quote that is not closed
        return words, lexer.token or ""
    if not words or line[-1].isspace():
        return words, ""
    return words[:-1], words[-1]


def _words(lexer: shlex.shlex, words: list[str]) -> list[str]:
    while (word := lexer.get_token()) is not None:
        words.append(word)
    return words


def _shown(shell: str, word: str, meaning: str, incomplete: str, environ: Mapping[str, str]) -> str:
    if shell == "bash":
        # Bash replaces only what follows the last of these characters.
        breaks = environ.get("_FLUSS_BREAKS", "")
        kept = max((incomplete.rfind(each) + 1 for each in breaks if each in "=:@"), default=0)
        return word[kept:] if word.startswith(incomplete[:kept]) else word
    about = meaning.partition("\n")[0]
    if shell == "zsh":
        word = word.replace("\\", "\\\\").replace(":", "\\:")
    return f"{word}\t{about}" if about else word


# --- the place of the cursor ----------------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """What the words before the cursor say.

    Attributes:
        command: The command.
        arguments: The arguments of the command so far.
        options: The options so far, by the name of their parameter.
        pending: The option whose value comes next.
        is_open: Whether options may follow; not after `--`.
    """

    command: Any
    arguments: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    pending: Any = None
    is_open: bool = True

    def take(self, word: str) -> bool:
        """Go on by a word; return whether it fits."""
        if self.pending is not None:
            self.options[self.pending.name] = word
            self.pending = None
        elif self.is_open and word == "--":
            self.is_open = False
        elif self.is_open and word.startswith("-") and word != "-":
            self._take_option(word)
        elif hasattr(self.command, "commands"):
            self.command = self.command.get_command(None, word)
            return self.command is not None
        else:
            self.arguments.append(word)
        return True

    def _take_option(self, word: str) -> None:
        name, sign, value = word.partition("=")
        option = self.option(name)
        if option is None or option.is_flag:
            return
        if sign:
            self.options[option.name] = value
        else:
            self.pending = option

    def option(self, name: str) -> Any:
        """Return the option of a name; None if there is none."""
        return next((each for each in self.command.params if name in each.opts), None)

    def argument(self) -> Any:
        """Return the argument that comes next; None after the last."""
        declared = [each for each in self.command.params if each.param_type_name == "argument"]
        if len(self.arguments) < len(declared):
            return declared[len(self.arguments)]
        return declared[-1] if declared and declared[-1].nargs == -1 else None

    def cluster(self) -> GlobalOptions:
        """Return the cluster that the line names."""
        return GlobalOptions(given_url=self.options.get("url"), profile=self.options.get("profile"))

    def table(self) -> str | None:
        """Return the table that the line names."""
        return self.arguments[0] if self.arguments and "." in self.arguments[0] else None


def candidates(root: Any, words: Iterable[str], incomplete: str) -> Iterator[Candidate]:
    """Return what may stand at the cursor.

    Args:
        root: The command line.
        words: The words before the cursor, without the name of the program.
        incomplete: The beginning of the word at the cursor.
    """
    place = _Place(root)
    if not all(map(place.take, words)):
        return
    if place.pending is not None:
        yield from _values(place, place.pending, incomplete)
    elif place.is_open and incomplete.startswith("-"):
        yield from _options(place, incomplete)
    elif hasattr(place.command, "commands"):
        yield from _fitting(_commands(place.command), incomplete)
    elif (argument := place.argument()) is not None:
        yield from _values(place, argument, incomplete)


def _commands(group: Any) -> Iterator[Candidate]:
    entries = getattr(group, "all_entries", None)
    if entries is not None:
        for entry in entries():
            yield entry.name, entry.summary
        return
    for name, command in group.commands.items():
        yield name, (command.help or "").partition("\n")[0]


def _options(place: _Place, incomplete: str) -> Iterator[Candidate]:
    name, sign, value = incomplete.partition("=")
    if sign:
        option = place.option(name)
        if option is not None and not option.is_flag:
            for word, meaning in _values(place, option, value):
                yield f"{name}={word}", meaning
        return
    listed = [
        (opt, each.help or "")
        for each in place.command.params
        if each.param_type_name == "option" and (each.multiple or each.name not in place.options)
        for opt in each.opts
        if opt.startswith("--")
    ]
    yield from _fitting([*listed, ("--help", "Show the help.")], incomplete)


def _fitting(found: Iterable[Candidate], incomplete: str) -> Iterator[Candidate]:
    return (each for each in found if each[0].startswith(incomplete))


# --- values ---------------------------------------------------------------------------------------

_LISTS: Final = frozenset({"columns", "primary_key", "partition_by", "bucket_key"})
_BOUNDS: Final = ("earliest", "latest", "-10m", "-1h", "-1d")


def _values(place: _Place, parameter: Any, incomplete: str) -> Iterator[Candidate]:
    """Return the values that a parameter may have."""
    choices = _choices(parameter)
    if choices:
        yield from _fitting([(each, "") for each in choices], incomplete)
        return
    finder = _FINDERS.get(parameter.name)
    if finder is not None:
        yield from _fitting([(each, "") for each in finder(place, incomplete)], incomplete)


def _choices(parameter: Any) -> list[str]:
    # A release of typer describes types itself; those before it use click's.
    described = getattr(parameter, "type_descriptor", None) or getattr(parameter, "type", None)
    found = getattr(described, "choices", None) or ()
    return [str(getattr(each, "value", each)) for each in found]


def _asked(place: _Place, ask: Any) -> list[str]:
    from fluss.admin.name_lists import names_at

    cluster = place.cluster()
    return names_at(cluster.url, cluster.profile, ask)


def _tables(place: _Place, incomplete: str) -> list[str]:
    from fluss.admin.name_lists import table_names

    return _asked(place, table_names(incomplete))


def _databases(place: _Place, incomplete: str) -> list[str]:
    from fluss.admin.name_lists import database_names

    return _asked(place, database_names(incomplete))


def _databases_and_tables(place: _Place, incomplete: str) -> list[str]:
    databases = [] if "." in incomplete else _databases(place, incomplete)
    return [*databases, *_tables(place, incomplete)]


def _columns(place: _Place, incomplete: str) -> list[str]:
    """Return lists of columns: what is typed up to the last comma, and one more."""
    from fluss.admin.name_lists import column_names

    before, comma, _ = incomplete.rpartition(",")
    table = place.table()
    if table is None:
        return []
    taken = before.split(",")
    found = _asked(place, column_names(table))
    return [f"{before}{comma}{each}" for each in found if each not in taken]


def _cells(place: _Place, incomplete: str) -> list[str]:
    """Return `column=` for each column that the line does not have yet."""
    from fluss.admin.name_lists import column_names

    table = place.table()
    if table is None or "=" in incomplete or incomplete.startswith("{"):
        return []
    taken = {each.partition("=")[0] for each in place.arguments[1:]}
    found = _asked(place, column_names(table))
    return [f"{each}=" for each in found if each not in taken]


def _keys(place: _Place, incomplete: str) -> list[str]:
    from fluss.admin.name_lists import column_names

    table = place.table()
    before, comma, last = incomplete.rpartition(",")
    if table is None or "=" in last:
        return []
    taken = [each.partition("=")[0] for each in before.split(",")]
    found = _asked(place, column_names(table, only_key=True))
    return [f"{before}{comma}{each}=" for each in found if each not in taken]


def _partitions(place: _Place, incomplete: str) -> list[str]:  # noqa: ARG001 - a finder
    from fluss.admin.name_lists import partition_names

    table = place.table()
    return [] if table is None else _asked(place, partition_names(table))


def _profiles(place: _Place, incomplete: str) -> list[str]:  # noqa: ARG001 - a finder
    from fluss.connection.profiles import read_profiles

    return list(read_profiles(os.environ).profiles)


def _modes(place: _Place, incomplete: str) -> list[str]:  # noqa: ARG001 - a finder
    from fluss.scan import Mode

    return [each.value for each in Mode]


def _lakes(place: _Place, incomplete: str) -> list[str]:  # noqa: ARG001 - a finder
    from fluss.scan import LakeUse

    return [each.value for each in LakeUse]


def _bounds(place: _Place, incomplete: str) -> Sequence[str]:  # noqa: ARG001 - a finder
    return _BOUNDS


def _properties(place: _Place, incomplete: str) -> list[str]:  # noqa: ARG001 - a finder
    from fluss.model.tables.table_options import TableOptions

    return [f"{each}=" for each in TableOptions.OPTIONS]


def _property_names(place: _Place, incomplete: str) -> list[str]:
    return [each.removesuffix("=") for each in _properties(place, incomplete)]


_FINDERS: Final[Mapping[str, Callable[[_Place, str], Sequence[str]]]] = {
    "name": _tables,
    "table": _tables,
    "like": _tables,
    "names": _databases_and_tables,
    "database_or_table": _databases_and_tables,
    **dict.fromkeys(_LISTS, _columns),
    "auto_increment": _columns,
    "row": _cells,
    "keys": _keys,
    "partitions": _partitions,
    "profile": _profiles,
    "profile_name": _profiles,
    "mode": _modes,
    "lake": _lakes,
    "start": _bounds,
    "end": _bounds,
    "at": _bounds,
    "properties": _properties,
    "reset": _property_names,
}
