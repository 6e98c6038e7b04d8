"""Where the package with native code is missing or does not fit, Python code does the work."""

import sys
from types import ModuleType

import pytest

from fluss import native


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch):
    monkeypatch.delenv(native.VARIABLE, raising=False)


@pytest.mark.parametrize("value", ["off", "0", "FALSE", " no "])
def test_it_is_turned_off_by_a_variable(monkeypatch, value):
    monkeypatch.setenv(native.VARIABLE, value)
    assert native.find_row_taker() is None
    assert native.describe_native() == "turned off by FLUSS_NATIVE"


def test_it_may_not_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "fluss_native", None)
    assert native.find_row_taker() is None
    assert native.describe_native() == "not installed"


def test_it_may_be_installed_without_a_compiler(monkeypatch):
    monkeypatch.delitem(sys.modules, "fluss_native", raising=False)
    monkeypatch.setitem(sys.modules, "fluss_native._rows", None)
    assert native.find_row_taker() is None
    assert native.describe_native() == "installed without its module: it was not compiled"


def test_another_interface_is_not_used(monkeypatch):
    other = ModuleType("fluss_native")
    other.INTERFACE, other.RowTaker = native.INTERFACE + 1, object
    monkeypatch.setitem(sys.modules, "fluss_native", other)
    assert native.find_row_taker() is None
    assert native.describe_native() == (
        f"of another version: interface {native.INTERFACE + 1} instead of {native.INTERFACE}"
    )


def test_one_that_fits_is_used(monkeypatch):
    fitting = ModuleType("fluss_native")
    fitting.INTERFACE, fitting.RowTaker = native.INTERFACE, object
    monkeypatch.setitem(sys.modules, "fluss_native", fitting)
    assert native.find_row_taker() is object
    assert native.describe_native() == "used"
