"""Every option of a client: key, default, range and meaning, one declaration each.

This is the list; the class that holds values of it is `model.options.config.Config`. The order is
the order of the documentation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from fluss.model.options.declaration import (
    INT_MAX,
    Option,
    OptionSet,
    duration,
    flag,
    size,
    text,
    whole,
    words,
)
from fluss.model.servers import parse_address, parse_addresses
from fluss.model.string_map import StringMap

# The server remembers this many batches of a writer; it could not identify more in flight.
INFLIGHT_IDEMPOTENT_MAX = 5

# The beginning of the keys that are of lakes.
LAKE_PREFIX = "lake."
# Parts of names whose values must not be shown.
_SECRET_NAMES = ("password", "secret", "token", "credential", "key")

_KIB = 1024
_MIB = 1024 * _KIB
_FOREVER_MS = 2**64 - 1


def _servers(value: object) -> str:
    joined = ",".join(value) if isinstance(value, list | tuple) else text(value)
    parse_addresses(joined)
    return joined


def _address_map(value: object) -> StringMap:
    pairs = value if isinstance(value, Mapping) else _split_pairs(text(value))
    return StringMap({str(parse_address(k)): str(parse_address(v)) for k, v in pairs.items()})


def _split_pairs(written: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in written.split(","):
        advertised, equals, reachable = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not advertised-host:port=reachable-host:port")
        pairs[advertised] = reachable
    return pairs


def _without_password(value: object) -> str:
    """Parse an address that may be shown: a password is an option of its own."""
    written = text(value)
    login = written.rpartition("@")[0].rpartition("/")[2]
    if ":" in login:
        raise ValueError("it has a password; set lake.user and lake.password in its place")
    return written


def _lake_properties(value: object) -> StringMap:
    pairs = value if isinstance(value, Mapping) else _named_values(text(value))
    for name in pairs:
        if any(each in str(name).lower() for each in _SECRET_NAMES):
            raise ValueError(f"{name!r} may be a secret, and this option is shown to everybody")
    return StringMap(pairs)


def _named_values(written: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in written.split(","):
        name, equals, given = part.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{part!r} is not name=value")
        pairs[name.strip()] = given.strip()
    return pairs


def _acks(value: object) -> str:
    written = str(value).strip().lower() if isinstance(value, str | int) else ""
    if written not in {"all", "-1", "1", "0"} or isinstance(value, bool):
        raise ValueError(f"{value!r} is not one of all, 1, 0")
    return "all" if written == "-1" else written


def _one_of(*allowed: str) -> Callable[[object], str]:
    """Return a parser for one of these texts, in any case."""

    def parse(value: object) -> str:
        for choice in allowed:
            if isinstance(value, str) and value.strip().lower() == choice.lower():
                return choice
        raise ValueError(f"{value!r} is not one of {', '.join(allowed)}")

    return parse


def _json_object(value: object) -> str:
    """Parse a mapping, or the JSON of one; it is kept as JSON, which can be compared and copied."""
    found = json.loads(value) if isinstance(value, str) and value else value or {}
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise ValueError("it is no JSON object")
    try:
        return json.dumps(dict(found), sort_keys=True) if found else ""
    except TypeError as error:
        raise ValueError(str(error)) from None


class ClientOptions(OptionSet):
    """The options of a client."""

    __slots__ = ()

    bootstrap_servers = Option[str](
        "bootstrap.servers",
        "127.0.0.1:9123",
        _servers,
        "The servers to which the client connects first, as host:port, separated by commas.",
    )
    connect_timeout_ms = duration(
        "connect-timeout",
        120_000,
        "The time limit for a server to accept a connection; a refused connection fails "
        "immediately.",
        low=1,
    )
    request_timeout_ms = duration(
        "request-timeout",
        30_000,
        "The time limit for the response to a request.",
        low=1,
    )
    operation_timeout_ms = duration(
        "operation-timeout",
        120_000,
        "The time limit for a call with all its retries. For reads and writes it is the "
        "time for which a bucket may make no progress.",
        low=1,
    )
    retry_backoff_ms = duration("retry.backoff-ms", 50, "The pause before the first retry.", low=1)
    retry_backoff_max_ms = duration(
        "retry.backoff-max-ms", 1_000, "The longest pause before a retry.", low=1
    )
    address_map = Option[StringMap](
        "address.map",
        StringMap(),
        _address_map,
        "Reachable addresses in place of those that servers advertise: "
        "advertised=reachable, separated by commas.",
    )

    security_protocol = Option[str](
        "security.protocol",
        "PLAINTEXT",
        _one_of("PLAINTEXT", "sasl"),
        "The protocol of connections: PLAINTEXT, or sasl for a login.",
    )
    security_sasl_mechanism = Option[str](
        "security.sasl.mechanism", "PLAIN", _one_of("PLAIN"), "The mechanism of the login: PLAIN."
    )
    security_sasl_username = words("security.sasl.username", "", "The name of the user.")
    security_sasl_password = words(
        "security.sasl.password", "", "The password of the user, or a marker for it.", secret=True
    )

    writer_acks = Option[str](
        "writer.acks",
        "all",
        _acks,
        "The replicas that must have a batch before it is acknowledged: all replicas in "
        "sync, 1 (the leader), or 0 (none).",
    )
    writer_retries = whole(
        "writer.retries", INT_MAX, "The maximum number of retries of a batch.", low=0
    )
    writer_request_max_size = size(
        "writer.request-max-size",
        10 * _MIB,
        "The maximum size of a request with batches.",
        aliases=("request.max.size",),
    )
    writer_batch_size = size(
        "writer.batch-size",
        2 * _MIB,
        "The maximum size of a batch.",
        aliases=("writer.batch.size",),
    )
    writer_dynamic_batch_size_enabled = flag(
        "writer.dynamic-batch-size.enabled",
        True,
        "Whether the size of batches adapts to the amount of data that is written.",
    )
    writer_dynamic_batch_size_min = size(
        "writer.dynamic-batch-size-min", 256 * _KIB, "The minimum size of batches that adapt."
    )
    writer_batch_timeout_ms = duration(
        "writer.batch-timeout-ms",
        100,
        "The time for which a batch waits for more rows before it is sent.",
        high=2**63 - 1,
        aliases=("writer.batch-timeout",),
    )
    writer_buffer_memory_size = size(
        "writer.buffer.memory-size",
        64 * _MIB,
        "The memory for rows that are not sent yet; when it is full, writing waits.",
        high=2**63 - 1,
    )
    writer_buffer_wait_timeout_ms = duration(
        "writer.buffer.wait-timeout-ms",
        _FOREVER_MS,
        "The time limit for writing to wait for free memory.",
        aliases=("writer.buffer.wait-timeout",),
    )
    writer_bucket_no_key_assigner = Option[str](
        "writer.bucket.no-key-assigner",
        "sticky",
        _one_of("sticky", "round_robin"),
        "The way in which rows without a bucket key are distributed to buckets: sticky or "
        "round_robin.",
    )
    writer_enable_idempotence = flag(
        "writer.enable-idempotence",
        True,
        "Whether servers write a batch only once if it is sent again.",
    )
    writer_max_inflight_requests_per_bucket = whole(
        "writer.max-inflight-requests-per-bucket",
        INFLIGHT_IDEMPOTENT_MAX,
        "The maximum number of batches in flight for a bucket.",
    )
    writer_kv_backpressure_max_throttle_ms = duration(
        "writer.kv-backpressure.max-throttle-ms",
        3_000,
        "The longest pause if a server asks writers to slow down.",
    )
    writer_dynamic_create_partition_enabled = flag(
        "writer.dynamic-create-partition.enabled",
        True,
        "Whether writing into a missing partition creates it.",
    )

    scanner_log_max_poll_records = whole(
        "scanner.log.max-poll-records", 500, "The maximum number of records that a poll returns."
    )
    scanner_log_fetch_max_bytes = size(
        "scanner.log.fetch.max-bytes",
        16 * _MIB,
        "The maximum size of a server's response to a fetch.",
    )
    scanner_log_fetch_max_bytes_for_bucket = size(
        "scanner.log.fetch.max-bytes-for-bucket",
        _MIB,
        "The maximum size of one bucket's part of that response; if it is not set, readers "
        "of a whole range request twice as much, and eight times as much for one result.",
    )
    scanner_log_fetch_min_bytes = size(
        "scanner.log.fetch.min-bytes",
        1,
        "The minimum amount of data for which a server responds to a fetch before the time limit.",
        low=0,
    )
    scanner_log_fetch_wait_max_time_ms = duration(
        "scanner.log.fetch.wait-max-time-ms",
        500,
        "The time limit for a server to wait for that amount.",
        high=INT_MAX,
        aliases=("scanner.log.fetch.wait-max-time",),
    )
    scanner_log_read_preference = Option[str](
        "scanner.log.read-preference",
        "local-first",
        _one_of("local-first", "remote-first"),
        "Where to read rows that are both on a server's disks and in the remote store: "
        "local-first, or remote-first, which puts less load on the servers. Servers before "
        "1.0 ignore it.",
    )
    scanner_log_check_crc = flag(
        "scanner.log.check-crc",
        True,
        "Whether the client checks the checksums of batches; a batch that a server has "
        "projected has no valid checksum and is not checked.",
    )
    scanner_remote_log_prefetch_num = whole(
        "scanner.remote-log.prefetch-num",
        4,
        "The number of remote segments that a scanner reads ahead.",
    )
    scanner_remote_log_read_concurrency = whole(
        "scanner.remote-log.read-concurrency",
        4,
        "The number of parts of remote files that a scanner reads concurrently.",
    )
    scanner_kv_fetch_max_bytes = size(
        "scanner.kv.fetch.max-bytes",
        4 * _MIB,
        "The maximum size of a page when a scan reads the rows of a primary-key table "
        "(SCAN_KV, servers from 1.0 on).",
    )
    remote_file_download_thread_num = whole(
        "remote-file.download-thread-num",
        3,
        "The number of parts of remote files that a connection reads concurrently.",
    )
    remote_file_credentials = Option[str](
        "remote-file.credentials",
        "cluster",
        _one_of("cluster", "own"),
        "The credentials for remote files: `cluster` for temporary ones from the cluster, "
        "or `own` for those in remote-file.storage-options or, without them, those that the"
        " file system finds in the environment, in its files or by the role of the machine.",
    )
    remote_file_storage_options = Option[str](
        "remote-file.storage-options",
        "",
        _json_object,
        "Options for the fsspec file system that reads remote files, as JSON or as a dict, "
        'such as {"endpoint_url": "http://minio:9000"} for s3fs. They replace the options '
        "that the cluster sends.",
        secret=True,
    )

    lookup_max_batch_size = whole(
        "lookup.max-batch-size", 4_096, "The maximum number of lookups in a request."
    )
    lookup_max_inflight_requests = whole(
        "lookup.max-inflight-requests",
        2,
        "The maximum number of lookup requests of a table that are in flight to a server.",
    )
    lookup_max_retries = whole(
        "lookup.max-retries", INT_MAX, "The maximum number of retries of a lookup.", low=0
    )

    lake_uri = Option[str](
        "lake.uri",
        "",
        _without_password,
        "The address of the lake's catalog, in place of the one in the properties of the tables.",
    )
    lake_user = words("lake.user", "", "The user of a lake's catalog in a SQL database.")
    lake_password = words(
        "lake.password", "", "The password of that user, or a marker for it.", secret=True
    )
    lake_token = words("lake.token", "", "The token for a REST catalog.", secret=True)
    lake_client_secret = words(
        "lake.client-secret",
        "",
        "The `id:secret` of an OAuth client, for which a REST catalog returns a token.",
        secret=True,
    )
    lake_s3_endpoint = words(
        "lake.s3.endpoint", "", "The endpoint of the object store with the lake's files."
    )
    lake_s3_region = words("lake.s3.region", "", "The region of that store.")
    lake_s3_access_key_id = words(
        "lake.s3.access-key-id", "", "The id of the access key for that store."
    )
    lake_s3_secret_access_key = words(
        "lake.s3.secret-access-key", "", "The secret access key for that store.", secret=True
    )
    lake_s3_session_token = words(
        "lake.s3.session-token", "", "The session token of a temporary access key.", secret=True
    )
    lake_properties = Option[StringMap](
        "lake.properties",
        StringMap(),
        _lake_properties,
        "Other properties of the lake's catalog or files, as pyiceberg names them: "
        "name=value, separated by commas. Secrets are refused here.",
    )


# Keys of the Java client that have no effect here, and why.
ONLY_IN_JAVA = {
    "id": "clients send servers their name and version and nothing else",
    "client.id": "clients send servers their name and version and nothing else",
    "lookup.queue-size": "lookups have no queue of their own; the caller waits for them",
    "lookup.batch-timeout": "a lookup is sent immediately, with those that arrived in between",
    "scanner.io.tmpdir": "remote files are read in place and never kept",
    "writer.buffer.page-size": "buffers are not made of pages",
    "writer.buffer.per-request-memory-size": "buffers are not made of pages",
    "security.sasl.jaas.config": "set security.sasl.username and security.sasl.password instead",
    "metrics.enabled": "metrics are always counted; session.counters() reads them",
    "filesystem.security.token.renewal.backoff": "tokens are asked for when they are needed",
    "filesystem.security.token.renewal.time-ratio": "tokens are asked for when they are needed",
    "config.providers": "markers are resolved without being declared",
}
