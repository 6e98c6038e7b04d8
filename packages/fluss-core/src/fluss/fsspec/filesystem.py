"""`FlussFileSystem`: databases, tables and partitions as directories, rows and schemas as files.

What a path means is said in `places`, how rows become bytes in `streams`. Each call asks the
cluster anew, so nothing that is shown is older than the call. Nothing can be written.
"""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Coroutine
from typing import Any, NoReturn

import fsspec

from fluss.admin.admin import AdminCore, admin_of
from fluss.connection.config_sources import Settings, resolve, written
from fluss.connection.shared_connections import connection_for
from fluss.connection.url import parse_url
from fluss.errors import (
    DatabaseNotFoundError,
    FlussError,
    InvalidNameError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from fluss.fsspec.streams import ArrowFile
from fluss.fsspec.virtual_paths import (
    ROWS,
    SCHEMA,
    SCHEME,
    VirtualPath,
    missing,
    place_of,
    split_url,
)
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.config import Config
from fluss.model.options.secrets import is_marker
from fluss.session import Scan, Table, source_of

Info = dict[str, Any]

# A partition that only an option names is no place, and stays the error it is.
_NOT_THERE = (DatabaseNotFoundError, TableNotFoundError, InvalidNameError)


class FlussFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc] # fsspec ships no types
    """A cluster as files, for reading only; `fsspec.filesystem("fluss")` makes it.

    Args:
        servers: The bootstrap servers, with the user and password before an `@` where the cluster
            asks for them; the active session, the environment or the profile say so otherwise.
        config: Further settings of the client.
        **storage_options: What fsspec itself takes.

    Example:
        >>> files = fsspec.filesystem("fluss", servers="127.0.0.1:9123")  # doctest: +SKIP
        >>> files.ls("sales")  # doctest: +SKIP
        ['sales/orders']
    """

    protocol = "fluss"
    root_marker = ""

    def __init__(
        self, servers: str = "", *, config: Settings = None, **storage_options: Any
    ) -> None:
        super().__init__(**storage_options)
        self._config: Settings = None if config is None else written(config)
        self._shown = SCHEME
        if servers:
            url = parse_url(f"{SCHEME}{servers}")
            self._config = {**written(config), **url.to_settings()}
            self._shown = str(url)

    # --- URLs ---------------------------------------------------------------------------------

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        return split_url(str(path))[1]

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        servers, _ = split_url(path)
        return {"servers": servers} if servers else {}

    def unstrip_protocol(self, name: str) -> str:
        """The URL of a path, without a password."""
        return f"{self._shown.rstrip('/')}/{self._strip_protocol(name)}"

    @property
    def fsid(self) -> str:
        """What tells this file system from others."""
        return self._shown

    # --- looking around -----------------------------------------------------------------------

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:  # noqa: FBT001, FBT002 - fsspec's
        """What is in a directory; a file is listed as itself.

        Raises:
            FileNotFoundError: There is no such place; the text names the nearest.
        """
        place = place_of(self._strip_protocol(path))
        listed = [self._info(place)] if place.file is not None else self._listed(place)
        return listed if detail else [each["name"] for each in listed]

    def info(self, path: str, **_: Any) -> Info:
        """What is at a path.

        Raises:
            FileNotFoundError: There is no such place; the text names the nearest.
        """
        return self._info(place_of(self._strip_protocol(path)))

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is something at a path. A cluster that gives no answer is an error."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def isfile(self, path: str) -> bool:
        """Whether there is a file at a path."""
        return self.exists(path) and self.info(path)["type"] == "file"

    def isdir(self, path: str) -> bool:
        """Whether there is a directory at a path."""
        return self.exists(path) and self.info(path)["type"] == "directory"

    def expand_path(self, path: Any, **how: Any) -> list[str]:
        """The paths that a pattern stands for; options behind a question mark are no pattern."""
        given = [path] if isinstance(path, str) else list(path)
        literal = [each for each in map(self._strip_protocol, given) if f"{ROWS}?" in each]
        patterns = [each for each in map(self._strip_protocol, given) if f"{ROWS}?" not in each]
        expanded: list[str] = super().expand_path(patterns, **how) if patterns else []
        return [*literal, *expanded]

    # --- reading ------------------------------------------------------------------------------

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BufferedIOBase:
        if mode not in {"rb", "r"}:
            raise self._read_only(f"open(mode={mode!r})", path)
        place = place_of(self._strip_protocol(path))
        if place.file is None:
            self._info(place)  # refuses what is not there
            raise IsADirectoryError(errno.EISDIR, "This is a directory of Fluss", place.path)
        if place.file == SCHEMA:
            return io.BytesIO(_schema_json(self._table(place)))
        return ArrowFile(self._scan(place).to_reader(), place.path)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """A file's bytes, or some of them; the rows before those are read all the same."""
        with self._open(path) as file:
            whole: bytes = file.read()
        return whole[start:end]

    # --- what is there ------------------------------------------------------------------------

    def _listed(self, place: VirtualPath) -> list[Info]:
        if place.database is None:
            return [_directory(each) for each in sorted(self._run(self._admin.list_databases()))]
        if place.table is None:
            return [
                _directory(f"{place.path}/{each}")
                for each in sorted(self._asked(place, self._admin.list_tables(place.database)))
            ]
        table = self._table(place)
        if place.partition is not None:
            self._check_partition(place, table)
            return [_file(f"{place.path}/{ROWS}")]
        schema = _file(f"{place.path}/{SCHEMA}", size=len(_schema_json(table)))
        return [schema, _file(f"{place.path}/{ROWS}"), *self._partitions(place, table)]

    def _info(self, place: VirtualPath) -> Info:
        if place.database is None:
            return _directory("")
        if place.table is None:
            self._asked(place, self._admin.list_tables(place.database))
            return _directory(place.path)
        table = self._table(place)
        if place.partition is not None:
            self._check_partition(place, table)
        if place.file is None:
            return _directory(place.path)
        if place.file == SCHEMA:
            return _file(place.path, size=len(_schema_json(table)))
        return _file(place.path)

    def _partitions(self, place: VirtualPath, table: Table) -> list[Info]:
        if not table.partition_by:
            return []
        return [_directory(f"{place.path}/{each.partition_name}") for each in table.partitions()]

    def _check_partition(self, place: VirtualPath, table: Table) -> None:
        names = [each.partition_name for each in table.partitions()] if table.partition_by else []
        if place.partition not in names:
            hint = did_you_mean(place.partition or "", names)
            raise missing(place.path, f"{table.name} has no partition {place.partition!r}", hint)

    def _scan(self, place: VirtualPath) -> Scan:
        options = dict(place.options)
        if place.partition is not None:
            self._check_partition(place, self._table(place))
            if "partitions" in options:
                raise UnsupportedOperationError(
                    f"{place.path} is one partition, and partitions= chooses others.",
                    hint="leave it out, or open the file of the whole table",
                )
            options["partitions"] = place.partition
        try:
            source = source_of(place.table_name, options, config=self._config)
            scan = Scan(source.open().core, source.options)
            scan.splits()  # pinned now, so that what is wrong is told here and not by a read
        except _NOT_THERE as error:
            raise _as_missing(place, error) from error
        return scan

    def _table(self, place: VirtualPath) -> Table:
        try:
            return source_of(place.table_name, config=self._config).open()
        except _NOT_THERE as error:
            raise _as_missing(place, error) from error

    @property
    def _admin(self) -> AdminCore:
        return admin_of(connection_for(resolve(self._config).config))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return connection_for(resolve(self._config).config).engine.run(work)

    def _asked(self, place: VirtualPath, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self._run(work)
        except _NOT_THERE as error:
            raise _as_missing(place, error) from error

    # --- what is refused ----------------------------------------------------------------------

    def _refuse(self, *arguments: Any, **_: Any) -> NoReturn:
        path = next((each for each in arguments if isinstance(each, str)), "")
        raise self._read_only("Writing", path)

    # fsspec takes some of these for done where a file system says nothing.
    mkdir = makedirs = rmdir = rm = rm_file = _rm = cp_file = copy = mv = put_file = put = _refuse
    pipe = pipe_file = touch = _refuse

    def _read_only(self, what: str, path: str) -> OSError:
        return OSError(
            errno.EROFS,
            f"{what} is refused: the files of Fluss are for reading. Rows are written with "
            "table.append(...), df.fluss.append(...), or a writer",
            self._strip_protocol(path),
        )

    # --- travelling ---------------------------------------------------------------------------

    @property
    def storage_args(self) -> tuple[Any, ...]:
        """None: the servers stand among the options, and there without a password."""
        return ()

    @storage_args.setter
    def storage_args(self, args: tuple[Any, ...]) -> None:
        """Fsspec sets what it was called with."""

    @property
    def storage_options(self) -> dict[str, Any]:
        """What it was made with, as fsspec pickles and prints it: without a password.

        The environment or the profile gives that on the other side.
        """
        servers = self._shown.removeprefix(SCHEME).strip("/")
        return {**self._storage_options, **({"servers": servers} if servers else {})}

    @storage_options.setter
    def storage_options(self, options: dict[str, Any]) -> None:
        hidden = {"servers", "config"}
        self._storage_options = {name: options[name] for name in options if name not in hidden}
        config = written(options.get("config"))
        if config:
            self._storage_options["config"] = {
                key: value
                for key, value in config.items()
                if not Config.option(key).secret or is_marker(value)
            }


def _as_missing(place: VirtualPath, error: FlussError) -> FileNotFoundError:
    return missing(place.path, error.message.rstrip("."), error.hint)


def _directory(path: str) -> Info:
    return {"name": path, "type": "directory", "size": 0}


def _file(path: str, size: int | None = None) -> Info:
    return {"name": path, "type": "file", "size": size}


def _schema_json(table: Table) -> bytes:
    info = table.info
    told = {
        "table": table.name,
        "columns": [
            {
                "name": each.name,
                "type": str(each.data_type.as_nullable()),
                "nullable": each.data_type.nullable,
                "comment": each.comment,
            }
            for each in info.schema.columns
        ],
        "primary_key": list(info.primary_keys),
        "partition_by": list(info.partition_keys),
        "bucket_key": list(info.bucket_keys),
        "buckets": info.num_buckets,
        "comment": info.comment,
    }
    return (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode()
