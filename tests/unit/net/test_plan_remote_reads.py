"""What failures of stores mean, told by the shapes in which libraries raise them."""

from enum import StrEnum

import pytest

from fluss.errors import (
    RemoteAccessError,
    RemoteFileNotFoundError,
    RemoteStorageError,
    RemoteUnavailableError,
)
from fluss.net.plan_remote_reads import (
    ATTEMPTS_MAX,
    ReadAttempts,
    explain,
    is_beyond_end,
    needs_another_token,
)
from fluss.net.plan_retry import RetryPolicy

POLICY = RetryPolicy(delay_first_ms=100, delay_ms_max=1_000)


class ClientError(Exception):
    """As botocore's: with the parsed answer."""

    def __init__(self, code, status):
        super().__init__(f"An error occurred ({code}) when calling the GetObject operation")
        entry = {"Code": code} if code else {}
        self.response = {"Error": entry, "ResponseMetadata": {"HTTPStatusCode": status}}


class OssError(Exception):
    """As oss2's: with attributes."""

    def __init__(self, code, status):
        super().__init__(code)
        self.code, self.status = code, status


class AzureError(Exception):
    """As azure-core's: with attributes of other names, and a code that may be an enum."""

    def __init__(self, code, status):
        super().__init__("Server failed to authenticate the request")
        self.error_code, self.status_code = code, status


class AzureCode(StrEnum):
    REFUSED = "AuthenticationFailed"


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (caused(OSError(16, "slow"), ClientError("SlowDown", 503)), RemoteUnavailableError),
        (ClientError("", 502), RemoteUnavailableError),
        (ClientError("InternalError", 500), RemoteUnavailableError),
        (TimeoutError(), RemoteUnavailableError),
        (ConnectionResetError("reset"), RemoteUnavailableError),
        (type("IncompleteReadError", (Exception,), {})("cut"), RemoteUnavailableError),
        (type("HTTPClientError", (Exception,), {})("slow"), RemoteUnavailableError),
        (caused(PermissionError("no"), ClientError("AccessDenied", 403)), RemoteAccessError),
        (PermissionError(13, "not allowed"), RemoteAccessError),
        (caused(PermissionError("old"), ClientError("ExpiredToken", 400)), RemoteAccessError),
        (OssError("SecurityTokenExpired", 403), RemoteAccessError),
        (caused(FileNotFoundError("x"), ClientError("NoSuchKey", 404)), RemoteFileNotFoundError),
        (ClientError("NoSuchBucket", 404), RemoteFileNotFoundError),
        (AzureError(AzureCode.REFUSED, 403), RemoteAccessError),
        (AzureError("ServerBusy", 503), RemoteUnavailableError),
        (AzureError(None, 404), RemoteFileNotFoundError),
        (FileNotFoundError(2, "no such file"), RemoteFileNotFoundError),
        (ClientError("PermanentRedirect", 301), RemoteStorageError),
        (RuntimeError("who knows"), RemoteStorageError),
        (OSError(5, "input/output error"), RemoteStorageError),
    ],
)
def test_each_failure_has_its_class(raised, kind):
    error = explain("s3://bucket/file", raised)
    assert type(error) is kind
    assert error.path == "s3://bucket/file"
    assert error.hint
    assert error.is_retriable == (kind is RemoteUnavailableError)


def test_codes_are_kept_and_named_once():
    error = explain("s3://b/f", caused(OSError(16, "slow down"), ClientError("SlowDown", 503)))
    assert error.code == "SlowDown"
    assert error.sentence == "The remote file s3://b/f cannot be read: SlowDown: slow down."
    assert explain("s3://b/f", RuntimeError("x")).code is None


def test_secrets_are_cut_from_texts_of_libraries():
    error = explain("s3://b/f", RuntimeError("key=abc token=def"), ("abc", "def"))
    assert "key=*** token=***" in str(error)


def test_texts_of_libraries_are_cut():
    assert len(explain("s3://b/f", RuntimeError("x" * 10_000)).sentence) < 400


def test_a_loop_of_causes_ends():
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert type(explain("s3://b/f", first)) is RemoteStorageError


def test_a_range_after_the_end_is_no_failure():
    assert is_beyond_end(caused(OSError(22, "x"), ClientError("InvalidRange", 416)))
    assert not is_beyond_end(ClientError("AccessDenied", 403))


def attempts(made, deadline=1_000.0):
    return ReadAttempts(policy=POLICY, deadline=deadline, made=made)


def test_pauses_grow_and_end():
    busy = explain("s3://b/f", ClientError("SlowDown", 503))
    pauses = [attempts(made).next_at(busy, now=0.0, jitter=0.5) for made in range(1, ATTEMPTS_MAX)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, *[1.0] * 5]
    assert attempts(ATTEMPTS_MAX).next_at(busy, now=0.0, jitter=0.5) is None
    assert attempts(1, deadline=0.05).next_at(busy, now=0.0, jitter=0.5) is None


def test_a_refused_token_is_replaced_immediately_and_then_with_pauses():
    expired = explain("s3://b/f", ClientError("ExpiredToken", 400))
    assert needs_another_token(expired)
    assert attempts(1).next_at(expired, now=5.0, jitter=0.5) == 5.0
    assert attempts(2).next_at(expired, now=5.0, jitter=0.5) == 5.2


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchKey", "PermanentRedirect"])
def test_failures_that_stay_are_not_repeated(code):
    status = {"AccessDenied": 403, "NoSuchKey": 404}.get(code, 301)
    error = explain("s3://b/f", ClientError(code, status))
    assert not needs_another_token(error)
    assert attempts(1).next_at(error, now=0.0, jitter=0.5) is None
