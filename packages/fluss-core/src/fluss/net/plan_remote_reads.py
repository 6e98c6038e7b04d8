"""Decides what a failed read of a remote file means, and whether a retry can help.

Stores and their client libraries report failures in many ways: an HTTP status, a code of the store
(`SlowDown`), an `OSError`. This file turns them into one of our errors, with the store's code and a
hint. `net.remote_files` reads, waits and renews tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fluss.errors import (
    RemoteAccessError,
    RemoteFileNotFoundError,
    RemoteStorageError,
    RemoteUnavailableError,
)
from fluss.net.plan_retry import RetryPolicy, pause_ms

# With pauses that double up to a second, the attempts bridge an outage of five seconds. Each
# attempt has the timeout of a request, and all together have the timeout of an operation.
ATTEMPTS_MAX: Final = 10
_CAUSES_MAX: Final = 16
_WHY_CHARS_MAX: Final = 300
HIDDEN: Final = "***"

# Codes of S3 and of OSS.
_TOKEN_CODES: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidSecurityToken",
        "InvalidToken",
        "SecurityTokenExpired",
        "TokenRefreshRequired",
    }
)
_MISSING_CODES: Final = frozenset({"404", "NoSuchBucket", "NoSuchKey", "NoSuchVersion"})
_BUSY_CODES: Final = frozenset(
    {
        "InternalError",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
    }
)
_BUSY_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_DENIED_STATUSES: Final = frozenset({401, 403})
_NOT_FOUND: Final = 404
_RANGE_NOT_SATISFIABLE: Final = 416
# Libraries raise these for lost, refused and slow connections; they are no OSErrors and have no
# status.
_NETWORK_ERRORS: Final = frozenset(
    {
        "ClientConnectionError",
        "ClientPayloadError",
        "ConnectionError",
        "HTTPClientError",
        "IncompleteRead",
        "IncompleteReadError",
        "RequestError",
        "ResponseParserError",
    }
)


@dataclass(slots=True, kw_only=True)
class ReadAttempts:
    """The attempts of one read so far, and their limits.

    Attributes:
        policy: The pauses between attempts.
        deadline: When to give up, on the clock of `now`.
        made: How many attempts were made.
    """

    policy: RetryPolicy
    deadline: float
    made: int = 0

    def next_at(self, error: RemoteStorageError, *, now: float, jitter: float) -> float | None:
        """When to retry after the error of the last attempt; None to give up.

        The first new token is used immediately. Where it is refused as well, servers may still
        hand out an old one: they keep tokens for a minute.
        """
        needs_token = needs_another_token(error)
        if not (needs_token or error.is_retriable) or self.made >= ATTEMPTS_MAX:
            return None
        if needs_token and self.made == 1:
            return now
        at = now + pause_ms(self.policy, attempt=self.made, jitter=jitter) / 1_000
        return at if at < self.deadline else None


def needs_another_token(error: RemoteStorageError) -> bool:
    """Whether the store has refused the token, so that a new token may help."""
    return error.code in _TOKEN_CODES


def explain(path: str, error: BaseException, secrets: tuple[str, ...] = ()) -> RemoteStorageError:
    """Make the error for a failed read.

    Args:
        path: The file.
        error: The error of its file system.
        secrets: Texts that no message may show.
    """
    code, status = _facts(error)
    kind = _kind(error, code, status)
    return kind(
        f"The remote file {path} cannot be read: {_why(error, code, secrets)}.",
        hint=_hint(kind, code),
        path=path,
        code=code or None,
    )


def _kind(error: BaseException, code: str, status: int | None) -> type[RemoteStorageError]:
    if code in _TOKEN_CODES:
        return RemoteAccessError
    if code in _BUSY_CODES or status in _BUSY_STATUSES:
        return RemoteUnavailableError
    if code in _MISSING_CODES or status == _NOT_FOUND or _has(error, FileNotFoundError):
        return RemoteFileNotFoundError
    if status in _DENIED_STATUSES or _has(error, PermissionError):
        return RemoteAccessError
    if not code and status is None and _is_of_network(error):
        return RemoteUnavailableError
    return RemoteStorageError


def is_beyond_end(error: BaseException) -> bool:
    """Whether a store refused a range because the file ends before it."""
    code, status = _facts(error)
    return code == "InvalidRange" or status == _RANGE_NOT_SATISFIABLE


def _hint(kind: type[RemoteStorageError], code: str) -> str:
    if code == "NoSuchBucket":
        return (
            "The store that was asked has no such bucket. Where it is another one than that of the "
            "cluster, name its endpoint: remote-file.storage-options = "
            '{"endpoint_url": "https://..."}'
        )
    if kind is RemoteFileNotFoundError:
        return (
            "The cluster keeps older rows there ('remote.data.dir'); it must be reachable from here, "
            "too. Rows that have expired meanwhile are deleted: read the table again."
        )
    if kind is RemoteAccessError and code in _TOKEN_CODES:
        return (
            "The temporary credentials of the cluster are refused, new ones as well. Compare the "
            "clocks of the machines, and the store of the cluster ('s3.endpoint' of the servers) "
            "with the one that was asked."
        )
    if kind is RemoteAccessError:
        return (
            "The credentials may not read the file. Those of the cluster need s3:GetObject there; "
            "with remote-file.credentials = own, your own are used."
        )
    return (
        "The cluster keeps older rows there ('remote.data.dir'); it must be reachable from here, "
        "too."
    )


# --- what libraries raise -------------------------------------------------------------------------


def _facts(error: BaseException) -> tuple[str, int | None]:
    """The store's code and the HTTP status, of an error or of its causes."""
    for cause in _causes(error):
        response = getattr(cause, "response", None)
        if isinstance(response, Mapping):  # botocore
            code = str(_entry(response, "Error", "Code") or "")
            status = _entry(response, "ResponseMetadata", "HTTPStatusCode")
            return code, status if isinstance(status, int) else None
        status = getattr(cause, "status", None)
        if isinstance(status, int) and status > 0:  # oss2, aiohttp, gcsfs
            code = getattr(cause, "code", "")
            return code if isinstance(code, str) else "", status
        status = getattr(cause, "status_code", None)
        if isinstance(status, int):  # azure
            named = getattr(cause, "error_code", None)
            return str(getattr(named, "value", named) or ""), status
    return "", None


def _entry(response: Mapping[str, Any], part: str, key: str) -> Any:
    found = response.get(part)
    return found.get(key) if isinstance(found, Mapping) else None


def _why(error: BaseException, code: str, secrets: tuple[str, ...]) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    text = " ".join(str(text).split())[:_WHY_CHARS_MAX].rstrip(".")
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return f"{code}: {text}" if code and code not in text else text


def _is_of_network(error: BaseException) -> bool:
    names = {parent.__name__ for each in _causes(error) for parent in type(each).__mro__[:-1]}
    return bool(names & _NETWORK_ERRORS) or any(
        isinstance(each, TimeoutError | ConnectionError | EOFError) for each in _causes(error)
    )


def _has(error: BaseException, kind: type[BaseException]) -> bool:
    return any(isinstance(each, kind) for each in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if each is None:
            return
        yield each
        each = each.__cause__
