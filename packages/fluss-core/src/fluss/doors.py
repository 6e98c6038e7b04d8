"""Marks the classes and functions of a door, so that hints are worded for its users.

An error does not know the API that was called. The outermost marked call does: an error that passes
it gets its door, and the hint is rendered for that door. Calls that succeed cost nothing.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from fluss.errors import FlussError
from fluss.hints import Door

T = TypeVar("T")

_PROTOCOLS: Final = frozenset(
    {"__init__", "__enter__", "__exit__", "__iter__", "__next__", "__call__", "__getitem__"}
    | {"__arrow_c_stream__", "__len__"}
)


def at_door(door: Door) -> Callable[[T], T]:
    """Return a decorator for a class or a function of a door.

    Of a class, its public methods and properties and the usual protocols are marked.
    """

    def mark(target: T) -> T:
        if not isinstance(target, type):
            marked: Any = _marked(target, door)
            return marked  # type: ignore[no-any-return]
        for name, member in list(vars(target).items()):
            if not name.startswith("_") or name in _PROTOCOLS:
                setattr(target, name, _marked_member(member, door))
        return target

    return mark


def _marked_member(member: Any, door: Door) -> Any:
    if isinstance(member, property):
        get, put, drop = member.fget, member.fset, member.fdel
        return property(
            get and _marked(get, door), put and _marked(put, door), drop, doc=member.__doc__
        )
    if isinstance(member, classmethod | staticmethod):
        return type(member)(_marked(member.__func__, door))
    return _marked(member, door) if inspect.isfunction(member) else member


def _marked(function: Any, door: Door) -> Any:
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generate(*args: Any, **named: Any) -> Generator[Any, Any, Any]:
            try:
                return (yield from function(*args, **named))
            except FlussError as error:
                error.add_context(door=door)
                raise

        return generate

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except TypeError:
            _refuse_unknown(function, named, function.__qualname__)
            raise
        except FlussError as error:
            error.add_context(door=door)
            raise

    return call


def names_arguments(cls: type[T]) -> type[T]:
    """Let the class name the nearest argument where it is made with one that it does not have."""
    of_class: Any = cls
    make = of_class.__init__

    @functools.wraps(make)
    def init(self: Any, *args: Any, **named: Any) -> None:
        try:
            make(self, *args, **named)
        except TypeError:
            _refuse_unknown(make, named, cls.__name__)
            raise

    of_class.__init__ = init
    return cls


def _refuse_unknown(function: Any, named: Mapping[str, Any], shown: str) -> None:
    known = inspect.signature(function).parameters
    if all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in known.values()):
        check_argument_names(named, [each for each in known if each != "self"], shown)


def check_argument_names(named: Iterable[str], known: Sequence[str], function: str) -> None:
    """Refuse an argument that a function does not have, and name the nearest one.

    Args:
        named: The arguments that were given by name.
        known: Those that the function has.
        function: Its name.

    Raises:
        TypeError: One is unknown.
    """
    for name in named:
        if name not in known:
            longer = [each for each in known if each.startswith(name)]
            near = difflib.get_close_matches(name, longer or known, 3 if longer else 1)
            advice = f"did you mean {' or '.join(map(repr, near))}?"
            advice = advice if near else f"it has {', '.join(known)}."
            if name == "session" and "config" in known:
                advice = f"a session has {function}() itself, or call it inside `with session:`."
            raise TypeError(f"{function}() has no argument {name!r}; {advice}") from None
