"""Access control of the embedded server: what entries allow, and what requests need."""

from contextlib import closing
from types import SimpleNamespace

import pytest

from fluss.errors import AuthorizationError
from fluss.model.cluster.acls import (
    AclBinding,
    AclBindingFilter,
    FlussPrincipal,
    OperationType,
    Resource,
)
from fluss.model.paths import TablePath
from fluss.model.schema.schema import Schema
from fluss.model.tables.database import DatabaseDescriptor
from fluss.model.tables.descriptor import TableDescriptor
from fluss.model.types.factory import DataTypes
from fluss_server.access.access_control import AccessControl
from fluss_server.access.access_entries import AccessEntries
from fluss_server.access.request_rights import OPEN, RIGHTS
from fluss_server.catalog.catalog import Catalog
from fluss_server.catalog.catalog_store import CatalogStore
from fluss_server.catalog.creation import with_defaults
from fluss_server.handlers import HANDLERS

ALICE = FlussPrincipal("alice")
ORDERS = Resource.table("shop.orders")


@pytest.mark.parametrize(
    ("resource", "operation", "allowed"),
    [
        (Resource.table("shop.orders"), "READ", "READ DESCRIBE"),
        (Resource.table("shop.clicks"), "READ", ""),
        (Resource.table("*"), "WRITE", "WRITE DESCRIBE"),
        (Resource.database("shop"), "ALL", "READ WRITE CREATE DROP ALTER DESCRIBE ALL"),
        (Resource.database("*"), "READ", ""),
        (Resource.database("shops"), "READ", ""),
        (Resource.cluster(), "DROP", "DROP DESCRIBE"),
        (Resource.cluster(), "DESCRIBE", "DESCRIBE"),
    ],
)
def test_an_entry_counts_for_what_it_contains(resource, operation, allowed):
    entries = AccessEntries([AclBinding(resource, "alice", operation)])
    found = {
        each
        for each in OperationType
        if each is not OperationType.ANY and entries.allows(ALICE, "10.0.0.1", each, ORDERS)
    }
    assert found == set(allowed.split())


@pytest.mark.parametrize(
    ("principal", "host", "allowed"),
    [("alice", "*", True), ("*", "10.0.0.1", True), ("bob", "*", False), ("alice", "h", False)],
)
def test_user_and_host_are_compared(principal, host, allowed):
    entries = AccessEntries([AclBinding(ORDERS, principal, "READ", host)])
    assert entries.allows(ALICE, "10.0.0.1", OperationType.READ, ORDERS) is allowed


def test_entries_survive_as_text():
    kept = [AclBinding(ORDERS, "alice", "READ", "h"), AclBinding(Resource.cluster(), "*", "ALL")]
    again = AccessEntries.from_json(AccessEntries(kept).to_json())
    assert set(again.select(AclBindingFilter())) == set(kept)


def test_a_removed_entry_allows_nothing():
    entry = AclBinding(ORDERS, "alice", "READ")
    entries = AccessEntries([entry])
    entries.remove([entry, AclBinding(ORDERS, "bob", "READ")])
    assert not entries.allows(ALICE, "h", OperationType.READ, ORDERS)
    assert entries.to_json() == "[]"


def test_every_request_needs_a_right_or_has_a_reason_to_need_none():
    assert RIGHTS.keys() | OPEN.keys() == set(HANDLERS)
    assert not RIGHTS.keys() & OPEN.keys()


@pytest.fixture
def catalog(tmp_path):
    with closing(Catalog(CatalogStore(tmp_path / "catalog.sqlite"))) as opened:
        opened.create_database("shop", DatabaseDescriptor(), now_ms=1)
        yield opened


def test_tables_given_by_id_are_checked_one_by_one(catalog):
    columns = Schema.builder().column("id", DataTypes.int()).build()
    orders, clicks = (
        catalog.create_table(
            TablePath("shop", name), with_defaults(TableDescriptor(columns)), now_ms=1
        ).table_id
        for name in ("orders", "clicks")
    )
    missing = clicks + 1
    alice = SimpleNamespace(principal=ALICE, host="10.0.0.1")
    access = AccessControl(catalog, ["User:admin"])
    access.add(AclBinding(ORDERS, "alice", "READ"))
    access.check_tables(alice, OperationType.READ, [])
    access.check_tables(alice, OperationType.READ, [orders, missing])
    with pytest.raises(AuthorizationError, match=r"operate READ on resource.*shop\.clicks"):
        access.check_tables(alice, OperationType.READ, [orders, clicks])
    with pytest.raises(AuthorizationError, match="operate WRITE"):
        access.check_tables(alice, OperationType.WRITE, [missing, orders])
    admin = SimpleNamespace(principal=FlussPrincipal("admin"), host="10.0.0.1")
    access.check_tables(admin, OperationType.WRITE, [orders, clicks])
    AccessControl(catalog, []).check_tables(alice, OperationType.WRITE, [orders, clicks])
