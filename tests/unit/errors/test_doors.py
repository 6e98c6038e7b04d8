"""Errors that leave a door learn which; nothing else of what is marked changes."""

import inspect

import pytest

from fluss.doors import at_door, names_arguments
from fluss.errors import FlussError
from fluss.hints import Door, Hint, HintKey


def refuse(*_):
    raise FlussError("No.", hint=Hint(HintKey.OPEN_SESSION))


@at_door(Door.PANDAS)
class Marked:
    def method(self, number: int = 1) -> int:
        """It is documented."""
        return number or refuse()

    @property
    def shown(self):
        refuse()

    @classmethod
    def made(cls):
        refuse(cls)

    @staticmethod
    def stood():
        refuse()

    def rows(self):
        yield 1
        refuse()

    def __iter__(self):
        yield from self.rows()

    def __enter__(self):
        refuse()

    def __exit__(self, *_):
        pass

    def _private(self):
        refuse()


def enter(marked):
    with marked:
        pass


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda marked: marked.method(0), id="method"),
        pytest.param(lambda marked: marked.shown, id="property"),
        pytest.param(lambda marked: marked.made(), id="classmethod"),
        pytest.param(lambda marked: marked.stood(), id="staticmethod"),
        pytest.param(lambda marked: list(marked.rows()), id="generator"),
        pytest.param(list, id="iteration"),
        pytest.param(enter, id="with"),
    ],
)
def test_an_error_that_leaves_a_door_knows_it(call):
    with pytest.raises(FlussError) as caught:
        call(Marked())
    assert caught.value.door is Door.PANDAS


def test_what_does_not_fail_is_as_it_was():
    marked = Marked()
    assert (marked.method(), marked.method(number=7), next(iter(marked))) == (1, 7, 1)
    assert str(inspect.signature(Marked.method)) == "(self, number: int = 1) -> int"
    assert Marked.method.__doc__ == "It is documented."
    assert inspect.isgeneratorfunction(Marked.rows)
    with pytest.raises(FlussError) as caught:
        marked._private()
    assert caught.value.door is None


def test_the_outermost_door_counts_and_other_errors_pass():
    @at_door(Door.DUCKDB)
    def outer(work):
        return work()

    with pytest.raises(FlussError) as caught:
        outer(lambda: Marked().method(0))
    assert caught.value.door is Door.DUCKDB
    with pytest.raises(KeyError):
        outer(lambda: {}["x"])


def test_a_class_names_the_arguments_that_may_have_been_meant():
    @names_arguments
    class Made:
        def __init__(self, bucket_count=None, bucket_keys=None, other=None):
            self.buckets = bucket_count, bucket_keys
            if other is not None:
                raise TypeError("its own")

    assert isinstance(Made(bucket_count=1), Made)
    with pytest.raises(TypeError, match="did you mean 'bucket_keys' or 'bucket_count'"):
        Made(bucket=3)
    with pytest.raises(TypeError, match=r"Made\(\) has no argument 'x'; it has bucket_count, b"):
        Made(x=1)
    with pytest.raises(TypeError, match="its own"):
        Made(other=1)
