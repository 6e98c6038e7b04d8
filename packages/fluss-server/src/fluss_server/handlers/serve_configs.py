"""DESCRIBE and ALTER of the cluster's settings.

Settings that Fluss can change while it runs can be changed here, too, by the same rules; they are
kept and shown. A server of one node has no use for the values of most of them: it uses
`kv.snapshot.interval`, and `security.sasl.plain.credentials`, whose users may log in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.cluster.configs import AlterConfigOpType, ConfigSource
from fluss.model.options.units import parse_duration_ms, parse_size
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.access import user_passwords
from fluss_server.cluster_settings import KV_SNAPSHOT_INTERVAL, changed_settings, keep_settings
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import Node

_DURABILITY: Final = "embedded.durability"
_RATIO: Final = re.compile(r"0(\.\d+)?|1(\.0+)?")


def _int(text: str) -> object:
    return int(text)


def _bool(text: str) -> object:
    if text not in {"true", "false"}:
        raise ValueError(text)
    return text


def _ratio(text: str) -> object:
    if not _RATIO.fullmatch(text):
        raise ValueError(text)
    return text


def _interval(text: str) -> object:
    if not parse_duration_ms(text):
        raise request_error(
            ErrorCode.CONFIG_EXCEPTION,
            f"Invalid {KV_SNAPSHOT_INTERVAL} can not be negative or zero: 0 ms",
        )
    return text


_Check = tuple[str, Callable[[str], object]]
_DURATION: Final[_Check] = ("Duration", parse_duration_ms)
_SIZE: Final[_Check] = ("MemorySize", parse_size)

# The settings that Fluss 1.0 changes while it runs and that have one value, with their types.
DYNAMIC: Final[Mapping[str, _Check]] = MappingProxyType(
    {
        "coordinator.rebalance.max-inflight-tasks": ("Integer", _int),
        "kv.leader-replica.memory-reserved": _SIZE,
        "kv.rocksdb.shared-rate-limiter.bytes-per-sec": _SIZE,
        KV_SNAPSHOT_INTERVAL: ("Duration", _interval),
        "log.replica.min-in-sync-replicas-number": ("Integer", _int),
        "log.retention.roll-active-segment.enabled": ("Boolean", _bool),
        "server.data-disk.write-limit-ratio": ("Double", _ratio),
        "server.data-disk.write-recover-ratio": ("Double", _ratio),
    }
)


def describe_configs(
    node: Node, call: Call, request: pb.DescribeClusterConfigsRequest
) -> pb.DescribeClusterConfigsResponse:
    """Return the durability mode, and the settings that were changed."""
    del call, request
    response = pb.DescribeClusterConfigsResponse()
    response.configs.add(
        config_key=_DURABILITY,
        config_value=str(node.config.durability),
        config_source=ConfigSource.INITIAL_SERVER_CONFIG,
    )
    for key, value in sorted(changed_settings(node.catalog).items()):
        response.configs.add(
            config_key=key, config_value=value, config_source=ConfigSource.DYNAMIC_SERVER_CONFIG
        )
    credentials = node.passwords.setting
    if credentials is not None:
        response.configs.add(
            config_key=user_passwords.KEY,
            config_value=user_passwords.shown(credentials),
            config_source=ConfigSource.DYNAMIC_SERVER_CONFIG,
        )
    return response


def alter_configs(
    node: Node, call: Call, request: pb.AlterClusterConfigsRequest
) -> pb.AlterClusterConfigsResponse:
    """Change settings: all that the request names, or none."""
    del call
    changed = changed_settings(node.catalog)
    credentials = known = node.passwords.setting
    for change in request.alter_configs:
        value = change.config_value if change.HasField("config_value") else None
        operation = AlterConfigOpType.from_code(change.op_type)
        if change.config_key == user_passwords.KEY:
            credentials = _changed_credentials(credentials, value, operation)
        else:
            _apply(changed, change.config_key, value, operation)
    if changed != changed_settings(node.catalog):
        keep_settings(node.catalog, changed)
    if credentials != known:
        node.passwords.store(credentials)
    return pb.AlterClusterConfigsResponse()


def _changed_credentials(
    known: Mapping[str, str] | None, value: str | None, operation: AlterConfigOpType | None
) -> dict[str, str] | None:
    match operation:
        case AlterConfigOpType.DELETE:
            return None
        case AlterConfigOpType.SET if value is not None:
            return user_passwords.read_entries(value)
        case AlterConfigOpType.APPEND if value is not None:
            return user_passwords.with_entries(known or {}, value)
        case AlterConfigOpType.SUBTRACT if value is not None:
            return user_passwords.without_entries(known or {}, value)
        case _:
            raise _without_value(user_passwords.KEY)


def _apply(
    settings: dict[str, str], key: str, value: str | None, operation: AlterConfigOpType | None
) -> None:
    """Apply one change. The sentences are Fluss's."""
    if key not in DYNAMIC:
        raise request_error(
            ErrorCode.CONFIG_EXCEPTION,
            f"The config key {key} is not allowed to be changed dynamically.",
            hint=f"There are: {', '.join(sorted([*DYNAMIC, user_passwords.KEY]))}.",
        )
    match operation:
        case AlterConfigOpType.DELETE:
            settings.pop(key, None)
        case AlterConfigOpType.SET if value is not None:
            _check_value(key, value)
            settings[key] = value
        case AlterConfigOpType.APPEND | AlterConfigOpType.SUBTRACT:
            raise request_error(
                ErrorCode.CONFIG_EXCEPTION,
                f"{operation} is only supported for list-typed or map-typed config keys, and {key} "
                "is neither.",
            )
        case _:
            raise _without_value(key)


def _without_value(key: str) -> FlussError:
    return request_error(
        ErrorCode.CONFIG_EXCEPTION, f"The change of {key} has no value, or is unknown."
    )


def _check_value(key: str, value: str) -> None:
    kind, check = DYNAMIC[key]
    try:
        check(value)
    except ValueError:
        raise request_error(
            ErrorCode.CONFIG_EXCEPTION, f"Cannot parse '{value}' as {kind} for config '{key}'."
        ) from None


HANDLERS = (
    message_handler(ApiKey.DESCRIBE_CLUSTER_CONFIGS, describe_configs),
    message_handler(ApiKey.ALTER_CLUSTER_CONFIGS, alter_configs),
)
