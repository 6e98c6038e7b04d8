"""What the parts of `AdminCore` share: how a change is sent."""

from __future__ import annotations

from google.protobuf.message import Message

from fluss.connection.describe_table import nearest_named
from fluss.model.paths import TablePath
from fluss.net.cluster_client import Cluster
from fluss.wire.api import api_of


class AdminRequests:
    """Sends requests to one cluster.

    Args:
        cluster: Reaches the servers.
        keeper: An object that must live as long as this: an unreferenced connection is closed.
    """

    def __init__(self, cluster: Cluster, *, keeper: object = None) -> None:
        self._cluster = cluster
        self._keeper = keeper

    async def _change(self, request: Message) -> None:
        response = api_of(request).response
        await self._cluster.ask_coordinator(request, response, repeatable=False)

    async def _change_table(self, path: TablePath, request: Message) -> None:
        async with nearest_named(self._cluster, path):
            await self._change(request)
