"""`FlussAdmin` has the methods of `AdminCore`, and shows their signatures and docstrings."""

import inspect

import pytest

from fluss.admin.admin import AdminCore
from fluss.dialects.fluss_connection import FlussAdmin

ALIASES = {"get_table": "get_table_info", "list_partition_infos_with_spec": "list_partition_infos"}


def public(kind):
    return {
        name
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_method_of_the_core_is_offered_and_nothing_else():
    assert public(FlussAdmin) == public(AdminCore) | ALIASES.keys()


# It makes an object and asks no server, so it is not awaited.
PLAIN = {"create_kv_snapshot_lease"}


@pytest.mark.parametrize("name", sorted(public(FlussAdmin) - PLAIN))
def test_a_method_shows_the_signature_and_docstring_of_the_core(name):
    offered, core = getattr(FlussAdmin, name), getattr(AdminCore, ALIASES.get(name, name))
    shown, expected = inspect.signature(offered), inspect.signature(core)
    assert list(shown.parameters.values()) == list(expected.parameters.values())
    assert shown.return_annotation == f"Awaitable[{expected.return_annotation}]"
    assert inspect.getdoc(offered) == inspect.getdoc(core)
    assert offered.__qualname__ == f"FlussAdmin.{ALIASES.get(name, name)}"


def test_a_call_starts_the_method_of_the_core_with_its_arguments():
    class Engine:
        def submit(self, work):
            return work

    core = AdminCore(cluster=None)
    work = FlussAdmin(Engine(), core).drop_database("sales", True, cascade=False)
    given = inspect.getcoroutinelocals(work)
    work.close()
    assert given["self"] is core
    assert (given["database_name"], given["ignore_if_not_exists"], given["cascade"]) == (
        "sales",
        True,
        False,
    )
