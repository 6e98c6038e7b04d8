"""Sends the same requests to the real Fluss and to the embedded server, and compares responses.

A question is a function of a `ServerUnderComparison`. It may send several requests to that server,
and returns what both servers must agree on. Ids and times differ between servers, so each object
keeps the ids of its own tables, and `differential_operations` does not compare them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.protobuf.message import Message

from fluss.wire import messages as pb
from fluss.wire.api import ServerRole
from tests.support.servers.raw_client import API_KEYS, RawConnection, RefusedError

NEWEST_VERSIONS = {"PutKv": 1, "Lookup": 1, "PrefixLookup": 1}
SETTLED_WITHIN_S = 20.0
# Generous, because proofs run on busy machines, and a server imports much at its start.
PATIENCE_S = 180.0
# A bucket that is there may be called unknown, or without a leader, for a moment.
_NOT_YET = {12, 21, 44}
HISTORY_SHOWN = 8
_ANSWERED = "answered"
# Java's code of an unexpected exception; the embedded server may return a specific one.
_UNFORESEEN = "refused with -1"


class LostTableError(Exception):
    """The real server has lost a table for good, as a coordinator of 0.9.1 sometimes does."""


Question = Callable[["ServerUnderComparison"], Any]


class ServerUnderComparison:
    """Connections to one of the servers, and the ids that it assigned."""

    def __init__(self, bootstrap: str, database: str) -> None:
        self.database = database
        self._coordinator = RawConnection(bootstrap.split(",", maxsplit=1)[0], timeout_s=PATIENCE_S)
        try:
            nodes = self._coordinator.call(pb.MetadataRequest()).tablet_servers
            address = f"{nodes[0].host}:{nodes[0].port}"
            self._tablet = RawConnection(address, timeout_s=PATIENCE_S)
        except BaseException:
            self._coordinator.close()
            raise

    @property
    def connection(self) -> RawConnection:
        """The connection to the coordinator, which is that of an embedded server."""
        return self._coordinator

    def close(self) -> None:
        self._coordinator.close()
        self._tablet.close()

    def call(self, request: Message) -> Any:
        """Send a request to the server in the right role, and return its response."""
        name = type(request).__name__.removesuffix("Request")
        at_tablet = ServerRole.TABLET_SERVER in API_KEYS[name].servers
        connection = self._tablet if at_tablet else self._coordinator
        return connection.call(request, version=NEWEST_VERSIONS.get(name, 0))

    def path(self, table: str) -> pb.PbTablePath:
        return pb.PbTablePath(database_name=self.database, table_name=table)

    def table_id(self, table: str) -> int:
        return self.call(pb.GetTableInfoRequest(table_path=self.path(table))).table_id

    def partition_id(self, table: str, partition: str | None) -> int | None:
        """Return the id of a partition by its name; an unused id where there is none."""
        if partition is None:
            return None
        listed = self.call(pb.ListPartitionInfosRequest(table_path=self.path(table)))
        for info in listed.partitions_info:
            values = [pair.value for pair in info.partition_spec.partition_key_values]
            if "$".join(values) == partition:
                return info.partition_id
        return 10**9

    def settles(self, table: str, partition: str | None, buckets: int) -> bool:
        """Wait until a bucket has a leader; return False where it gets none."""
        until = time.monotonic() + SETTLED_WITHIN_S
        # A fetch, because every replica answers LIST_OFFSETS, and only a leader this.
        request = pb.FetchLogRequest(follower_server_id=-1, max_bytes=1)
        asked = request.tables_req.add(
            table_id=self.table_id(table), projection_pushdown_enabled=False
        )
        for bucket in range(buckets):
            asked.buckets_req.add(
                bucket_id=bucket,
                partition_id=self.partition_id(table, partition),
                fetch_offset=0,
                max_fetch_bytes=1,
            )
        while any(each.error_code in _NOT_YET for each in self._fetched(request)):
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True

    def _fetched(self, request: pb.FetchLogRequest) -> Sequence[Any]:
        ((found),) = self.call(request).tables_resp
        return found.buckets_resp


class ServerPair:
    """The real server and the embedded one.

    Args:
        real: The address of the real one.
        embedded: The address of the embedded one.
        database: A database that both have.
    """

    def __init__(self, real: str, embedded: str, database: str) -> None:
        self.database = database
        self.history: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.succeeded = False
        self._real = ServerUnderComparison(real, database)
        self._embedded = ServerUnderComparison(embedded, database)

    def __iter__(self) -> Iterator[ServerUnderComparison]:
        return iter((self._real, self._embedded))

    def reconnect(self, *, real: str | None = None, embedded: str | None = None) -> None:
        """Connect to servers that were restarted."""
        if real is not None:
            self._real.close()
            self._real = ServerUnderComparison(real, self.database)
        if embedded is not None:
            self._embedded.close()
            self._embedded = ServerUnderComparison(embedded, self.database)

    def close(self) -> None:
        for client in self:
            client.close()

    def ask(self, what: str, question: Question) -> Any:
        """Ask both servers, compare their responses, and return the response.

        Raises:
            AssertionError: The responses differ.
        """
        self.history.append(what)
        expected, found = (_outcome(question, each) for each in self)
        self.outcomes[f"{what.split(' ', maxsplit=2)[1]}, {expected[0]}"] += 1
        if expected[0] == _UNFORESEEN and found[0].startswith("refused"):
            self.outcomes[f"{what.split(' ', maxsplit=2)[1]}, -1 for {found[0]}"] += 1
            expected = found
        assert found == expected, self._complaint(expected, found)
        self.succeeded = expected[0] == _ANSWERED
        return expected[1]

    def _complaint(self, expected: Any, found: Any) -> str:
        return "\n".join(
            [
                f"asked:    {self.history[-1]}",
                f"Fluss:    {expected}",
                f"embedded: {found}",
                *_first_difference(expected, found),
                "after:",
                *(f"  {each}" for each in self.history[-HISTORY_SHOWN:-1]),
            ]
        )


def _outcome(question: Question, client: ServerUnderComparison) -> tuple[str, Any]:
    try:
        return _ANSWERED, question(client)
    except RefusedError as error:
        return f"refused with {error.code}", None


def _first_difference(expected: Any, found: Any, at: str = "") -> Sequence[str]:
    lists = isinstance(expected, list | tuple) and isinstance(found, list | tuple)
    if lists and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            if one != other:
                return _first_difference(one, other, f"{at}[{index}]")
    return [f"at {at or 'all'}: {expected!r}", f"        but {found!r}"]
