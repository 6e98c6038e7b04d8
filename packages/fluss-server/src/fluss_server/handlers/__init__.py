"""What the server serves: one function per API key, and the table of all of them.

API_VERSIONS is answered from that table, so that nothing is promised which is not here. A key
without a handler is refused with an error code, which is kinder than the silence of Fluss.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.handlers import (
    serve_cluster as cluster,
    serve_databases as databases,
    serve_fetch as fetch,
    serve_keys as keys,
    serve_offsets as offsets,
    serve_partitions as partitions,
    serve_produce as produce,
    serve_producers as producers,
    serve_scan_kv as scan_kv,
    serve_tables as tables,
    serve_unsupported as elsewhere,
)
from fluss_server.request import Call, Handler, plain
from fluss_server.server_node import Node

_SERVED = (
    *cluster.HANDLERS,
    *databases.HANDLERS,
    *tables.HANDLERS,
    *partitions.HANDLERS,
    *produce.HANDLERS,
    *fetch.HANDLERS,
    *offsets.HANDLERS,
    *keys.HANDLERS,
    *scan_kv.HANDLERS,
    *producers.HANDLERS,
    *elsewhere.HANDLERS,
)


def _api_versions(node: Node, call: Call, request: pb.ApiVersionsRequest) -> pb.ApiVersionsResponse:
    """What this server serves."""
    del node, call, request
    return cluster.versions_of([each.key for each in HANDLERS.values()])


HANDLERS: Final[Mapping[int, Handler]] = MappingProxyType(
    {int(each.key): each for each in (*_SERVED, plain(ApiKey.API_VERSIONS, _api_versions))}
)
