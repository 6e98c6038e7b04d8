"""The APIs of the protocol: which servers have them, in which versions, with which messages.

A request carries the number of an API and a version that both sides know. A server lists what it
serves in its answer to API_VERSIONS, the first request on every connection. A key that it does not
list must not be sent: the server would not even answer (Java: ApiKeys, ServerApiVersions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from fluss.errors import LeaderChangedError, UnsupportedVersionError
from fluss.wire import messages

if TYPE_CHECKING:
    from google.protobuf.message import Message


class ServerRole(IntEnum):
    """The role that a server reports; one with both roles reports none."""

    COORDINATOR = 1
    TABLET_SERVER = 2


_COORDINATOR = frozenset({ServerRole.COORDINATOR})
_TABLET = frozenset({ServerRole.TABLET_SERVER})
_BOTH = _COORDINATOR | _TABLET

# "Internal" is a label only: servers answer these to every client.
_PUBLIC = True
_INTERNAL = False

_FIRST_KEY_OF_1_0 = 1060

# The server id of a client in requests that replicas send too (Java: `-1`).
CLIENT_IS_NO_FOLLOWER = -1


class ApiKey(IntEnum):
    """The number of an API, and its facts.

    Each line: number, the servers that have it, visibility, name of its messages without `Request`
    and `Response` (None where only servers send it), and the highest version this package knows.
    """

    servers: frozenset[ServerRole]
    is_public: bool
    message: str | None
    version_max: int

    def __new__(
        cls,
        number: int,
        servers: frozenset[ServerRole],
        is_public: bool,  # noqa: FBT001 - a column of the table below
        message: str | None,
        version_max: int = 0,
    ) -> Self:
        """Make a member from its line."""
        key = int.__new__(cls, number)
        key._value_ = number
        key.servers = servers
        key.is_public = is_public
        key.message = message
        key.version_max = version_max
        return key

    API_VERSIONS = 1000, _BOTH, _PUBLIC, "ApiVersions"
    CREATE_DATABASE = 1001, _COORDINATOR, _PUBLIC, "CreateDatabase"
    DROP_DATABASE = 1002, _COORDINATOR, _PUBLIC, "DropDatabase"
    LIST_DATABASES = 1003, _BOTH, _PUBLIC, "ListDatabases"
    DATABASE_EXISTS = 1004, _BOTH, _PUBLIC, "DatabaseExists"
    CREATE_TABLE = 1005, _COORDINATOR, _PUBLIC, "CreateTable"
    DROP_TABLE = 1006, _COORDINATOR, _PUBLIC, "DropTable"
    GET_TABLE_INFO = 1007, _BOTH, _PUBLIC, "GetTableInfo"
    LIST_TABLES = 1008, _BOTH, _PUBLIC, "ListTables"
    LIST_PARTITION_INFOS = 1009, _BOTH, _PUBLIC, "ListPartitionInfos"
    TABLE_EXISTS = 1010, _BOTH, _PUBLIC, "TableExists"
    GET_TABLE_SCHEMA = 1011, _BOTH, _PUBLIC, "GetTableSchema"
    GET_METADATA = 1012, _BOTH, _PUBLIC, "Metadata"
    UPDATE_METADATA = 1013, _TABLET, _INTERNAL, None
    # Since version 1 of this and version 3 of PUT_KV a batch may name a historical partition.
    PRODUCE_LOG = 1014, _TABLET, _PUBLIC, "ProduceLog", 1
    FETCH_LOG = 1015, _TABLET, _PUBLIC, "FetchLog"
    # Since version 1 of this and of the two lookups the client encodes primary keys by the rule of
    # key format 2; since version 2 of this one it knows error 72.
    PUT_KV = 1016, _TABLET, _PUBLIC, "PutKv", 3
    LOOKUP = 1017, _TABLET, _PUBLIC, "Lookup", 1
    NOTIFY_LEADER_AND_ISR = 1018, _TABLET, _INTERNAL, None
    STOP_REPLICA = 1019, _TABLET, _INTERNAL, None
    ADJUST_ISR = 1020, _COORDINATOR, _INTERNAL, None
    LIST_OFFSETS = 1021, _TABLET, _PUBLIC, "ListOffsets"
    COMMIT_KV_SNAPSHOT = 1022, _COORDINATOR, _INTERNAL, None
    GET_LATEST_KV_SNAPSHOTS = 1023, _BOTH, _PUBLIC, "GetLatestKvSnapshots"
    # Since version 1 the client reads values with a tag, as tables with a TTL of rows have them.
    GET_KV_SNAPSHOT_METADATA = 1024, _BOTH, _PUBLIC, "GetKvSnapshotMetadata", 1
    GET_FILESYSTEM_SECURITY_TOKEN = 1025, _BOTH, _PUBLIC, "GetFileSystemSecurityToken"
    INIT_WRITER = 1026, _TABLET, _PUBLIC, "InitWriter"
    COMMIT_REMOTE_LOG_MANIFEST = 1027, _COORDINATOR, _INTERNAL, None
    NOTIFY_REMOTE_LOG_OFFSETS = 1028, _TABLET, _INTERNAL, None
    NOTIFY_KV_SNAPSHOT_OFFSET = 1029, _TABLET, _INTERNAL, None
    COMMIT_LAKE_TABLE_SNAPSHOT = 1030, _COORDINATOR, _INTERNAL, "CommitLakeTableSnapshot"
    NOTIFY_LAKE_TABLE_OFFSET = 1031, _TABLET, _INTERNAL, None
    GET_LAKE_SNAPSHOT = 1032, _BOTH, _PUBLIC, "GetLakeSnapshot"
    LIMIT_SCAN = 1033, _TABLET, _PUBLIC, "LimitScan"
    PREFIX_LOOKUP = 1034, _TABLET, _PUBLIC, "PrefixLookup", 1
    GET_DATABASE_INFO = 1035, _BOTH, _PUBLIC, "GetDatabaseInfo"
    CREATE_PARTITION = 1036, _COORDINATOR, _PUBLIC, "CreatePartition"
    DROP_PARTITION = 1037, _COORDINATOR, _PUBLIC, "DropPartition"
    AUTHENTICATE = 1038, _BOTH, _PUBLIC, "Authenticate"
    CREATE_ACLS = 1039, _COORDINATOR, _PUBLIC, "CreateAcls"
    LIST_ACLS = 1040, _BOTH, _PUBLIC, "ListAcls"
    DROP_ACLS = 1041, _COORDINATOR, _PUBLIC, "DropAcls"
    LAKE_TIERING_HEARTBEAT = 1042, _COORDINATOR, _INTERNAL, "LakeTieringHeartbeat"
    CONTROLLED_SHUTDOWN = 1043, _COORDINATOR, _INTERNAL, None
    # Since version 1 the request may change the bucket count of new partitions.
    ALTER_TABLE = 1044, _COORDINATOR, _PUBLIC, "AlterTable", 1
    DESCRIBE_CLUSTER_CONFIGS = 1045, _BOTH, _PUBLIC, "DescribeClusterConfigs"
    ALTER_CLUSTER_CONFIGS = 1046, _COORDINATOR, _PUBLIC, "AlterClusterConfigs"
    ADD_SERVER_TAG = 1047, _COORDINATOR, _PUBLIC, "AddServerTag"
    REMOVE_SERVER_TAG = 1048, _COORDINATOR, _PUBLIC, "RemoveServerTag"
    REBALANCE = 1049, _COORDINATOR, _PUBLIC, "Rebalance"
    LIST_REBALANCE_PROGRESS = 1050, _COORDINATOR, _PUBLIC, "ListRebalanceProgress"
    CANCEL_REBALANCE = 1051, _COORDINATOR, _PUBLIC, "CancelRebalance"
    PREPARE_LAKE_TABLE_SNAPSHOT = 1052, _COORDINATOR, _INTERNAL, "PrepareLakeTableSnapshot"
    REGISTER_PRODUCER_OFFSETS = 1053, _COORDINATOR, _PUBLIC, "RegisterProducerOffsets"
    GET_PRODUCER_OFFSETS = 1054, _COORDINATOR, _PUBLIC, "GetProducerOffsets"
    DELETE_PRODUCER_OFFSETS = 1055, _COORDINATOR, _PUBLIC, "DeleteProducerOffsets"
    ACQUIRE_KV_SNAPSHOT_LEASE = 1056, _COORDINATOR, _PUBLIC, "AcquireKvSnapshotLease"
    RELEASE_KV_SNAPSHOT_LEASE = 1057, _COORDINATOR, _PUBLIC, "ReleaseKvSnapshotLease"
    DROP_KV_SNAPSHOT_LEASE = 1058, _COORDINATOR, _PUBLIC, "DropKvSnapshotLease"
    GET_TABLE_STATS = 1059, _TABLET, _PUBLIC, "GetTableStats"
    ALTER_DATABASE = 1060, _COORDINATOR, _PUBLIC, "AlterDatabase"
    SCAN_KV = 1061, _TABLET, _PUBLIC, "ScanKv"
    GET_CLUSTER_HEALTH = 1062, _BOTH, _PUBLIC, "GetClusterHealth"
    LIST_REMOTE_LOG_MANIFESTS = 1063, _COORDINATOR, _PUBLIC, "ListRemoteLogManifests"
    LIST_KV_SNAPSHOTS = 1064, _COORDINATOR, _PUBLIC, "ListKvSnapshots"
    ADD_SERVER_TAG_BY_RACK = 1065, _COORDINATOR, _PUBLIC, "AddServerTagByRack"
    REMOVE_SERVER_TAG_BY_RACK = 1066, _COORDINATOR, _PUBLIC, "RemoveServerTagByRack"

    @property
    def version_min(self) -> int:
        """The lowest version this package knows; none has been dropped so far."""
        return 0

    @property
    def since(self) -> str:
        """The first release of Fluss that has this API; 0.9 stands for all earlier ones."""
        return "1.0" if self >= _FIRST_KEY_OF_1_0 else "0.9"

    @property
    def request(self) -> type[Message]:
        """The class of its request."""
        return messages.message_class(self._named("Request"))

    @property
    def response(self) -> type[Message]:
        """The class of its response."""
        return messages.message_class(self._named("Response"))

    def _named(self, suffix: str) -> str:
        if self.message is None:
            raise ValueError(f"{self.name} is between servers; its messages are not here")
        return self.message + suffix


_BY_MESSAGE = {f"{key.message}Request": key for key in ApiKey}


def api_of(request: Message) -> ApiKey:
    """The API that a request is for."""
    return _BY_MESSAGE[request.DESCRIPTOR.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerApis:
    """The role of a server, and the lowest and highest version of each API that it serves."""

    server_type: ServerRole | None
    versions: Mapping[int, tuple[int, int]]

    @classmethod
    def of(cls, keys: Iterable[ApiKey], *, server_type: ServerRole | None = None) -> ServerApis:
        """The APIs of a server of this package that serves these keys."""
        versions = {int(key): (key.version_min, key.version_max) for key in keys}
        return cls(server_type=server_type, versions=MappingProxyType(versions))

    @classmethod
    def from_response(cls, response: messages.ApiVersionsResponse) -> ServerApis:
        """Read the answer to API_VERSIONS."""
        versions = {
            each.api_key: (each.min_version, each.max_version) for each in response.api_versions
        }
        # A role that does not exist yet must not keep this client from talking to the server.
        known = set(ServerRole)
        number = response.server_type
        server_type = ServerRole(number) if number in known else None
        return cls(server_type=server_type, versions=MappingProxyType(versions))

    def to_response(self) -> messages.ApiVersionsResponse:
        """Write the answer to API_VERSIONS."""
        response = messages.ApiVersionsResponse()
        for key, (lowest, highest) in self.versions.items():
            response.api_versions.add(api_key=key, min_version=lowest, max_version=highest)
        if self.server_type is not None:
            response.server_type = self.server_type
        return response

    def offers(self, key: ApiKey) -> bool:
        """Whether the server serves the API in a version that both sides know."""
        if key not in self.versions:
            return False
        lowest, highest = self.versions[key]
        return max(lowest, key.version_min) <= min(highest, key.version_max)

    def version(self, key: ApiKey) -> int:
        """The highest version of an API that both sides know.

        Raises:
            UnsupportedVersionError: There is none, or the server does not serve the API.
        """
        if not self.offers(key):
            raise self._unsupported(key)
        return min(self.versions[key][1], key.version_max)

    def check_version(self, key: ApiKey, version_min: int) -> None:
        """Refuse a server that knows an API, but not the version that a request needs.

        Raises:
            UnsupportedVersionError: It does not; the hint names the release that does.
        """
        highest = self.version(key)
        if highest < version_min:
            raise UnsupportedVersionError(
                f"The request needs version {version_min} of {key.name}, and the server knows "
                f"{highest}.",
                hint=f"Version {version_min} of {key.name} came with Fluss 1.0; the server must be "
                "at least that.",
                api_key=key,
                server_versions=self.versions.get(key),
            )

    def check_type(self, expected: ServerRole) -> None:
        """Refuse a server that has another role than in the metadata; one without a role passes.

        Raises:
            LeaderChangedError: The server is of the other kind, so metadata is out of date.
        """
        if self.server_type is not None and self.server_type is not expected:
            raise LeaderChangedError(
                f"The server is a {_role(self.server_type)}, where a {_role(expected)} was expected.",
                hint="The cluster has changed its addresses; its metadata must be read again.",
                expected=expected,
                found=self.server_type,
            )

    def _unsupported(self, key: ApiKey) -> UnsupportedVersionError:
        facts: Any = {"api_key": key, "server_versions": self.versions.get(key)}
        if key in self.versions:
            lowest, highest = self.versions[key]
            return UnsupportedVersionError(
                f"No version of {key.name} is known to both sides: the server knows {lowest} to "
                f"{highest}, this client {key.version_min} to {key.version_max}.",
                hint="Use a client and a server of nearer releases.",
                **facts,
            )
        served = f"{min(self.versions)} to {max(self.versions)}" if self.versions else "none"
        if self.server_type is not None and self.server_type not in key.servers:
            needed = " or ".join(_role(each) for each in key.servers)
            hint = f"Ask a {needed}."
        else:
            hint = f"{key.name} came with Fluss {key.since}; the server must be at least that."
        return UnsupportedVersionError(
            f"The server does not serve {key.name} ({int(key)}); the APIs it serves: {served}.",
            hint=hint,
            **facts,
        )


def _role(server_type: ServerRole) -> str:
    return server_type.name.lower().replace("_", " ")
