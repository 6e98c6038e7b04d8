"""The fields of messages that carry access control entries and filters of them."""

from __future__ import annotations

from typing import TypeVar

from fluss.errors import ProtocolError
from fluss.model.cluster.acls import (
    AclBinding,
    AclBindingFilter,
    FlussPrincipal,
    OperationType,
    PermissionType,
    Resource,
    ResourceType,
)
from fluss.model.cluster.codes import NamedCode
from fluss.wire import messages

CodeT = TypeVar("CodeT", bound=NamedCode)


def write_acl(entry: AclBinding) -> messages.PbAclInfo:
    """Write an entry."""
    return messages.PbAclInfo(
        resource_name=entry.resource.name,
        resource_type=entry.resource.type.code,
        principal_name=entry.principal.name,
        principal_type=entry.principal.type,
        host=entry.host,
        operation_type=entry.operation.code,
        permission_type=entry.permission.code,
    )


def read_acl(message: messages.PbAclInfo) -> AclBinding:
    """Read an entry; also one that servers store and this package would not make.

    Raises:
        ProtocolError: A type, operation or permission is unknown.
    """
    kind = _code(ResourceType, message.resource_type)
    return AclBinding.stored(
        resource=Resource.stored(kind, message.resource_name),
        principal=FlussPrincipal.stored(message.principal_name, message.principal_type),
        operation=_code(OperationType, message.operation_type),
        host=message.host,
        permission=_code(PermissionType, message.permission_type),
    )


def write_acl_filter(given: AclBindingFilter) -> messages.PbAclFilter:
    """Write a filter."""
    principal = given.principal
    return messages.PbAclFilter(
        resource_name=given.resource_name,
        resource_type=given.resource_type.code,
        principal_name=None if principal is None else principal.name,
        principal_type=None if principal is None else principal.type,
        host=given.host,
        operation_type=given.operation.code,
        permission_type=given.permission.code,
    )


def read_acl_filter(message: messages.PbAclFilter) -> AclBindingFilter:
    """Read a filter. A principal counts only with its name and its type, as in Fluss.

    Raises:
        ProtocolError: A type, operation or permission is unknown.
    """
    kind = _code(ResourceType, message.resource_type)
    is_named = message.HasField("resource_name") and kind is not ResourceType.ANY
    principal = None
    if message.HasField("principal_name") and message.HasField("principal_type"):
        principal = FlussPrincipal.stored(message.principal_name, message.principal_type)
    return AclBindingFilter(
        resource_type=kind,
        resource_name=message.resource_name if is_named else None,
        principal=principal,
        operation=_code(OperationType, message.operation_type),
        host=message.host if message.HasField("host") else None,
        permission=_code(PermissionType, message.permission_type),
    )


def _code(kind: type[CodeT], code: int) -> CodeT:
    found = kind.from_code(code)
    if found is None:
        why = f"{code} is no {kind.__name__} that this package knows"
        raise ProtocolError(f"An access control entry cannot be read: {why}.", what="ACL", why=why)
    return found
