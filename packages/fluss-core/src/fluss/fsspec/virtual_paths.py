"""Parses paths of the file system.

    database                                   a directory of tables
    database/table                             a directory
    database/table/schema.json                 columns and keys
    database/table/data.arrow?columns=a,b      the rows, as a stream of Arrow
    database/table/partition/data.arrow        those of one partition

Options of the scan follow the question mark, their values percent-encoded (`filter=id%20%3E%205`);
the table may be followed by `$changelog` or `$binlog`. Only the text is parsed; no server is asked.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from fluss.errors import ConfigError
from fluss.model.did_you_mean import did_you_mean
from fluss.scan import SCAN_OPTIONS

ROWS = "data.arrow"
SCHEMA = "schema.json"
FILES = (SCHEMA, ROWS)
SCHEME = "fluss://"
LENGTH_MAX = 16 * 1024
_DEPTH_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualPath:
    """What a path names; an empty path is the directory of databases.

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
    """Split a URL into servers with the login, and a path; a path has no servers."""
    text = url.removeprefix(SCHEME)
    if text == url:
        return "", url.strip("/")
    path, mark, query = text.partition("?")
    login, at, rest = path.rpartition("@")  # a password may contain a slash
    hosts, _, path = rest.partition("/")
    return f"{login}{at}{hosts}", f"{path.strip('/')}{mark}{query}"


def parse_path(path: str) -> VirtualPath:
    """Parse a path.

    Raises:
        FileNotFoundError: The file system has no such paths.
        ConfigError: An option is unknown.
    """
    if len(path) > LENGTH_MAX:
        raise not_found(f"{path[:40]}…", f"a path of {len(path)} characters is too long")
    plain, _, query = path.partition("?")
    parts = [unquote(each) for each in plain.strip("/").split("/") if each]
    file = parts.pop() if parts and "." in parts[-1] else None
    if len(parts) >= _DEPTH_MAX:
        raise not_found(plain, "tables have no directories but their partitions")
    database, table, partition = [*parts, None, None, None][:3]
    parsed = VirtualPath(
        path="/".join([*parts, *([file] if file else [])]),
        database=database,
        table=table,
        partition=partition,
        file=file,
        options=_options(query),
    )
    _check_file(parsed)
    return parsed


def not_found(path: str, why: str, hint: str | None = None) -> FileNotFoundError:
    """Return the error for a path that does not exist; `hint` suggests another."""
    text = f"There is no such path in Fluss: {why}"
    return FileNotFoundError(errno.ENOENT, text if hint is None else f"{text}; {hint}", path)


def _check_file(path: VirtualPath) -> None:
    file = path.file
    if file is None:
        if path.options:
            raise ConfigError(
                f"{path.path!r} is a directory, and options belong to {ROWS}.",
                hint=f"write {path.path}/{ROWS}?{next(iter(path.options))}=…",
            )
        return
    known = FILES if path.partition is None else (ROWS,)
    if path.table is None:
        table = f"{file.replace('.', '/')}" if path.database is None else None
        hint = f"a table is named {table!r} here" if table else f"tables have {' and '.join(FILES)}"
        raise not_found(path.path, f"{file!r} is neither a database nor a table", hint)
    if file not in known:
        hint = did_you_mean(file, known) or f"it has {' and '.join(known)}"
        raise not_found(path.path, f"a table has no file {file!r}", hint)
    if file == SCHEMA and path.options:
        raise ConfigError(f"{SCHEMA} has no options; {ROWS} has.")


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        raw, equals, value = part.partition("=")
        name = unquote(raw)
        if name not in SCAN_OPTIONS:
            hint = did_you_mean(name, SCAN_OPTIONS) or f"the options are {', '.join(SCAN_OPTIONS)}"
            raise ConfigError(f"A file of rows has no option {name!r}.", hint=hint, key=name)
        if not equals:
            raise ConfigError(f"The option {name!r} has no value.", hint="write name=value")
        if name in options:
            raise ConfigError(f"The path has the option {name!r} twice.", key=name)
        options[name] = unquote(value)
    return options
