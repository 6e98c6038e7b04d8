"""A data type that a codec does not know fails when the codec is imported, and not at a value."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fluss.errors import UnsupportedTypeError
from fluss.model.types import data_type as t, type_facts
from fluss.model.types.per_type import PerType

SOURCES = Path(__file__).parents[4] / "packages" / "fluss-core" / "src"
NEW_TYPE = """
import importlib, sys
from fluss.model.types import data_type as t
from fluss.model.types import type_facts

@t.concrete
class UuidType(t.ScalarType):
    root = sql_name = "UUID"
    arrow_name = "uuid"
    layout = type_facts.ArrowLayout.FIXED
    literal = None
    has_statistics = False
    storage = type_facts.BytesStorage()
    dtype = "u1"

try:
    importlib.import_module(sys.argv[1])
except TypeError as error:
    print(error)
"""


def modules_with_tables():
    """Modules with a table by type."""
    return [
        ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for path in sorted(SOURCES.rglob("*.py"))
        if "= PerType[" in path.read_text()
    ]


def test_a_new_type_touches_at_most_ten_files():
    # Besides the tables: the class, its name in `DataTypes`, the conversion of its values, and the
    # way back from Arrow where its Arrow type has parameters.
    others = {"data_type", "factory", "values", "arrow_to_type"}
    assert 6 <= len(modules_with_tables()) <= 10 - len(others)


@pytest.mark.parametrize("module", ["fluss.model.types.factory", *modules_with_tables()])
def test_a_type_without_an_entry_fails_when_the_module_is_imported(module):
    done = subprocess.run(
        [sys.executable, "-c", NEW_TYPE, module], capture_output=True, text=True, check=True
    )
    assert "data types without an entry: ['UuidType']" in done.stdout


def test_a_type_without_a_fact_cannot_be_made():
    with pytest.raises(TypeError, match="UuidType lacks layout, literal, storage, dtype"):

        @t.concrete
        class UuidType(t.ScalarType):
            root = sql_name = "UUID"
            arrow_name = "uuid"
            has_statistics = False

    assert "UuidType" not in {each.__name__ for each in t.DATA_TYPES}


def test_the_entry_of_a_family_is_that_of_its_types_unless_they_have_their_own():
    table = PerType[str]({t.ScalarType: "one", t.TextFamily: "text", t.NestedType: "many"})
    assert table[t.BigIntType()] == table[t.DecimalType(3, 1).not_null()] == "one"
    assert table[t.CharType(3)] == table[t.StringType()] == "text"
    assert table[t.ArrayType(t.IntType())] == "many"


def test_entries_must_be_of_use():
    with pytest.raises(TypeError, match=r"without an entry: \['ArrayType', 'MapType', 'RowType'\]"):
        PerType[int]({t.ScalarType: 1})
    with pytest.raises(TypeError, match=r"entries unused: \['TextFamily'\]"):
        PerType[int]({t.DataType: 1, t.TextFamily: 2, t.CharType: 3, t.StringType: 4})


def test_what_is_no_type_of_fluss_is_in_no_table():
    class Strange(t.DataType):
        pass

    with pytest.raises(UnsupportedTypeError, match="Strange is not a data type of Fluss"):
        PerType[int]({t.DataType: 1})[Strange()]


@pytest.mark.parametrize("module", modules_with_tables())
def test_no_table_has_an_entry_for_whatever_type_may_come(module):
    path = SOURCES.joinpath(*module.split(".")).with_suffix(".py")
    every = re.compile(r"^ +\(?(?:t\.\w+, )*t\.(?:DataType|ScalarType)[,:)]", re.MULTILINE)
    assert not every.search(path.read_text())


@pytest.mark.parametrize("data_type", t.DATA_TYPES, ids=lambda each: each.__name__)
def test_the_facts_of_a_type_agree(data_type):
    kinds = {"b": 1, "i": 4, "q": 8, "h": 2, "f": 4, "d": 8, "B": 1}
    if issubclass(data_type, t.NestedType):
        assert data_type.literal is None
        return
    made = data_type()
    if isinstance(made.storage, type_facts.NumberStorage):
        assert made.storage.width == kinds[made.storage.code]
    if issubclass(data_type, t.IntegerFamily):
        assert made.row_width * 8 == made.storage.width * 8 == made.bits
    assert t.DATA_TYPES[made.literal.number] is data_type
