"""Translates errors of catalogs and files into Fluss's errors, and hides secrets in their texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote

import pyarrow as pa
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    ForbiddenError,
    NotInstalledError,
    OAuthError,
    UnauthorizedError,
)
from pyiceberg.table import Table

from fluss.errors import (
    AuthenticationError,
    AuthorizationError,
    ConnectError,
    CorruptDataError,
    FlussError,
    MissingExtraError,
    SnapshotNotFoundError,
)
from fluss.lake.lake_format import without_lake
from fluss.model.options.secrets import HIDDEN, without_login
from fluss.model.tables.table_info import TableInfo

WHY_CHARS_MAX: Final = 300
_SECRET_NAMES: Final = ("password", "secret", "token", "credential", "access-key")
_NO_LOGIN: Final = re.compile(
    r"authentication failed|no password supplied|access[_ ]?denied|InvalidAccessKeyId"
    r"|SignatureDoesNotMatch|ExpiredToken|InvalidToken|does not exist.*role|role .* does not exist"
    # An answer to HEAD has no body, so an expired token is known by its status alone.
    r"|HTTP status (?:400|401|403)\) during Head",
    re.IGNORECASE,
)
_NO_SERVER: Final = re.compile(
    r"connection refused|could not translate host|failed to resolve|timed? ?out"
    r"|network is unreachable|max retries exceeded|curlCode: (6|7|28)|connection.*(closed|reset)",
    re.IGNORECASE,
)
# Arrow starts the error texts of object stores with these words.
_FROM_STORE: Final = re.compile(r"AWS Error|GcsFileSystem|AzureFileSystem", re.IGNORECASE)
_WHERE_LOGINS_ARE: Final = (
    "Set lake.password (a catalog in a database), lake.client-secret or lake.token (REST), or "
    "lake.s3.access-key-id and lake.s3.secret-access-key (files), in the environment as "
    "FLUSS_LAKE_PASSWORD and so on."
)
_STATEMENT: Final = re.compile(r" \[SQL: | \(Background on this error at: ")


def secrets_of(properties: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The secret values among the properties of a catalog."""
    found = {
        value
        for name, value in properties
        if value and any(each in name.lower() for each in _SECRET_NAMES)
    }
    # A REST catalog takes `id:secret` as one property.
    found |= {each.partition(":")[2] for each in found if ":" in each}
    return frozenset(each for each in found | {quote(each, safe="") for each in found} if each)


def unreachable(
    table: TableInfo, error: Exception, secrets: frozenset[str] = frozenset()
) -> FlussError:
    """The error of a catalog or of files that cannot be reached or read."""
    # SQLAlchemy adds the statement and a link to its own pages.
    text = _STATEMENT.split(hidden(" ".join(str(error).split()), secrets))[0]
    why = text[:WHY_CHARS_MAX] or type(error).__name__
    path = table.table_path
    if isinstance(error, NotInstalledError):
        return MissingExtraError(
            f"The lake of {path} cannot be read, because the driver of its catalog is not installed.",
            hint=without_lake("A catalog in PostgreSQL needs: pip install psycopg2-binary."),
            table=str(path),
        )
    refused = (UnauthorizedError, OAuthError, AuthorizationExpiredError)
    if isinstance(error, refused) or _NO_LOGIN.search(text):
        return AuthenticationError(
            f"The lake of {path} refuses the login: {why}.",
            hint=without_lake(_WHERE_LOGINS_ARE),
            table=str(path),
        )
    if isinstance(error, ForbiddenError):
        return AuthorizationError(
            f"The lake of {path} refuses to be read by this user: {why}.",
            hint=without_lake(f"Another user may: {_WHERE_LOGINS_ARE}"),
            table=str(path),
        )
    kind = ConnectError if _NO_SERVER.search(text) else FlussError
    return kind(
        f"The lake of {path} cannot be read: {why}.",
        hint=without_lake(
            "The table's properties (table.datalake.iceberg.*) say where it is; lake.uri and "
            f"lake.s3.endpoint name other places. {_WHERE_LOGINS_ARE}"
        ),
        table=str(path),
    )


def hidden(text: str, secrets: frozenset[str]) -> str:
    """A text without secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return without_login(text)


@contextmanager
def reading_file(path: str) -> Iterator[None]:
    """Name the file in errors of reading it.

    Raises:
        SnapshotNotFoundError: The file does not exist.
        CorruptDataError: The file is damaged.
    """
    try:
        yield
    except FlussError:
        raise
    except FileNotFoundError as error:
        raise missing_file(path) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OSError) as error:
        if isinstance(error, OSError) and is_of_network(error):
            raise
        why = " ".join(str(error).split())[:WHY_CHARS_MAX]
        raise CorruptDataError(
            f"The file {path} of the lake cannot be read: {why}.",
            hint=without_lake("It may be truncated or changed."),
            what="file of a lake",
            at=0,
            why=why,
        ) from error


def missing_file(path: str) -> SnapshotNotFoundError:
    """The error of a file that does not exist, as long as the reason is unknown."""
    return SnapshotNotFoundError(
        f"The file {path} of the lake does not exist, although a snapshot has it.",
        hint=without_lake(
            "It was removed with an expired snapshot, or as an orphan file. Plan the scan again."
        ),
        path=path,
    )


def why_missing(
    table: TableInfo, opened: Table, snapshot_id: int, error: SnapshotNotFoundError
) -> FlussError:
    """Find out why a file of a planned scan is missing; this asks the catalog.

    Args:
        table: The table.
        opened: The table in the lake; it is loaded again.
        snapshot_id: The snapshot that the scan was planned with.
        error: The error of the file.

    Returns:
        An error that says whether planning again helps. The same error, if the catalog cannot be
        reached.
    """
    try:
        opened.refresh()
    except Exception:  # noqa: BLE001 - each catalog has errors of its own
        return error
    path, name = error.facts.get("path"), str(table.table_path)
    if opened.snapshot_by_id(snapshot_id) is None:
        return SnapshotNotFoundError(
            f"The snapshot {snapshot_id} of the lake of {name} was expired after the scan was "
            f"planned, and its file {path} was removed.",
            hint="Plan the scan again: it reads the snapshot that the cluster knows now. Expire "
            "only snapshots that are older than the longest scan (fluss tier expire --older-than).",
            table=name,
            snapshot_id=snapshot_id,
            path=path,
        )
    return CorruptDataError(
        f"The file {path} of the lake of {name} does not exist, although the snapshot "
        f"{snapshot_id} has it and was not expired.",
        hint=without_lake(
            "Another program has removed it, so planning the scan again does not help. Restore the "
            "file, or roll the table back to a complete snapshot."
        ),
        what="snapshot of a lake",
        at=0,
        why="a file is missing",
        table=name,
        snapshot_id=snapshot_id,
        path=path,
    )


def is_of_network(error: OSError) -> bool:
    """Whether an error means that a store cannot be reached or refuses, and not a damaged file."""
    text = str(error)
    is_of_store = isinstance(error, ConnectionError | TimeoutError | PermissionError)
    return is_of_store or any(each.search(text) for each in (_NO_LOGIN, _NO_SERVER, _FROM_STORE))
