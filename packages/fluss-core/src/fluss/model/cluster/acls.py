"""Access control: who may do what with which part of a cluster.

The names are Java's (`org.apache.fluss.security.acl`), with two classes in place of five: an entry
is one `AclBinding`, and what selects entries is one `AclBindingFilter`. A server stores whatever it
is given; entries that would never match a request are refused here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import auto
from typing import Any, Final, Self, TypeVar

from fluss.errors import InvalidValueError
from fluss.model.cluster.codes import NamedCode
from fluss.model.names import check_name
from fluss.model.paths import TablePath

CLUSTER_NAME: Final = "fluss-cluster"
WILDCARD: Final = "*"
USER_TYPE: Final = "User"

T = TypeVar("T")


def _unchecked(cls: type[T], **fields: Any) -> T:
    made = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


class _CodeFromOne(NamedCode):
    @staticmethod
    def _generate_next_value_(name: str, *_: object) -> str:
        return name

    @classmethod
    def _first(cls) -> int:
        return 1


class ResourceType(_CodeFromOne):
    """What an entry is about; `ANY` is for filters only."""

    ANY = auto()
    CLUSTER = auto()
    DATABASE = auto()
    TABLE = auto()


class OperationType(_CodeFromOne):
    """What a user may do; `ANY` is for filters only, `ALL` stands for every operation."""

    ANY = auto()
    ALL = auto()
    READ = auto()
    WRITE = auto()
    CREATE = auto()
    DROP = auto()
    ALTER = auto()
    DESCRIBE = auto()


class PermissionType(_CodeFromOne):
    """Fluss can allow, not deny; `ANY` is for filters only."""

    ANY = auto()
    ALLOW = auto()


@dataclass(frozen=True, slots=True)
class Resource:
    """The cluster, a database or a table, or all databases or tables (`*`).

    Example:
        >>> Resource.table("shop.orders")
        Resource.table('shop.orders')
    """

    type: ResourceType
    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ResourceType.of(self.type))
        _check_resource(self.type, self.name)

    @classmethod
    def stored(cls, kind: ResourceType, name: str) -> Self:
        """The resource of an entry that a server stores, which need not follow the rules."""
        return _unchecked(cls, type=kind, name=name)

    @staticmethod
    def cluster() -> Resource:
        """The cluster, with everything in it."""
        return Resource(ResourceType.CLUSTER, CLUSTER_NAME)

    @staticmethod
    def database(name: str) -> Resource:
        """A database with its tables; `*` for every database."""
        return Resource(ResourceType.DATABASE, name)

    @staticmethod
    def table(path: TablePath | str) -> Resource:
        """A table, as `database.table` or a `TablePath`; `*` for every table."""
        return Resource(ResourceType.TABLE, str(path))

    def __str__(self) -> str:
        if self.type is ResourceType.CLUSTER:
            return "the cluster"
        noun = self.type.lower()
        return f"every {noun}" if self.name == WILDCARD else f"{noun} {self.name}"

    def __repr__(self) -> str:
        named = "" if self.type is ResourceType.CLUSTER else repr(self.name)
        return f"Resource.{self.type.lower()}({named})"


def _check_resource(kind: ResourceType, name: str) -> None:
    if kind is ResourceType.ANY:
        raise InvalidValueError(
            "An entry is about the cluster, a database or a table; ANY is for filters.",
            hint="The methods of Resource make one: cluster, database and table.",
        )
    if kind is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidValueError(
            f"The resource of the cluster is called {CLUSTER_NAME!r}, not {name!r}.",
            hint="The method Resource.cluster makes it.",
        )
    if name == WILDCARD or kind is ResourceType.CLUSTER:
        return
    if kind is ResourceType.TABLE:
        TablePath.parse(name)
    else:
        check_name("database name", name)


@dataclass(frozen=True, slots=True)
class FlussPrincipal:
    """A user, in texts `User:alice` or `alice`; `FlussPrincipal.everyone()` for everyone."""

    name: str
    type: str = USER_TYPE

    def __post_init__(self) -> None:
        if not self.name or not self.type:
            raise InvalidValueError("A principal has a type and a name, for example User:alice.")
        if self.type != USER_TYPE and self.type.casefold() == USER_TYPE.casefold():
            raise InvalidValueError(
                f"The type of a user is {USER_TYPE!r}, not {self.type!r}.",
                hint="Servers compare it exactly.",
            )
        if (self.type == WILDCARD) != (self.name == WILDCARD):
            raise InvalidValueError(
                f"{self.type}:{self.name} is no user; everyone is *:*.",
                hint="The text '*' stands for everyone.",
            )

    @classmethod
    def stored(cls, name: str, kind: str) -> Self:
        """The user of an entry that a server stores, who need not follow the rules."""
        return _unchecked(cls, name=name, type=kind)

    @staticmethod
    def everyone() -> FlussPrincipal:
        """Every user, and connections without a login."""
        return FlussPrincipal(WILDCARD, WILDCARD)

    @staticmethod
    def anonymous() -> FlussPrincipal:
        """The user of connections without a login."""
        return FlussPrincipal("ANONYMOUS")

    @staticmethod
    def of(given: FlussPrincipal | str) -> FlussPrincipal:
        """The principal that a text names: `User:alice`, `alice`, or `*` for everyone."""
        if isinstance(given, FlussPrincipal):
            return given
        if given == WILDCARD:
            return FlussPrincipal.everyone()
        kind, colon, name = given.partition(":")
        return FlussPrincipal(name, kind) if colon else FlussPrincipal(given)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


@dataclass(frozen=True, slots=True)
class AclBinding:
    """An entry: a user may do an operation with a resource, from a host.

    Args:
        resource: What it is about.
        principal: Who; a `FlussPrincipal`, or a text such as `"alice"`, `"User:alice"` or `"*"`.
        operation: What; an `OperationType` or its name.
        host: The address that the user comes from; `*` for every one.
        permission: `ALLOW`, which is all there is.

    Raises:
        InvalidValueError: No request would ever match it.

    Example:
        >>> print(AclBinding(Resource.table("shop.orders"), "alice", "read"))
        User:alice may READ table shop.orders
    """

    resource: Resource
    principal: FlussPrincipal
    operation: OperationType
    host: str = WILDCARD
    permission: PermissionType = field(default=PermissionType.ALLOW, kw_only=True)

    def __init__(
        self,
        resource: Resource,
        principal: FlussPrincipal | str,
        operation: OperationType | str,
        host: str = WILDCARD,
        *,
        permission: PermissionType | str = PermissionType.ALLOW,
    ) -> None:
        object.__setattr__(self, "resource", resource)
        object.__setattr__(self, "principal", FlussPrincipal.of(principal))
        object.__setattr__(self, "operation", OperationType.of(operation))
        object.__setattr__(self, "host", host)
        object.__setattr__(self, "permission", PermissionType.of(permission))
        if self.operation is OperationType.ANY or self.permission is PermissionType.ANY:
            raise InvalidValueError(
                "An entry names an operation and allows it; ANY is for filters.",
                hint="OperationType.ALL stands for every operation.",
            )

    @classmethod
    def stored(
        cls,
        *,
        resource: Resource,
        principal: FlussPrincipal,
        operation: OperationType,
        host: str,
        permission: PermissionType,
    ) -> Self:
        """An entry that a server stores, which need not follow the rules."""
        return _unchecked(
            cls,
            resource=resource,
            principal=principal,
            operation=operation,
            host=host,
            permission=permission,
        )

    def to_filter(self) -> AclBindingFilter:
        """The filter that selects this entry, and no other one."""
        return AclBindingFilter(
            resource_type=self.resource.type,
            resource_name=self.resource.name,
            principal=self.principal,
            operation=self.operation,
            host=self.host,
            permission=self.permission,
        )

    def __str__(self) -> str:
        where = "" if self.host == WILDCARD else f" from {self.host}"
        return f"{self.principal} may {self.operation} {self.resource}{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBindingFilter:
    """Selects entries; what is not given matches everything.

    A filter of an operation selects entries of exactly this operation: READ does not select ALL.

    Args:
        resource_type: A `ResourceType` or its name.
        resource_name: `db`, `db.table` or `*`, which is the entry for all of a type. Needs a type.
        principal: A `FlussPrincipal`, or a text such as `"alice"`.
        operation: An `OperationType` or its name.
        host: As it is written in the entry.
        permission: A `PermissionType` or its name.
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    principal: FlussPrincipal | None = None
    operation: OperationType = OperationType.ANY
    host: str | None = None
    permission: PermissionType = PermissionType.ANY

    def __init__(
        self,
        *,
        resource_type: ResourceType | str = ResourceType.ANY,
        resource_name: str | None = None,
        principal: FlussPrincipal | str | None = None,
        operation: OperationType | str = OperationType.ANY,
        host: str | None = None,
        permission: PermissionType | str = PermissionType.ANY,
    ) -> None:
        object.__setattr__(self, "resource_type", ResourceType.of(resource_type))
        object.__setattr__(self, "resource_name", resource_name)
        object.__setattr__(
            self, "principal", None if principal is None else FlussPrincipal.of(principal)
        )
        object.__setattr__(self, "operation", OperationType.of(operation))
        object.__setattr__(self, "host", host)
        object.__setattr__(self, "permission", PermissionType.of(permission))
        if resource_name is not None and self.resource_type is ResourceType.ANY:
            raise InvalidValueError(
                f"A filter names the resource {resource_name!r} and no type of it; servers would "
                "ignore the name.",
                hint="Add its type: DATABASE or TABLE.",
            )

    @staticmethod
    def of_resource(resource: Resource) -> AclBindingFilter:
        """The filter that selects the entries of one resource."""
        return AclBindingFilter(resource_type=resource.type, resource_name=resource.name)

    def matches(self, entry: AclBinding) -> bool:
        """Whether it selects an entry."""
        resource, any_type = entry.resource, self.resource_type is ResourceType.ANY
        return (
            (any_type or resource.type is self.resource_type)
            and (any_type or self.resource_name in {None, resource.name})
            and self.principal in {None, entry.principal}
            and self.operation in {OperationType.ANY, entry.operation}
            and self.host in {None, entry.host}
            and self.permission in {PermissionType.ANY, entry.permission}
        )
