"""Access control: the entries that allow users to do something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fluss.admin.requests import AdminRequests
from fluss.errors import FlussError, error_from_code
from fluss.model.cluster.acls import AclBinding, AclBindingFilter
from fluss.wire import messages
from fluss.wire.acls import read_acl, write_acl, write_acl_filter

REFUSED_SHOWN_MAX = 3


class AccessAdmin(AdminRequests):
    """Lists, creates and drops entries. A cluster without an authorizer refuses all three."""

    async def list_acls(self, acl_filter: AclBindingFilter | None = None) -> list[AclBinding]:
        """The entries that a filter selects; without a filter all that the user may see.

        Raises:
            UnsupportedOperationError: The cluster has no authorizer.
        """
        request = messages.ListAclsRequest(acl_filter=write_acl_filter(_filter_of(acl_filter)))
        answer = await self._cluster.ask_coordinator(request, messages.ListAclsResponse)
        return [read_acl(each) for each in answer.acl]

    async def create_acls(self, acls: Iterable[AclBinding]) -> None:
        """Create entries; one that exists stays as it is.

        Servers need about a second until all of them know a new entry.

        Raises:
            AuthorizationError: The user may not create one of them; the others are created.
            UnsupportedOperationError: The cluster has no authorizer.
        """
        request = messages.CreateAclsRequest(acl=[write_acl(each) for each in acls])
        if request.acl:
            answer = await self._cluster.ask_coordinator(request, messages.CreateAclsResponse)
            _check([(each, str(read_acl(each.acl))) for each in answer.aclRes], "created")

    async def drop_acls(
        self, acl_filters: Iterable[AclBindingFilter | AclBinding]
    ) -> list[AclBinding]:
        """Drop the entries that filters select, or that are named; returns them.

        Raises:
            AuthorizationError: The user may not drop one of them; the others are dropped.
            UnsupportedOperationError: The cluster has no authorizer.
        """
        request = messages.DropAclsRequest(
            acl_filter=[write_acl_filter(_filter_of(each)) for each in acl_filters]
        )
        if not request.acl_filter:
            return []
        answer = await self._cluster.ask_coordinator(request, messages.DropAclsResponse)
        matching = [each for result in answer.filter_results for each in result.matching_acls]
        _check([(each, "the entries of a filter") for each in answer.filter_results], "dropped")
        _check([(each, str(read_acl(each.acl))) for each in matching], "dropped")
        return [read_acl(each.acl) for each in matching]


def _filter_of(given: AclBindingFilter | AclBinding | None) -> AclBindingFilter:
    if isinstance(given, AclBinding):
        return given.to_filter()
    return AclBindingFilter() if given is None else given


def _check(results: Sequence[tuple[Any, str]], done: str) -> None:
    """Raise the first error of a list of answers, and name what it is about."""
    failed: list[tuple[FlussError, str]] = [
        (error_from_code(each.error_code, each.error_message), what)
        for each, what in results
        if each.error_code
    ]
    if not failed:
        return
    shown = "; ".join(what for _, what in failed[:REFUSED_SHOWN_MAX])
    first = failed[0][0]
    raise error_from_code(
        first.error_code,
        f"{len(failed)} of {len(results)} were not {done} ({shown}): {first.message}",
        hint=first.hint,
    ) from first
