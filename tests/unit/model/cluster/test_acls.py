"""Entries of access control: what they are, which ones are refused, which ones a filter selects."""

import pytest

from fluss import (
    AclBinding,
    AclBindingFilter,
    FlussPrincipal,
    OperationType,
    PermissionType,
    Resource,
    ResourceType,
    TablePath,
)
from fluss.errors import InvalidNameError, InvalidValueError, ProtocolError
from fluss.wire import messages
from fluss.wire.acls import read_acl, read_acl_filter, write_acl, write_acl_filter

READ = AclBinding(Resource.table("shop.orders"), "alice", "read")


def test_an_entry_reads_as_a_sentence():
    assert str(READ) == "User:alice may READ table shop.orders"
    local = AclBinding(Resource.database("*"), "*", OperationType.ALL, "10.0.0.1")
    assert str(local) == "*:* may ALL every database from 10.0.0.1"
    assert str(AclBinding(Resource.cluster(), "User:bob", "ALTER")) == (
        "User:bob may ALTER the cluster"
    )
    assert repr(Resource.table(TablePath("a", "b"))) == "Resource.table('a.b')"
    assert repr(READ.operation) == "OperationType.READ"


def test_what_would_match_nothing_is_refused():
    for wrong in ("orders", "a b.c"):
        with pytest.raises(InvalidNameError):
            Resource.table(wrong)
    for kind, name in ((ResourceType.ANY, "x"), (ResourceType.CLUSTER, "mine")):
        with pytest.raises(InvalidValueError):
            Resource(kind, name)
    for user in ("user:alice", "User:", "User:*"):
        with pytest.raises(InvalidValueError):
            AclBinding(Resource.cluster(), user, "READ")
    with pytest.raises(InvalidValueError):
        AclBinding(Resource.cluster(), "alice", "ANY")
    with pytest.raises(InvalidValueError):
        AclBinding(Resource.cluster(), "alice", "READ", permission="ANY")
    with pytest.raises(InvalidValueError):
        AclBindingFilter(resource_name="shop")


def test_a_misspelled_operation_comes_with_the_nearest():
    with pytest.raises(InvalidValueError) as refused:
        AclBinding(Resource.cluster(), "alice", "DESCIRBE")
    assert "DESCRIBE" in refused.value.hint


@pytest.mark.parametrize(
    ("given", "selects"),
    [
        ({}, True),
        ({"resource_type": "TABLE"}, True),
        ({"resource_type": "TABLE", "resource_name": "shop.orders"}, True),
        ({"resource_type": "TABLE", "resource_name": "shop.clicks"}, False),
        ({"resource_type": "DATABASE"}, False),
        ({"principal": "alice"}, True),
        ({"principal": FlussPrincipal("alice", "Group")}, False),
        ({"operation": "READ"}, True),
        ({"operation": "ALL"}, False),
        ({"host": "*"}, True),
        ({"host": "10.0.0.1"}, False),
        ({"permission": PermissionType.ALLOW}, True),
    ],
)
def test_a_filter_selects_by_what_it_names(given, selects):
    assert AclBindingFilter(**given).matches(READ) is selects


def test_the_filter_of_an_entry_selects_it_alone():
    other = AclBinding(READ.resource, "bob", "READ")
    assert [each for each in (READ, other) if READ.to_filter().matches(each)] == [READ]
    of_resource = AclBindingFilter.of_resource(READ.resource)
    assert all(of_resource.matches(each) for each in (READ, other))


# --- on the wire ----------------------------------------------------------------------------------


def test_an_entry_has_the_numbers_of_java():
    written = write_acl(READ)
    assert (written.resource_type, written.operation_type, written.permission_type) == (4, 3, 2)
    assert (written.principal_type, written.principal_name) == ("User", "alice")
    assert read_acl(written) == READ


@pytest.mark.parametrize("given", [{}, {"principal": "alice", "host": "h"}, {"operation": "DROP"}])
def test_a_filter_survives_the_wire(given):
    made = AclBindingFilter(**given)
    assert read_acl_filter(write_acl_filter(made)) == made


def test_an_entry_that_breaks_the_rules_is_shown_as_it_is_stored():
    stored = messages.PbAclInfo(
        resource_name="no dot", resource_type=4, principal_name="x", principal_type="user",
        host="*", operation_type=1, permission_type=1,
    )  # fmt: skip
    assert str(read_acl(stored)) == "user:x may ANY table no dot"


def test_a_number_of_a_later_server_is_named():
    written = write_acl(READ)
    written.operation_type = 99
    with pytest.raises(ProtocolError, match="99 is no OperationType"):
        read_acl(written)


def test_a_principal_without_its_type_selects_everyone():
    found = read_acl_filter(
        messages.PbAclFilter(
            resource_type=1, resource_name="ignored", principal_name="alice", operation_type=1,
            permission_type=1,
        )
    )  # fmt: skip
    assert found == AclBindingFilter()
