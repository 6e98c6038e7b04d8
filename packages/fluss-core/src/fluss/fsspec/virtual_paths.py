"""Paths in the file system, and what each of them is.

    database                                   a directory of tables
    database/table                             a directory
    database/table/schema.json                 columns and keys
    database/table/data.arrow?columns=a,b      the rows, as a stream of Arrow
    database/table/partition/data.arrow        those of one partition

What follows the question mark are options of a scan; the table may have `$changelog` or `$binlog`
behind it. Only text is looked at.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from fluss.errors import ConfigError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.scan_options import SCAN_OPTIONS

ROWS = "data.arrow"
SCHEMA = "schema.json"
FILES = (SCHEMA, ROWS)
SCHEME = "fluss://"
LENGTH_MAX = 16 * 1024
_DEPTH_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualPath:
    """What a path names; nothing at all is the directory of databases.

    Attributes:
        path: The path without the options.
        file: The file's own name; None for a directory.
        options: Options of the scan.
    """

    path: str
    database: str | None = None
    table: str | None = None
    partition: str | None = None
    file: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def table_name(self) -> str:
        """`database.table`."""
        return f"{self.database}.{self.table}"


def split_url(url: str) -> tuple[str, str]:
    """The servers with the login, and the path, of a URL or of a path alone."""
    text = url.removeprefix(SCHEME)
    if text == url:
        return "", url.strip("/")
    path, mark, query = text.partition("?")
    login, at, behind = path.rpartition("@")  # a password may hold a slash
    hosts, _, path = behind.partition("/")
    return f"{login}{at}{hosts}", f"{path.strip('/')}{mark}{query}"


def place_of(path: str) -> VirtualPath:
    """What a path names.

    Raises:
        FileNotFoundError: Nothing of this kind is in the file system.
        ConfigError: Its options are none of a scan.
    """
    if len(path) > LENGTH_MAX:
        raise missing(f"{path[:40]}…", f"a path of {len(path)} characters is none")
    plain, _, query = path.partition("?")
    parts = [unquote(each) for each in plain.strip("/").split("/") if each]
    file = parts.pop() if parts and "." in parts[-1] else None
    if len(parts) >= _DEPTH_MAX:
        raise missing(plain, "tables have no directories but their partitions")
    database, table, partition = [*parts, None, None, None][:3]
    place = VirtualPath(
        path="/".join([*parts, *([file] if file else [])]),
        database=database,
        table=table,
        partition=partition,
        file=file,
        options=_options(query),
    )
    _check_file(place)
    return place


def missing(path: str, why: str, hint: str | None = None) -> FileNotFoundError:
    """The error for a path that leads nowhere; `hint` is what was probably meant."""
    text = f"There is no such place in Fluss: {why}"
    return FileNotFoundError(errno.ENOENT, text if hint is None else f"{text}; {hint}", path)


def _check_file(place: VirtualPath) -> None:
    file = place.file
    if file is None:
        if place.options:
            raise ConfigError(
                f"{place.path!r} is a directory, and options belong to {ROWS}.",
                hint=f"write {place.path}/{ROWS}?{next(iter(place.options))}=…",
            )
        return
    known = FILES if place.partition is None else (ROWS,)
    if place.table is None:
        table = f"{file.replace('.', '/')}" if place.database is None else None
        hint = f"a table is named {table!r} here" if table else f"tables hold {' and '.join(FILES)}"
        raise missing(place.path, f"{file!r} is no database and no table", hint)
    if file not in known:
        hint = did_you_mean(file, known) or f"there is {' and '.join(known)}"
        raise missing(place.path, f"a table holds no file {file!r}", hint)
    if file == SCHEMA and place.options:
        raise ConfigError(f"{SCHEMA} has no options; {ROWS} has.")


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        raw, equals, value = part.partition("=")
        name = unquote(raw)
        if name == "filter" or name not in SCAN_OPTIONS:
            known = [each for each in SCAN_OPTIONS if each != "filter"]
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise ConfigError(f"A file of rows has no option {name!r}.", hint=hint, key=name)
        if not equals:
            raise ConfigError(f"The option {name!r} has no value.", hint="write name=value")
        if name in options:
            raise ConfigError(f"The option {name!r} is given twice.", key=name)
        options[name] = unquote(value)
    return options
