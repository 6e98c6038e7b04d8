"""`FlussFileSystem`: databases, tables and partitions as directories, rows and schemas as files.

`virtual_paths` parses paths, `streams` encodes rows. Each call asks the cluster, so no listing is
older than the call. Nothing can be written.
"""

from __future__ import annotations

import errno
import io
import json
from typing import Any, NoReturn

import fsspec

from fluss.connection.config_sources import Settings, written
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
    not_found,
    parse_path,
    split_url,
)
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.config import Config
from fluss.model.options.secrets import is_marker
from fluss.scan import Scan, source_of
from fluss.session import Session, Table, open_table, session_for

Info = dict[str, Any]

# A missing partition is not among them: an option that names one keeps its own error.
_NOT_FOUND = (DatabaseNotFoundError, TableNotFoundError, InvalidNameError)


class FlussFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc] # fsspec ships no types
    """A cluster as files, for reading only; `fsspec.filesystem("fluss")` makes it.

    Args:
        servers: The bootstrap servers, after the user, the password and an `@` if the cluster
            requires a login; the active session, the environment or the profile otherwise.
        config: Further settings of the client.
        **storage_options: Options of fsspec itself.

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
        """Return the URL of a path, without a password."""
        return f"{self._shown.rstrip('/')}/{self._strip_protocol(name)}"

    @property
    def fsid(self) -> str:
        """The identity of this file system."""
        return self._shown

    # --- browsing -----------------------------------------------------------------------------

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:  # noqa: FBT001, FBT002 - fsspec's
        """List a directory; a file is listed as itself.

        Raises:
            FileNotFoundError: There is no such path; the text names the nearest.
        """
        parsed = parse_path(self._strip_protocol(path))
        listed = [self._info(parsed)] if parsed.file is not None else self._listed(parsed)
        return listed if detail else [each["name"] for each in listed]

    def info(self, path: str, **_: Any) -> Info:
        """Return what a path is.

        Raises:
            FileNotFoundError: There is no such path; the text names the nearest.
        """
        return self._info(parse_path(self._strip_protocol(path)))

    def exists(self, path: str, **_: Any) -> bool:
        """Return whether a path exists. A cluster that does not answer is an error."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def isfile(self, path: str) -> bool:
        """Return whether a path is a file."""
        return self.exists(path) and self.info(path)["type"] == "file"

    def isdir(self, path: str) -> bool:
        """Return whether a path is a directory."""
        return self.exists(path) and self.info(path)["type"] == "directory"

    def expand_path(self, path: Any, **how: Any) -> list[str]:
        """Expand patterns; a path with options is not a pattern, despite its question mark."""
        given = [path] if isinstance(path, str) else list(path)
        literal = [each for each in map(self._strip_protocol, given) if f"{ROWS}?" in each]
        patterns = [each for each in map(self._strip_protocol, given) if f"{ROWS}?" not in each]
        expanded: list[str] = super().expand_path(patterns, **how) if patterns else []
        return [*literal, *expanded]

    # --- reading ------------------------------------------------------------------------------

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BufferedIOBase:
        if mode not in {"rb", "r"}:
            raise self._read_only(f"open(mode={mode!r})", path)
        parsed = parse_path(self._strip_protocol(path))
        if parsed.file is None:
            self._info(parsed)  # raises if it does not exist
            raise IsADirectoryError(errno.EISDIR, "This is a directory of Fluss", parsed.path)
        if parsed.file == SCHEMA:
            return io.BytesIO(_schema_json(self._table(parsed)))
        return ArrowFile(self._scan(parsed).read(), parsed.path)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Return the bytes of a file, or a range; the rows before the range are read, too."""
        with self._open(path) as file:
            whole: bytes = file.read()
        return whole[start:end]

    # --- listing and facts --------------------------------------------------------------------

    def _listed(self, path: VirtualPath) -> list[Info]:
        if path.database is None:
            return [_directory(each) for each in self._session.databases()]
        if path.table is None:
            return [_directory(f"{path.path}/{each}") for each in self._tables(path)]
        table = self._table(path)
        if path.partition is not None:
            self._check_partition(path, table)
            return [_file(f"{path.path}/{ROWS}")]
        schema = _file(f"{path.path}/{SCHEMA}", size=len(_schema_json(table)))
        return [schema, _file(f"{path.path}/{ROWS}"), *self._partitions(path, table)]

    def _info(self, path: VirtualPath) -> Info:
        if path.database is None:
            return _directory("")
        if path.table is None:
            self._tables(path)
            return _directory(path.path)
        table = self._table(path)
        if path.partition is not None:
            self._check_partition(path, table)
        if path.file is None:
            return _directory(path.path)
        if path.file == SCHEMA:
            return _file(path.path, size=len(_schema_json(table)))
        return _file(path.path)

    def _partitions(self, path: VirtualPath, table: Table) -> list[Info]:
        if not table.partition_by:
            return []
        return [_directory(f"{path.path}/{each.partition_name}") for each in table.partitions()]

    def _check_partition(self, path: VirtualPath, table: Table) -> None:
        names = [each.partition_name for each in table.partitions()] if table.partition_by else []
        if path.partition not in names:
            hint = did_you_mean(path.partition or "", names)
            raise not_found(path.path, f"{table.name} has no partition {path.partition!r}", hint)

    def _scan(self, path: VirtualPath) -> Scan:
        options = dict(path.options)
        if path.partition is not None:
            self._check_partition(path, self._table(path))
            if "partitions" in options:
                raise UnsupportedOperationError(
                    f"{path.path} is one partition, and partitions= chooses others.",
                    hint="leave it out, or open the file of the whole table",
                )
            options["partitions"] = path.partition
        try:
            scan = source_of(path.table_name, options, config=self._config).scan()
            scan.splits()  # planned now, so that errors are raised here and not by a read
        except _NOT_FOUND as error:
            raise _as_missing(path, error) from error
        return scan

    def _table(self, path: VirtualPath) -> Table:
        try:
            return open_table(path.table_name, config=self._config)
        except _NOT_FOUND as error:
            raise _as_missing(path, error) from error

    @property
    def _session(self) -> Session:
        return session_for(self._config)

    def _tables(self, path: VirtualPath) -> list[str]:
        try:
            return self._session.tables(path.database)
        except _NOT_FOUND as error:
            raise _as_missing(path, error) from error

    # --- refused operations ------------------------------------------------------------------

    def _refuse(self, *arguments: Any, **_: Any) -> NoReturn:
        path = next((each for each in arguments if isinstance(each, str)), "")
        raise self._read_only("Writing", path)

    # Without these, fsspec reports success for some of them.
    mkdir = makedirs = rmdir = rm = rm_file = _rm = cp_file = copy = mv = put_file = put = _refuse
    pipe = pipe_file = touch = _refuse

    def _read_only(self, what: str, path: str) -> OSError:
        return OSError(
            errno.EROFS,
            f"{what} is refused: the files of Fluss are read-only. Rows are written with "
            "table.append(...), df.fluss.append(...), or a writer",
            self._strip_protocol(path),
        )

    # --- pickling ----------------------------------------------------------------------------

    @property
    def storage_args(self) -> tuple[Any, ...]:
        """Empty: the servers are among the options, without a password."""
        return ()

    @storage_args.setter
    def storage_args(self, args: tuple[Any, ...]) -> None:
        """Ignored; fsspec sets the arguments of the call."""

    @property
    def storage_options(self) -> dict[str, Any]:
        """Its options, as fsspec pickles and prints them: without a password.

        After unpickling, the password comes from the environment or the profile.
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


def _as_missing(path: VirtualPath, error: FlussError) -> FileNotFoundError:
    return not_found(path.path, error.message.rstrip("."), error.hint)


def _directory(path: str) -> Info:
    return {"name": path, "type": "directory", "size": 0}


def _file(path: str, size: int | None = None) -> Info:
    return {"name": path, "type": "file", "size": size}


def _schema_json(table: Table) -> bytes:
    info = table.info
    facts = {
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
    return (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode()
