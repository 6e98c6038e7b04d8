"""The entries of access control, and what follows from them (Java: `DefaultAuthorizer`).

A user may do an operation if an entry allows it on the resource, on all resources of its type, or
on one that contains it: a table's database, and the cluster. An entry for all databases does not
count for their tables. There is no denial: what no entry allows is forbidden. Nothing here waits.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fluss.model.cluster.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclBindingFilter,
    FlussPrincipal,
    OperationType,
    PermissionType,
    Resource,
    ResourceType,
)

_EVERYONE: Final = FlussPrincipal.everyone()
# Who may do one of these with something may also describe it.
_IMPLIES_DESCRIBE: Final = frozenset(
    {
        OperationType.DESCRIBE,
        OperationType.READ,
        OperationType.WRITE,
        OperationType.CREATE,
        OperationType.DROP,
        OperationType.ALTER,
    }
)


class AccessEntries:
    """Entries by resource."""

    def __init__(self, entries: Iterable[AclBinding] = ()) -> None:
        self._by_resource: dict[Resource, set[AclBinding]] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: AclBinding) -> None:
        """Add an entry; one that exists stays."""
        self._by_resource.setdefault(entry.resource, set()).add(entry)

    def remove(self, entries: Collection[AclBinding]) -> None:
        """Remove entries."""
        for entry in entries:
            found = self._by_resource.get(entry.resource, set())
            found.discard(entry)
            if not found:
                self._by_resource.pop(entry.resource, None)

    def select(self, given: AclBindingFilter) -> list[AclBinding]:
        """The entries that a filter selects, in the order of their texts."""
        found = [each for each in self if given.matches(each)]
        return sorted(found, key=lambda each: (each.resource.type, each.resource.name, str(each)))

    def __iter__(self) -> Iterator[AclBinding]:
        for entries in self._by_resource.values():
            yield from entries

    def allows(
        self, user: FlussPrincipal, host: str, operation: OperationType, resource: Resource
    ) -> bool:
        """Whether an entry allows a user an operation."""
        sought = {operation, OperationType.ALL}
        if operation is OperationType.DESCRIBE:
            sought |= _IMPLIES_DESCRIBE
        return any(
            entry.operation in sought
            and entry.principal in {user, _EVERYONE}
            and entry.host in {host, WILDCARD}
            and entry.permission is PermissionType.ALLOW
            for place in _places(resource)
            for entry in self._by_resource.get(place, ())
        )

    def to_json(self) -> str:
        """The entries as text, which `from_json` reads."""
        return json.dumps(
            [
                [
                    each.resource.type,
                    each.resource.name,
                    each.principal.type,
                    each.principal.name,
                    each.operation,
                    each.host,
                    each.permission,
                ]
                for each in self.select(AclBindingFilter())
            ]
        )

    @classmethod
    def from_json(cls, text: str) -> AccessEntries:
        """Read what `to_json` wrote."""
        return cls(
            AclBinding.stored(
                resource=Resource.stored(ResourceType(kind), name),
                principal=FlussPrincipal.stored(user, user_type),
                operation=OperationType(operation),
                host=host,
                permission=PermissionType(permission),
            )
            for kind, name, user_type, user, operation, host, permission in json.loads(text)
        )


def database_of(table: Resource) -> Resource:
    """The database of a table."""
    return Resource.stored(ResourceType.DATABASE, table.name.partition(".")[0])


def _places(resource: Resource) -> list[Resource]:
    """The resources on which an entry counts for this one."""
    places = [resource, Resource.stored(resource.type, WILDCARD)]
    if resource.type is ResourceType.TABLE:
        places.append(database_of(resource))
    return [*places, Resource.stored(ResourceType.CLUSTER, CLUSTER_NAME)]
