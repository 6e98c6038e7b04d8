"""The request handlers: one function per API key, and the table of all of them.

API_VERSIONS is answered from that table, so the server offers nothing that it does not serve. A
key without a handler is refused with an error code; Fluss does not respond at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.handlers import (
    serve_access,
    serve_cluster,
    serve_configs,
    serve_databases,
    serve_fetch,
    serve_keys,
    serve_lake,
    serve_offsets,
    serve_partitions,
    serve_produce,
    serve_producers,
    serve_rebalance,
    serve_scan_kv,
    serve_snapshots,
    serve_tables,
    serve_unsupported,
)
from fluss_server.request_handler import Call, Handler, message_handler
from fluss_server.server_node import Node

_SERVED = (
    *serve_cluster.HANDLERS,
    *serve_databases.HANDLERS,
    *serve_tables.HANDLERS,
    *serve_partitions.HANDLERS,
    *serve_produce.HANDLERS,
    *serve_fetch.HANDLERS,
    *serve_offsets.HANDLERS,
    *serve_keys.HANDLERS,
    *serve_scan_kv.HANDLERS,
    *serve_producers.HANDLERS,
    *serve_access.HANDLERS,
    *serve_configs.HANDLERS,
    *serve_rebalance.HANDLERS,
    *serve_lake.HANDLERS,
    *serve_snapshots.HANDLERS,
    *serve_unsupported.HANDLERS,
)


def _api_versions(node: Node, call: Call, request: pb.ApiVersionsRequest) -> pb.ApiVersionsResponse:
    """Return the API keys and versions of this server."""
    del node, call, request
    return serve_cluster.versions_of([handler.key for handler in HANDLERS.values()])


HANDLERS: Final[Mapping[int, Handler]] = MappingProxyType(
    {
        int(handler.key): handler
        for handler in (*_SERVED, message_handler(ApiKey.API_VERSIONS, _api_versions))
    }
)
