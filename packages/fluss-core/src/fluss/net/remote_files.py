"""Opens files of the remote store: local paths directly, everything else through fsspec.

Credentials for object stores come from the cluster and are renewed before they expire. They are
handed to the file system and appear nowhere else. This file knows nothing of the contents.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fluss.errors import FlussError, MissingExtraError, unusable_answer
from fluss.install_hints import how_to_install
from fluss.net.cluster_client import Cluster
from fluss.wire import messages

LOCAL_SCHEMES = ("", "file")
# Renewed this long before it expires, so that no token expires during a read.
TOKEN_MARGIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    options: Mapping[str, Any] = field(repr=False)
    expires_at: float | None


class RemoteFiles:
    """The remote store of one cluster. Coroutines run on the engine's loop, reads on workers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._token: _Token | None = None

    async def prepare(self, path: str) -> RemoteFile:
        """A file, with what is needed to read it."""
        scheme = urlsplit(path).scheme if "://" in path or path.startswith("file:") else ""
        if scheme in LOCAL_SCHEMES:
            local = unquote(urlsplit(path).path) if scheme else path
            return RemoteFile(path=local, scheme="", options={})
        return RemoteFile(path=path, scheme=scheme, options=await self._options())

    async def _options(self) -> Mapping[str, Any]:
        token = self._token
        now = time.time()  # noqa: TID251 - the cluster gives the expiry in wall-clock time
        if token is None or (token.expires_at or now + 3600) - TOKEN_MARGIN_S < now:
            answer = await self._cluster.ask_any(
                messages.GetFileSystemSecurityTokenRequest(),
                messages.GetFileSystemSecurityTokenResponse,
            )
            facts = {each.key: each.value for each in answer.addition_info}
            token = self._token = _Token(
                options=_storage_options(answer.token, facts),
                expires_at=answer.expiration_time / 1_000
                if answer.HasField("expiration_time")
                else None,
            )
        return token.options


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file to read ranges of. `read` blocks: call it on a worker thread."""

    path: str
    scheme: str
    options: Mapping[str, Any] = field(repr=False)

    def read(self, start: int, size: int) -> bytes:
        """Up to `size` bytes from `start` on; fewer only at the end of the file.

        Raises:
            FlussError: The file cannot be read.
        """
        try:
            if not self.scheme:
                with Path(self.path).open("rb") as file:
                    file.seek(start)
                    return file.read(size)
            data: bytes = self._filesystem().cat_file(self.path, start=start, end=start + size)
        except FlussError:
            raise
        except Exception as error:  # file systems raise what their libraries raise
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise FlussError(
                f"The remote file {self.path} cannot be read: {why}.",
                hint="The cluster keeps older rows there ('remote.data.dir'); it must be reachable "
                "from here, too.",
                path=self.path,
            ) from error
        return data

    def _filesystem(self) -> Any:
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
            return fsspec.filesystem(self.scheme, **self.options)
        except (ImportError, ValueError) as error:
            raise MissingExtraError(
                f"fsspec has no file system for {self.scheme}://: {error}",
                hint=f"Install the one for {self.scheme}:// (s3fs, ossfs, gcsfs ...).",
            ) from error


def _storage_options(token: bytes, facts: Mapping[str, str]) -> dict[str, Any]:
    """The parts of a token under the names of S3-like file systems of fsspec."""
    if not token:
        return {}
    parts = _parts_of(token)
    if parts is None:
        # Raised here, because the parser's own error would carry the token along.
        raise unusable_answer("GET_FILESYSTEM_SECURITY_TOKEN", "the token is no JSON object")
    options: dict[str, Any] = {
        "key": parts.get("access_key_id"),
        "secret": parts.get("access_key_secret"),
        "token": parts.get("security_token"),
    }
    endpoint = next((value for key, value in facts.items() if key.endswith("endpoint")), None)
    region = next((value for key, value in facts.items() if key.endswith("region")), None)
    if endpoint:
        options["endpoint_url"] = endpoint if "://" in endpoint else f"https://{endpoint}"
    if region:
        options["client_kwargs"] = {"region_name": region}
    return {key: value for key, value in options.items() if value is not None}


def _parts_of(token: bytes) -> dict[str, Any] | None:
    try:
        parts = json.loads(token)
    except ValueError:
        return None
    return parts if isinstance(parts, dict) else None
