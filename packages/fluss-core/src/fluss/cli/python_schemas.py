"""Finds the classes of tables in a Python file or module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar

from fluss.errors import FlussError, InvalidSchemaError, InvalidValueError
from fluss.typed.markers import has_table

_MODULE: Final = "fluss_schema_file"

T = TypeVar("T")


def classes_of(name: str) -> list[type]:
    """Return the classes with tables in a file or module, in the order of their definition.

    Classes that it imports count as well.

    Args:
        name: A file that ends in `.py`, or the name of a module.

    Raises:
        InvalidValueError: There is no such file or module, or it cannot be run.
        InvalidSchemaError: It has no class with a table.
    """
    module = _from_file(Path(name)) if name.endswith(".py") else _imported(name)
    found = list(dict.fromkeys(each for each in vars(module).values() if has_table(each)))
    if not found:
        raise InvalidSchemaError(
            f"{name} has no class that describes a table.",
            hint="decorate one with @fluss.table('database.table')",
        )
    return found


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidValueError(f"There is no file {path}.")
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise InvalidValueError(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    with _beside(path.parent):
        # Types that are written as texts are looked up in the module by its name.
        sys.modules[_MODULE] = module
        _run(str(path), partial(spec.loader.exec_module, module))
    return module


def _imported(name: str) -> ModuleType:
    with _beside(Path.cwd()):
        return _run(name, partial(importlib.import_module, name))


def _run(name: str, run: Callable[[], T]) -> T:
    try:
        return run()
    except FlussError:
        raise
    except ModuleNotFoundError as error:
        raise InvalidValueError(
            f"{name} cannot be run: {error}.",
            hint="a file ends in .py; a module is found from this folder, and so are its imports",
        ) from error
    except Exception as error:
        raise InvalidValueError(f"{name} cannot be run: {type(error).__name__}: {error}") from error


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Find modules in a folder first, as Python does for a program in it."""
    text = str(folder.resolve())
    sys.path.insert(0, text)
    try:
        yield
    finally:
        sys.path.remove(text)
