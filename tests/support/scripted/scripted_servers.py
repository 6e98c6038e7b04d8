"""Several scripted servers of one cluster, each of which can be down or hang.

All are tablet servers with the responses of one `ScriptedCluster`; in the metadata the first one is
the coordinator as well. A server that is down refuses connections; one that hangs accepts them and
never responds.
"""

from __future__ import annotations

from typing import Any, Self

from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from tests.support.scripted.scripted_cluster import ScriptedCluster
from tests.support.scripted.scripted_kv import ScriptedKv
from tests.support.scripted.scripted_peer import Request, ScriptedPeer


class ScriptedServers:
    """A scripted cluster of several servers; `SERVER_ID`, the second, leads every bucket."""

    def __init__(self, cluster: ScriptedCluster | ScriptedKv, *, count: int = 3) -> None:
        self.cluster = cluster
        self.hanging: set[int] = set()
        self.asked: list[tuple[int, ApiKey]] = []
        self.peers = [ScriptedPeer(self._script(number)) for number in range(count)]
        cluster._get_metadata = self._metadata(cluster._get_metadata)  # type: ignore[method-assign]

    def __enter__(self) -> Self:
        for peer in self.peers:
            peer.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.cluster.hold_lookups.set()
        for peer in self.peers:
            peer.__exit__(*error)

    @property
    def bootstrap(self) -> str:
        """The addresses of all servers."""
        return ",".join(f"{peer.host}:{peer.port}" for peer in self.peers)

    def take_down(self, number: int) -> None:
        """Stop a server: its connections break, and new ones are refused."""
        self.peers[number].__exit__()

    def hang(self, number: int) -> None:
        """Let a server accept connections and requests without responding."""
        self.hanging.add(number)

    def resume(self, number: int) -> None:
        """Let a server respond to new requests again."""
        self.hanging.discard(number)

    def asked_of(self, number: int, api: ApiKey) -> int:
        """Return how often a server received a request."""
        return self.asked.count((number, api))

    def _script(self, number: int) -> Any:
        def answer(request: Request) -> bytes | None:
            self.asked.append((number, ApiKey(request.api_key)))
            if number in self.hanging:
                return None
            return self.cluster._answer(request)

        return answer

    def _metadata(self, of_one: Any) -> Any:
        def answer(asked: Any) -> Any:
            self.cluster.address = (self.peers[0].host, self.peers[0].port)
            found = of_one(asked)
            if isinstance(found, pb.MetadataResponse):
                del found.tablet_servers[:]
                for number, peer in enumerate(self.peers):
                    found.tablet_servers.add(node_id=number, host=peer.host, port=peer.port)
            return found

        return answer
