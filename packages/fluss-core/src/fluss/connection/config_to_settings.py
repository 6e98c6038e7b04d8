"""Converts a user's `Config` to the settings of a connection; secrets are resolved late."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fluss.errors import ConfigError
from fluss.model.options.config import Config
from fluss.model.servers import parse_address
from fluss.net.network_settings import ConnectionSettings, Login
from fluss.net.plan_retry import RetryPolicy


def without_markers(config: Config) -> Config:
    """Copy a config with markers such as `${env:NAME}` replaced by their current values.

    Raises:
        ConfigError: Settings contradict each other, or a marker has no value.
    """
    resolved = config.resolved(os.environ, _read_file)
    resolved.check()
    return resolved


def connection_settings(config: Config) -> ConnectionSettings:
    """Make the settings to connect to the cluster of a config.

    Raises:
        ConfigError: Settings contradict each other, or a marker has no value.
    """
    resolved = without_markers(config)
    login = None
    if resolved.security_protocol == "sasl":
        login = Login(
            username=resolved.security_sasl_username,
            password=_password(config),
            mechanism=resolved.security_sasl_mechanism,
        )
    return ConnectionSettings(
        bootstrap=resolved.bootstrap_addresses,
        address_map={
            parse_address(advertised): parse_address(reachable)
            for advertised, reachable in resolved.address_map.items()
        },
        login=login,
        connect_timeout_ms=resolved.connect_timeout_ms,
        request_timeout_ms=resolved.request_timeout_ms,
        retry_timeout_ms=resolved.operation_timeout_ms,
        retry_policy=RetryPolicy(
            delay_first_ms=resolved.retry_backoff_ms, delay_ms_max=resolved.retry_backoff_max_ms
        ),
    )


def lake_settings(config: Config) -> dict[str, str]:
    """Return what a config says of lakes, by the names that lake formats know; it has secrets.

    Raises:
        ConfigError: A marker has no value.
    """
    resolved = without_markers(config)
    given = {
        "uri": resolved.lake_uri,
        "user": resolved.lake_user,
        "password": resolved.lake_password,
        "token": resolved.lake_token,
        "client-secret": resolved.lake_client_secret,
        "s3.endpoint": resolved.lake_s3_endpoint,
        "s3.region": resolved.lake_s3_region,
        "s3.access-key-id": resolved.lake_s3_access_key_id,
        "s3.secret-access-key": resolved.lake_s3_secret_access_key,
        "s3.session-token": resolved.lake_s3_session_token,
    }
    return {**resolved.lake_properties, **{name: text for name, text in given.items() if text}}


def _password(config: Config) -> Callable[[], str]:
    # Read again for every connection: a file or the environment may have a newer one by then.
    kept = config.copy()
    return lambda: kept.resolved(os.environ, _read_file).security_sasl_password


def _read_file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"The file {path} that a setting names cannot be read: {error.strerror or error}.",
            path=path,
        ) from error
