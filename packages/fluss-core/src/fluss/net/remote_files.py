"""Reads files of the remote store: local paths directly, everything else through fsspec.

Credentials for object stores come from the cluster. They are renewed before they expire, and
replaced when the store refuses them; they are handed to the file system and appear nowhere else. A
read that fails because of the network or a busy store is repeated (`net.plan_remote_reads` decides
when). This file knows nothing of the contents.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread

from fluss.errors import FlussError, MissingExtraError, RemoteStorageError
from fluss.install_hints import how_to_install
from fluss.model.options.secrets import is_secret
from fluss.net.cluster_client import Cluster
from fluss.net.counters import Counters
from fluss.net.plan_remote_reads import (
    ReadAttempts,
    explain,
    is_beyond_end,
    needs_another_token,
)
from fluss.net.plan_retry import RetryPolicy
from fluss.net.storage_options import (
    CREDENTIAL_OPTIONS,
    S3_SCHEMES,
    range_arguments,
    storage_options,
)
from fluss.wire import messages

LOCAL_SCHEMES = ("", "file")
# A token is renewed when a quarter of its life is left, and so long before its end at most.
TOKEN_MARGIN_S = 60.0
TOKEN_MARGIN_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFileSettings:
    """How remote files are read.

    Attributes:
        storage_options: The user's own options for the file system.
        uses_token: Whether the credentials of the cluster are used.
        reads_at_once_max: How many reads may be in flight.
        connect_timeout_s: How long a store may take to accept a connection.
        read_timeout_s: How long a store may send nothing.
        patience_s: How long one read may take, with all retries.
        policy: The pauses between retries.
    """

    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    uses_token: bool = True
    reads_at_once_max: int = 3
    connect_timeout_s: float = 30.0
    read_timeout_s: float = 30.0
    patience_s: float = 120.0
    policy: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Token:
    """A token of the cluster, and the file systems that use it, by scheme."""

    content: bytes = field(repr=False)
    facts: Mapping[str, str]
    renewed_at: float
    filesystems: dict[str, Any] = field(default_factory=dict, repr=False)


class RemoteFiles:
    """The remote store of one cluster. Coroutines run on the engine's loop, reads on workers.

    Args:
        cluster: The cluster, which issues tokens.
        settings: How files are read.
        counters: Where reads are counted.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: RemoteFileSettings | None = None,
        counters: Counters | None = None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings or RemoteFileSettings()
        self._counters = counters or Counters()
        self._limiter = anyio.CapacityLimiter(self._settings.reads_at_once_max)
        self._token: _Token | None = None
        self._asking: asyncio.Task[_Token] | None = None

    async def prepare(self, path: str) -> RemoteFile:
        """A file, with what is needed to read it.

        Raises:
            ProtocolError: The token of the cluster cannot be read.
            FlussError: The cluster gives no token.
        """
        scheme = urlsplit(path).scheme if "://" in path or path.startswith("file:") else ""
        if scheme in LOCAL_SCHEMES:
            local = unquote(urlsplit(path).path) if scheme else path
            return RemoteFile(path=local, scheme="", options={})
        token = await self._current_token()
        options = storage_options(
            scheme,
            token.content,
            token.facts,
            self._settings.storage_options,
            uses_token=self._reads_with_token,
        )
        if scheme in S3_SCHEMES:
            options = self._with_limits(options)
        return RemoteFile(path=path, scheme=scheme, options=options, filesystems=token.filesystems)

    async def read_at(self, path: str, start: int, size: int) -> bytes:
        """The same as `read`, of the file with this path."""
        return await self.read(await self.prepare(path), start, size)

    async def read(self, file: RemoteFile, start: int, size: int) -> bytes:
        """Up to `size` bytes from `start` on; fewer only at the end of the file.

        A read that fails for a while is repeated, and a token that is refused is replaced.

        Raises:
            RemoteFileNotFoundError: The file, or its bucket, does not exist.
            RemoteAccessError: The credentials are refused.
            RemoteUnavailableError: The store cannot be reached, or is too busy, for too long.
            RemoteStorageError: The file cannot be read for another reason.
        """
        attempts = ReadAttempts(
            policy=self._settings.policy,
            deadline=time.monotonic() + self._settings.patience_s,
        )
        while True:
            try:
                data = await anyio.to_thread.run_sync(file.read, start, size, limiter=self._limiter)
            except RemoteStorageError as error:
                file = await self._again(file, error, attempts)
            else:
                self._counters.remote_reads += 1
                self._counters.remote_bytes_read += len(data)
                return data

    async def _again(
        self, file: RemoteFile, error: RemoteStorageError, attempts: ReadAttempts
    ) -> RemoteFile:
        """Wait before a retry; renew the token if the store has refused it."""
        attempts.made += 1
        is_own = needs_another_token(error) and not self._reads_with_token
        jitter = random.random()  # noqa: S311 - spreads clients, hides nothing
        at = attempts.next_at(error, now=time.monotonic(), jitter=jitter)
        if at is None or is_own:
            raise error
        self._counters.retries += 1
        await anyio.sleep(max(at - time.monotonic(), 0.0))
        if needs_another_token(error):
            self._forget(file)
        return await self.prepare(file.path) if file.scheme else file

    @property
    def _reads_with_token(self) -> bool:
        has_own = CREDENTIAL_OPTIONS & self._settings.storage_options.keys()
        return self._settings.uses_token and not has_own

    def _forget(self, file: RemoteFile) -> None:
        """Request a new token, unless there is a newer one than that of this file already."""
        token = self._token
        if token is not None and token.filesystems is file.filesystems:
            self._token = replace(token, renewed_at=-math.inf)

    async def _current_token(self) -> _Token:
        token = self._token
        now = time.time()  # noqa: TID251 - the cluster gives the expiry in wall-clock time
        if token is not None and now < token.renewed_at:
            return token
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._new_token())
        return await asyncio.shield(self._asking)

    async def _new_token(self) -> _Token:
        try:
            answer = await self._cluster.ask_any(
                messages.GetFileSystemSecurityTokenRequest(),
                messages.GetFileSystemSecurityTokenResponse,
            )
        except FlussError:
            if self._reads_with_token:
                raise
            # The user has credentials, so a cluster without tokens is no error.
            answer = messages.GetFileSystemSecurityTokenResponse()
        expires_at = None
        if answer.HasField("expiration_time"):
            expires_at = answer.expiration_time / 1_000
        self._token = _Token(
            content=answer.token,
            facts={each.key: each.value for each in answer.addition_info},
            renewed_at=_renewed_at(expires_at),
            filesystems=self._filesystems_of(answer.token),
        )
        return self._token

    def _filesystems_of(self, content: bytes) -> dict[str, Any]:
        """The file systems of the previous token, if the servers have issued the same one again."""
        before = self._token
        return before.filesystems if before is not None and before.content == content else {}

    def _with_limits(self, options: dict[str, Any]) -> dict[str, Any]:
        limits = {
            "connect_timeout": self._settings.connect_timeout_s,
            "read_timeout": self._settings.read_timeout_s,
            "max_pool_connections": self._settings.reads_at_once_max,
            # Retries happen here and nowhere else.
            "retries": {"total_max_attempts": 1, "mode": "standard"},
        }
        return options | {"config_kwargs": limits | options.get("config_kwargs", {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file to read ranges of. `read` blocks: call it on a worker thread."""

    path: str
    scheme: str
    options: Mapping[str, Any] = field(repr=False)
    filesystems: dict[str, Any] = field(default_factory=dict, repr=False)

    def read(self, start: int, size: int) -> bytes:
        """Up to `size` bytes from `start` on; fewer only at the end of the file.

        Raises:
            RemoteStorageError: The attempt failed.
            MissingExtraError: There is no file system for the store.
        """
        try:
            if not self.scheme:
                with Path(self.path).open("rb") as file:
                    file.seek(start)
                    return file.read(size)
            arguments = range_arguments(self.scheme, start, size)
            data: bytes = self._filesystem().cat_file(self.path, **arguments)
        except FlussError:
            raise
        except Exception as error:  # file systems raise what their libraries raise
            if is_beyond_end(error):
                return b""
            raise explain(self.path, error, self._secrets()) from error
        if len(data) > size:  # nothing tells which bytes these are
            raise RemoteStorageError(
                f"The remote file {self.path} cannot be read: the store sent {len(data)} bytes of "
                f"the {size} from {start} on.",
                hint=f"It, or the file system for {self.scheme}://, does not read ranges.",
                path=self.path,
                code=None,
            )
        return data

    def _secrets(self) -> tuple[str, ...]:
        texts = ((key, value) for key, value in self.options.items() if isinstance(value, str))
        return tuple(value for key, value in texts if is_secret(key, value))

    def _filesystem(self) -> Any:
        made = self.filesystems.get(self.scheme)
        return made or self.filesystems.setdefault(self.scheme, self._new_filesystem())

    def _new_filesystem(self) -> Any:
        try:
            import fsspec
        except ImportError as error:
            raise MissingExtraError(
                f"Rows that the cluster has moved to {self.scheme}:// are read through fsspec, "
                "which is not installed.",
                hint=f"{how_to_install('fluss-core[fsspec]')}, and the file system for "
                f"{self.scheme}:// (s3fs, ossfs, gcsfs ...)",
            ) from error
        try:
            kind = fsspec.get_filesystem_class(self.scheme)
        except (ImportError, ValueError) as error:
            raise MissingExtraError(
                f"fsspec has no file system for {self.scheme}://: {error}",
                hint=f"Install the one for {self.scheme}:// (s3fs, ossfs, gcsfs ...).",
            ) from error
        try:
            # fsspec's own cache would keep each one forever, and with it an expired token.
            made = kind(skip_instance_cache=True, **self.options)
        except ValueError as error:
            found = explain(self.path, error, self._secrets())
            raise found.with_context(
                hint="remote-file.storage-options are passed to the file system for "
                f"{self.scheme}://, also the credentials that the cluster does not provide."
            ) from error
        if self.scheme in S3_SCHEMES:
            made.retries = 1
        return made


def _renewed_at(expires_at: float | None) -> float:
    """When to request a new token, in wall-clock time."""
    if expires_at is None:
        return math.inf
    now = time.time()  # noqa: TID251 - as above
    return expires_at - min(TOKEN_MARGIN_S, max(expires_at - now, 0) * TOKEN_MARGIN_SHARE)
