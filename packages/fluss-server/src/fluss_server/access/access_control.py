"""Who may do what on this server; where no super users are named, everyone may do everything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss.model.cluster.acls import (
    AclBinding,
    AclBindingFilter,
    FlussPrincipal,
    OperationType,
    Resource,
)
from fluss_server.access.access_entries import AccessEntries
from fluss_server.access.request_rights import RIGHTS, table_by_id
from fluss_server.catalog.catalog import Catalog
from fluss_server.server_errors import request_error

_SETTING: Final = "acls"


class User(Protocol):
    """The user of a connection."""

    @property
    def principal(self) -> FlussPrincipal:
        """Who it is."""

    @property
    def host(self) -> str:
        """The address that the connection comes from."""


class AccessControl:
    """The access control of one server.

    Args:
        catalog: Keeps the entries.
        super_users: Who may do everything; none for a server without access control.
    """

    def __init__(self, catalog: Catalog, super_users: Iterable[str]) -> None:
        self._catalog = catalog
        self._super_users = frozenset(map(FlussPrincipal.of, super_users))
        stored = catalog.setting(_SETTING)
        self._entries = AccessEntries() if stored is None else AccessEntries.from_json(stored)

    @property
    def is_on(self) -> bool:
        """Whether anything is forbidden."""
        return bool(self._super_users)

    def allows(self, user: User, operation: OperationType, resource: Resource) -> bool:
        """Whether a user may do an operation with a resource."""
        if not self.is_on or user.principal in self._super_users:
            return True
        return self._entries.allows(user.principal, user.host, operation, resource)

    def check(self, user: User, operation: OperationType, resource: Resource) -> None:
        """Refuse what a user may not do.

        Raises:
            AuthorizationError: No entry allows it.
        """
        if not self.allows(user, operation, resource):
            raise _forbidden(user, operation, resource)

    def check_tables(self, user: User, operation: OperationType, table_ids: Iterable[int]) -> None:
        """Refuse what a user may not do with one of these tables; missing tables are passed over.

        Raises:
            AuthorizationError: For one of the tables no entry allows it.
        """
        for table_id in table_ids if self.is_on else ():
            table = table_by_id(self._catalog, table_id)
            if table is not None:
                self.check(user, operation, table)

    def check_request(self, user: User, api_key: int, request: object) -> None:
        """Refuse a request that a user may not make.

        Raises:
            AuthorizationError: No entry allows it.
        """
        rights = RIGHTS.get(api_key) if self.is_on else None
        if rights is not None:
            for operation, resource in rights(self._catalog, request):
                self.check(user, operation, resource)

    # --- entries ----------------------------------------------------------------------------------

    def entries(self, given: AclBindingFilter) -> list[AclBinding]:
        """The entries that a filter selects.

        Raises:
            FlussError: There is no access control.
        """
        if not self.is_on:
            raise request_error(
                ErrorCode.SECURITY_DISABLED_EXCEPTION,
                "No Authorizer is configured.",
                hint="Start the server with a super user: `fluss server --super-user NAME`.",
            )
        return self._entries.select(given)

    def add(self, entry: AclBinding) -> None:
        """Store an entry."""
        self._entries.add(entry)
        self._store()

    def remove(self, entries: Iterable[AclBinding]) -> None:
        """Remove entries."""
        self._entries.remove(list(entries))
        self._store()

    def _store(self) -> None:
        self._catalog.put_setting(_SETTING, self._entries.to_json())


def _forbidden(user: User, operation: OperationType, resource: Resource) -> FlussError:
    return request_error(
        ErrorCode.AUTHORIZATION_EXCEPTION,
        f"Principal {user.principal} have no authorization to operate {operation} on resource "
        f"Resource{{type={resource.type}, name='{resource.name}'}}",
    )
