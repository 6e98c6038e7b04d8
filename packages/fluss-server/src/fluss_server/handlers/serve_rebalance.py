"""Server tags, and rebalances: one server has nothing to move, so each is complete immediately."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.model.cluster.rebalance import GoalType, RebalanceStatus, ServerTag
from fluss.wire import messages as pb
from fluss.wire.api import ApiKey
from fluss_server.request_handler import Call, message_handler
from fluss_server.server_errors import request_error
from fluss_server.server_node import NODE_ID, Node

_TAGS: Final = "server tags"
_REBALANCE: Final = "rebalance"


# --- tags -----------------------------------------------------------------------------------------


def add_tag(node: Node, call: Call, request: pb.AddServerTagRequest) -> pb.AddServerTagResponse:
    """Mark servers."""
    del call
    _add(node, request.server_ids, _tag_of(request.server_tag))
    return pb.AddServerTagResponse()


def remove_tag(
    node: Node, call: Call, request: pb.RemoveServerTagRequest
) -> pb.RemoveServerTagResponse:
    """Take a tag from servers."""
    del call
    _remove(node, request.server_ids, _tag_of(request.server_tag))
    return pb.RemoveServerTagResponse()


def add_tag_by_rack(
    node: Node, call: Call, request: pb.AddServerTagByRackRequest
) -> pb.AddServerTagByRackResponse:
    """Refuse: this server is in no rack."""
    del node, call
    raise _no_rack(request.racks)


def remove_tag_by_rack(
    node: Node, call: Call, request: pb.RemoveServerTagByRackRequest
) -> pb.RemoveServerTagByRackResponse:
    """Refuse: this server is in no rack."""
    del node, call
    raise _no_rack(request.racks)


def _tag_of(code: int) -> ServerTag:
    tag = ServerTag.from_code(code)
    if tag is None:
        raise request_error(ErrorCode.UNKNOWN_SERVER_ERROR, f"There is no server tag {code}.")
    return tag


def _stored(node: Node) -> dict[int, ServerTag]:
    text = node.catalog.setting(_TAGS)
    found = {} if text is None else json.loads(text)
    return {int(server_id): ServerTag(tag) for server_id, tag in found.items()}


def _add(node: Node, server_ids: Iterable[int], tag: ServerTag) -> None:
    tags = _stored(node)
    for server_id in server_ids:
        if server_id != NODE_ID:
            raise request_error(
                ErrorCode.SERVER_NOT_EXIST_EXCEPTION,
                f"Server {server_id} not exists when trying to add server tag.",
            )
        known = tags.setdefault(server_id, tag)
        if known is not tag:
            raise request_error(
                ErrorCode.SEVER_TAG_ALREADY_EXIST_EXCEPTION,
                f"Server tag {known} already exists for server {server_id}. However you want to "
                f"set it to {tag}, please remove the server tag first.",
            )
    node.catalog.put_setting(_TAGS, json.dumps(tags))


def _remove(node: Node, server_ids: Iterable[int], tag: ServerTag) -> None:
    tags = _stored(node)
    for server_id in server_ids:  # unknown ones, too, as in Fluss
        known = tags.pop(server_id, tag)
        if known is not tag:
            raise request_error(
                ErrorCode.SEVER_TAG_NOT_EXIST_EXCEPTION,
                f"Server tag {tag} not exists for server {server_id}, the current server tag of "
                f"this server is {known}.",
            )
    node.catalog.put_setting(_TAGS, json.dumps(tags))


def _no_rack(racks: Iterable[str]) -> Exception:
    named = ", ".join(racks)
    return request_error(
        ErrorCode.SERVER_NOT_EXIST_EXCEPTION,
        f"No server is in the racks {named}: the embedded server is one server in no rack.",
    )


# --- rebalances -----------------------------------------------------------------------------------


def rebalance(node: Node, call: Call, request: pb.RebalanceRequest) -> pb.RebalanceResponse:
    """Finish a rebalance that moves nothing, and return its id."""
    del call
    for goal in request.goals:
        if GoalType.from_code(goal) is None:
            raise request_error(ErrorCode.UNKNOWN_SERVER_ERROR, f"There is no goal {goal}.")
    rebalance_id = str(uuid.uuid4())
    node.catalog.put_setting(_REBALANCE, rebalance_id)
    return pb.RebalanceResponse(rebalance_id=rebalance_id)


def list_progress(
    node: Node, call: Call, request: pb.ListRebalanceProgressRequest
) -> pb.ListRebalanceProgressResponse:
    """Return the newest rebalance, which is complete; an empty answer where there was none."""
    del call
    rebalance_id = _checked_id(node, request, "list")
    if rebalance_id is None:
        return pb.ListRebalanceProgressResponse()
    return pb.ListRebalanceProgressResponse(
        rebalance_id=rebalance_id, rebalance_status=RebalanceStatus.COMPLETED.code
    )


def cancel(
    node: Node, call: Call, request: pb.CancelRebalanceRequest
) -> pb.CancelRebalanceResponse:
    """Do nothing: no rebalance is running."""
    del call
    _checked_id(node, request, "cancel")
    return pb.CancelRebalanceResponse()


def _checked_id(
    node: Node, request: pb.ListRebalanceProgressRequest | pb.CancelRebalanceRequest, what: str
) -> str | None:
    """Return the id of the newest rebalance, which is the only one that may be named."""
    known = node.catalog.setting(_REBALANCE)
    if request.HasField("rebalance_id") and request.rebalance_id != known:
        raise request_error(
            ErrorCode.NO_REBALANCE_IN_PROGRESS_EXCEPTION,
            f"Rebalance task id {request.rebalance_id} to {what} is not the current rebalance task "
            f"id {known}.",
        )
    return known


HANDLERS = (
    message_handler(ApiKey.ADD_SERVER_TAG, add_tag),
    message_handler(ApiKey.REMOVE_SERVER_TAG, remove_tag),
    message_handler(ApiKey.ADD_SERVER_TAG_BY_RACK, add_tag_by_rack),
    message_handler(ApiKey.REMOVE_SERVER_TAG_BY_RACK, remove_tag_by_rack),
    message_handler(ApiKey.REBALANCE, rebalance),
    message_handler(ApiKey.LIST_REBALANCE_PROGRESS, list_progress),
    message_handler(ApiKey.CANCEL_REBALANCE, cancel),
)
