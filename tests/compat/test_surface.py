"""`fluss.aio` has every name of pyfluss 1.0.0, and each is of the same kind.

The surface was taken from pyfluss itself: its type stubs and its objects at runtime. Ours may offer
more (names, optional arguments, None for an argument that pyfluss requires), and never less.
"""

import ast
import inspect
import json
import typing
from pathlib import Path

import pytest

import fluss.aio as ours

SURFACE = json.loads((Path(__file__).parent / "pyfluss-1.0.0-surface.json").read_text())
CLASSES = SURFACE["classes"]
MEMBERS = [
    pytest.param(name, member, facts, id=f"{name}.{member}")
    for name, described in CLASSES.items()
    for member, facts in described["members"].items()
]
CALLABLE_KINDS = {"method", "staticmethod", "runtime-only"}
# Flags that are None by default in one of pyfluss's own documents and False in another.
SAME_DEFAULTS = {"None", "False"}


def parameters_of(stub: str) -> list[tuple[str, str | None, bool]]:
    """Return name, default and keyword-only of each parameter in a stub's signature."""
    (function,) = ast.parse(f"def stub{stub}: ...").body
    assert isinstance(function, ast.FunctionDef)
    plain = [*function.args.posonlyargs, *function.args.args]
    defaults = [None] * (len(plain) - len(function.args.defaults)) + function.args.defaults
    listed = [(each, default, False) for each, default in zip(plain, defaults, strict=True)]
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    listed += [(each, default, True) for each, default in named]
    return [
        (each.arg, None if default is None else ast.unparse(default), by_name)
        for each, default, by_name in listed
        if each.arg not in {"self", "cls"}
    ]


def is_awaited(function: typing.Any) -> bool:
    """Whether it is a plain function that returns an awaitable."""
    returned = str(inspect.signature(function).return_annotation)
    return not inspect.iscoroutinefunction(function) and returned.startswith("Awaitable[")


def signature_of(function: typing.Any) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    return [each for each in parameters if each.name not in {"self", "cls"}]


def test_all_classes_are_there():
    missing = [name for name in CLASSES if not isinstance(getattr(ours, name, None), type)]
    assert missing == []


def test_constants_and_functions_are_the_same():
    assert SURFACE["constants"]["EARLIEST_OFFSET"]["value"] == ours.EARLIEST_OFFSET
    assert isinstance(ours.__version__, str)
    assert [each.name for each in signature_of(ours.col)] == ["name"]
    assert isinstance(ours.col("a"), ours.ColumnRef)


def test_exported_names_contain_pyflusss():
    expected = {*CLASSES, *SURFACE["constants"], *SURFACE["functions"]}
    assert expected <= set(ours.__all__)


@pytest.mark.parametrize(("name", "member", "facts"), MEMBERS)
def test_a_member_is_there_and_of_the_same_kind(name, member, facts):
    owner = getattr(ours, name)
    if member == "__hash__":
        hashable = owner.__hash__ is not None
        assert hashable or not CLASSES[name]["hashable"]
        return
    kind = facts["kind"]
    if kind == "attribute" and name == "FlussError":
        assert hasattr(ours.FlussError("text"), member)
        return
    if member == "__new__":
        return
    found = inspect.getattr_static(owner, member, None)
    assert found is not None, f"{name}.{member} is missing"
    if kind == "property":
        instance_attribute = inspect.ismemberdescriptor(found) or isinstance(found, property)
        assert instance_attribute or hasattr(type(found), "__get__")
        assert not callable(found) or isinstance(found, type)
    elif kind in {"enum member", "attribute"}:
        value = facts.get("value", facts.get("sigs", [None])[0])
        assert value is None or int(getattr(owner, member)) == int(value)
    else:
        assert kind in CALLABLE_KINDS
        assert callable(getattr(owner, member))
        if kind == "staticmethod":
            assert isinstance(found, staticmethod | classmethod), "called on the class"


@pytest.mark.parametrize(
    ("name", "member", "facts"),
    [each for each in MEMBERS if each.values[2]["kind"] in {"method", "staticmethod"}],
)
def test_a_method_takes_the_same_arguments(name, member, facts):
    if member.startswith("__") and member not in {"__aexit__", "__exit__"}:
        return  # the interpreter defines how these are called
    expected = parameters_of(facts["sigs"][0])
    given = signature_of(getattr(getattr(ours, name), member))
    assert [each.name for each in given][: len(expected)] == [each for each, _, _ in expected]
    for parameter, (_, default, _) in zip(given, expected, strict=False):
        assert parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        if default is not None:
            ours_is = repr(parameter.default)
            assert ours_is == default or {ours_is, default} <= SAME_DEFAULTS
    for further in given[len(expected) :]:
        assert further.default is not inspect.Parameter.empty, "more must not be asked for"


@pytest.mark.parametrize(
    ("name", "member", "facts"),
    [each for each in MEMBERS if each.values[2].get("async")],
)
def test_what_is_awaited_there_is_awaited_here(name, member, facts):
    function = getattr(getattr(ours, name), member)
    if member in {"__aenter__", "__aexit__"}:
        assert inspect.iscoroutinefunction(function)
        return
    assert is_awaited(function)


@pytest.mark.parametrize(
    ("name", "member", "facts"),
    [
        each
        for each in MEMBERS
        if each.values[2]["kind"] in {"method", "staticmethod"} and not each.values[2].get("async")
    ],
)
def test_what_is_plain_there_is_plain_here(name, member, facts):
    function = getattr(getattr(ours, name), member)
    if not member.startswith("__"):
        assert not inspect.iscoroutinefunction(function)
        assert not is_awaited(function)


@pytest.mark.parametrize("name", [each for each, c in CLASSES.items() if c["constructible"]])
def test_a_class_is_made_with_the_same_arguments(name):
    given = {each.name: each for each in signature_of(getattr(ours, name))}
    for stub in CLASSES[name]["members"].get("__new__", {}).get("sigs", []):
        for parameter, default, by_name in parameters_of(stub):
            assert parameter in given, f"{name}({parameter}=...)"
            found = given[parameter]
            assert by_name or found.kind is not inspect.Parameter.KEYWORD_ONLY
            assert default is None or found.default is not inspect.Parameter.empty


def test_every_config_key_has_its_default():
    config = ours.Config()
    for member, facts in CLASSES["Config"]["members"].items():
        if facts["kind"] == "property":
            value = getattr(config, member)
            assert facts["settable"]
            setattr(config, member, value)
            assert getattr(config, member) == value
