"""LIST, CREATE and DROP of access control entries."""

from __future__ import annotations

from fluss.model.cluster.acls import AclBindingFilter, OperationType, Resource, ResourceType
from fluss.wire import messages as pb
from fluss.wire.acls import read_acl, read_acl_filter, write_acl
from fluss.wire.api import ApiKey
from fluss_server.access.access_entries import database_of
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import code_and_text
from fluss_server.server_node import Node


def list_acls(node: Node, call: Call, request: pb.ListAclsRequest) -> pb.ListAclsResponse:
    """Return the entries that a filter selects, of resources that the user may describe."""
    user = call.caller.user
    return pb.ListAclsResponse(
        acl=[
            write_acl(each)
            for each in node.access.entries(read_acl_filter(request.acl_filter))
            if node.access.allows(user, OperationType.DESCRIBE, each.resource)
        ]
    )


def create_acls(node: Node, call: Call, request: pb.CreateAclsRequest) -> pb.CreateAclsResponse:
    """Store entries; an entry that the user may not create is refused by itself."""
    _check_on(node)
    response = pb.CreateAclsResponse()
    for acl in request.acl:
        answer = response.aclRes.add(acl=acl)
        try:
            entry = read_acl(acl)
            _check_change(node, call, entry.resource)
            node.access.add(entry)
        except Exception as error:  # noqa: BLE001 - one entry's trouble is not the others'
            answer.error_code, answer.error_message = code_and_text(error)
    return response


def drop_acls(node: Node, call: Call, request: pb.DropAclsRequest) -> pb.DropAclsResponse:
    """Remove the entries that filters select; each is reported for the first of its filters."""
    _check_on(node)
    response = pb.DropAclsResponse()
    for acl_filter in request.acl_filter:
        result = response.filter_results.add()
        try:
            chosen = node.access.entries(read_acl_filter(acl_filter))
            for entry in chosen:
                _check_change(node, call, entry.resource)
            node.access.remove(chosen)
        except Exception as error:  # noqa: BLE001 - one filter's trouble is not the others'
            result.error_code, result.error_message = code_and_text(error)
            continue
        for entry in chosen:
            result.matching_acls.add(acl=write_acl(entry))
    return response


def _check_on(node: Node) -> None:
    """Refuse where there is no access control."""
    node.access.entries(AclBindingFilter())


def _check_change(node: Node, call: Call, resource: Resource) -> None:
    """Refuse a user who has not every right on the resource; on the database, for a table."""
    if resource.type is ResourceType.TABLE:
        resource = database_of(resource)
    node.access.check(call.caller.user, OperationType.ALL, resource)


HANDLERS = (
    message_handler(ApiKey.LIST_ACLS, list_acls),
    message_handler(ApiKey.CREATE_ACLS, create_acls),
    message_handler(ApiKey.DROP_ACLS, drop_acls),
)
