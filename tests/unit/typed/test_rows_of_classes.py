"""Rows of classes become columns and come back the same; errors name class, field and row."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import attrs
import numpy as np
import pyarrow as pa
import pydantic
import pytest

import fluss
from fluss import Key
from fluss.errors import FlussError, InvalidValueError, SchemaMismatchError
from fluss.typed import schema_of
from fluss.typed.field_types import row_class_of
from fluss.typed.row_codec import RowCodec, naming_class
from fluss.write.class_frames import ClassFrame
from fluss.write.python_to_arrow import ROWS_PER_BATCH
from fluss.write.tabular import frame_of


def types_of(schema):
    return {each.name: each.data_type for each in schema.columns}


def written(cls, rows, schema=None):
    """The rows as Arrow, as they are written to a table with the columns of the class."""
    types = types_of(schema or schema_of(cls))
    return pa.Table.from_batches(ClassFrame(row_class_of(cls), rows).batches(types))


def read(cls, table, types, columns=None):
    row = row_class_of(cls)
    codec = RowCodec(row, types, "d.t")
    made = codec.reader(columns or table.column_names)
    with naming_class(row):
        return [each for batch in table.to_batches() for each in made(batch)]


def there_and_back(cls, rows, schema=None):
    schema = schema or schema_of(cls)
    return read(cls, written(cls, rows, schema), types_of(schema))


class Color(enum.Enum):
    """Texts."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Address:
    """A part of others."""

    street: str
    zip: Annotated[str | None, "CHAR(5)"] = None


class Point(TypedDict):
    """A part that is a dict."""

    x: float
    y: NotRequired[float]


class Size(NamedTuple):
    """A part that is a tuple."""

    width: int
    height: int


@dataclass
class Everything:
    """One field of each type."""

    yes: bool
    tiny: Annotated[int, "TINYINT"]
    big: int
    single: Annotated[float, "FLOAT"]
    double: float
    text: str
    char: Annotated[str, "CHAR(3)"]
    data: bytes
    fixed: Annotated[bytes, "BINARY(2)"]
    price: Annotated[Decimal, "DECIMAL(10, 2)"]
    day: date
    at: time
    when: datetime
    instant: Annotated[datetime, "TIMESTAMP_LTZ(3)"]
    color: Color
    word: Literal["a", "b"]
    id: uuid.UUID
    raw_id: Annotated[uuid.UUID, "BINARY(16)"]
    numbers: list[int]
    some: list[int | None]
    names: set[str]
    pair: tuple[str, ...]
    ages: dict[str, int]
    address: Address
    addresses: list[Address]
    by_name: dict[str, Address | None]
    point: Point
    size: Size
    number: np.float32
    anything: Annotated[Any, "ARRAY<ARRAY<INT>>"]
    maybe: int | None = None


def everything(**changes):
    given = {
        "yes": True, "tiny": -128, "big": 2**62, "single": 0.5, "double": 0.1, "text": "ß日",
        "char": "abc", "data": b"\x00\xff", "fixed": b"ab", "price": Decimal("-12.30"),
        "day": date(2026, 1, 31), "at": time(23, 59, 59, 999_999),
        "when": datetime(1969, 12, 31, 23, 59, 59, 123_456),  # noqa: DTZ001 - it has no zone
        "instant": datetime(2026, 1, 2, 3, 4, 5, 6_000, UTC),
        "color": Color.BLUE, "word": "b", "id": uuid.UUID(int=7), "raw_id": uuid.UUID(int=8),
        "numbers": [1, 2], "some": [1, None], "names": {"x", "y"}, "pair": ("p", "q"),
        "ages": {"Ann": 3}, "address": Address("Main"), "addresses": [Address("A", "12345")],
        "by_name": {"a": Address("B"), "b": None}, "point": {"x": 1.5}, "size": Size(2, 3),
        "number": np.float32(1.5), "anything": [[1], None], "maybe": None,
    }  # fmt: skip
    return Everything(**{**given, **changes})


def test_values_of_every_type_come_back():
    rows = [everything(), everything(maybe=5, numbers=[], names=set(), ages={}, word="a")]
    found = there_and_back(Everything, rows)
    assert found == rows
    assert type(found[0].number) is np.float32
    assert type(found[0].size) is Size


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "äß日"])
def test_char_takes_texts_up_to_its_length(text):
    """Java's typed rows take exactly one character, whatever the length."""
    assert there_and_back(Everything, [everything(char=text)])[0].char == text


class Model(pydantic.BaseModel):
    """A class of pydantic."""

    id: Annotated[int, Key]
    count: int = pydantic.Field(1, gt=0, alias="Count")
    at: pydantic.AwareDatetime | None = None


@attrs.frozen
class Attrs:
    """A class of attrs."""

    id: Annotated[int, Key]
    _hidden: str = "a"
    tags: list[str] = attrs.field(factory=list, kw_only=True)


class Pair(NamedTuple):
    """A tuple."""

    id: Annotated[int, Key]
    name: str | None = None


class Dict(TypedDict, total=False):
    """A dict."""

    id: int
    name: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Frozen:
    """A dataclass of slots."""

    id: int
    name: str = field(default="x", kw_only=True)


@pytest.mark.parametrize(
    "rows",
    [
        [Model(id=1), Model(id=2, Count=5, at=datetime(2026, 1, 1, tzinfo=UTC))],
        [Attrs(1), Attrs(2, hidden="b", tags=["c"])],
        [Pair(1), Pair(2, "b")],
        [Frozen(1), Frozen(2, name="y")],
    ],
    ids=lambda rows: type(rows[0]).__name__,
)
def test_rows_of_every_kind_of_class_come_back(rows):
    found = there_and_back(type(rows[0]), rows)
    assert found == rows
    assert type(found[0]) is type(rows[0])


def test_a_dict_lacks_what_is_null_where_its_class_allows_that():
    rows: list[Dict] = [{"id": 1, "count": None}, {"id": 2, "name": "b", "count": 3}]
    assert there_and_back(Dict, rows) == rows


# --- NULL and defaults ----------------------------------------------------------------------------


@dataclass
class Later:
    """A class with a field that was added later."""

    id: int
    note: str = "none"
    tags: list[str] = field(default_factory=list)
    maybe: int | None = 5


def test_null_is_the_default_of_a_field_that_takes_no_none():
    table = pa.table({"id": [1], "note": pa.array([None], pa.string()),
                      "tags": pa.array([None], pa.list_(pa.string())),
                      "maybe": pa.array([None], pa.int64())})  # fmt: skip
    one = read(Later, table, types_of(schema_of(Later)))
    two = read(Later, table, types_of(schema_of(Later)))
    assert one == [Later(1, "none", [], None)]
    assert one[0].tags is not two[0].tags


def test_fields_that_are_not_read_have_their_default_or_none():
    table = pa.table({"id": [1]})
    assert read(Later, table, types_of(schema_of(Later))) == [Later(1)]
    no_default = dataclass(type("Row", (), {"__annotations__": {"id": int, "x": int | None}}))
    assert read(no_default, table, types_of(schema_of(no_default))) == [no_default(1, None)]
    with pytest.raises(SchemaMismatchError, match=r"Later\.id is not read and has no default"):
        read(Later, table, types_of(schema_of(Later)), ["note"])


@pytest.mark.parametrize(
    ("array", "annotation", "text"),
    [
        ([1, None], int, "In row 1 of column 'x': The field Row.x is int, and is NULL"),
        ([[1], [None]], list[int], "In row 1 of column 'x': The field Row.x[] is int, and is"),
        ([[("a", 1)], [("a", None)]], dict[str, int], "Row.x.value is int, and is NULL"),
        ([{"street": "a"}, {"street": None}], Address, "Row.x.street is str, and is NULL"),
        (["red", "green"], Color, "'green' (str): the table has it, and Color has 'red', 'blue'"),
        (["a", "c"], Literal["a", "b"], "Row.x does not take 'c'"),
        (["x"], uuid.UUID, "the table has no UUID there"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_a_field_does_not_take_is_refused_when_it_is_read(array, annotation, text):
    cls = dataclass(type("Row", (), {"__annotations__": {"x": annotation}}))
    schema = fluss.Schema([fluss.Column("x", schema_of(cls).columns[0].data_type.as_nullable())])
    table = pa.table({"x": pa.array(array, schema.to_arrow().field("x").type)})
    with pytest.raises(InvalidValueError) as refused:
        read(cls, table, types_of(schema))
    assert text in str(refused.value)
    assert (refused.value.row_class, refused.value.field) == ("Row", "x")


def test_a_row_that_its_class_refuses_is_named():
    table = pa.table({"id": [1, 2, 3], "count": [1, 1, 0], "at": pa.nulls(3, pa.timestamp("us"))})
    with pytest.raises(InvalidValueError, match=r"In row 2: Model refuses what the table has"):
        read(Model, table, types_of(schema_of(Model)))


# --- what is refused when it is written -----------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"tiny": 128}, "Everything.tiny: In row 1: The column 'tiny' is TINYINT"),
        ({"price": Decimal("1.005")}, "Everything.price"),
        ({"char": "abcd"}, "Everything.char"),
        ({"text": None}, "The field Everything.text is str, and has None"),
        ({"color": "red"}, "The field Everything.color does not take 'red' (str)"),
        ({"word": "c"}, "The field Everything.word does not take 'c'"),
        ({"id": "7"}, "The field Everything.id does not take '7' (str): it is no UUID"),
        ({"numbers": [1, None]}, "The field Everything.numbers[] is int, and has None"),
        ({"ages": {"a": None}}, "The field Everything.ages.value is int, and has None"),
        ({"address": "Main"}, "The field Everything.address does not take 'Main'"),
        ({"address": Address(None)}, "Everything.address.street is str, and has None"),
        ({"address": Address(5)}, "Everything.address"),
        ({"point": {"x": 1.0, "z": 2.0}}, "Point has no field 'z'"),
        ({"numbers": "12"}, "Everything.numbers"),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "Everything.when"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_class_field_and_row(changes, text):
    with pytest.raises(InvalidValueError) as refused:
        written(Everything, [everything(), everything(**changes)])
    assert text in str(refused.value)
    assert "row 1" in str(refused.value)
    (name,) = changes
    assert (refused.value.row_class, refused.value.field, refused.value.row) == (
        "Everything", name, 1,
    )  # fmt: skip


def test_a_row_is_counted_over_all_batches():
    rows = [Pair(index) for index in range(ROWS_PER_BATCH + 3)]
    rows[-1] = Pair("x")
    with pytest.raises(InvalidValueError) as refused:
        written(Pair, rows)
    assert refused.value.row == ROWS_PER_BATCH + 2
    assert "Pair.id" in str(refused.value)


@pytest.mark.parametrize(
    ("cls", "rows", "text"),
    [
        (Pair, [Pair(1), (2, "b")], "Row 1 is no Pair, but (2, 'b') (tuple)"),
        (Later, [Later(1), None], "Row 1 is no Later, but None"),
        (Dict, [{"id": 1}, 5], "Row 1 is no Dict, but 5 (int)"),
        (Dict, [{"id": 1, "nmae": "x"}], "it has no field 'nmae'"),
        (Point, [{"x": 1.0}, {"y": 1.0}], "Row 1 is no Point, but {'y': 1.0} (dict): its field"),
    ],
)
def test_what_is_no_row_of_the_class_is_refused(cls, rows, text):
    with pytest.raises(InvalidValueError) as refused:
        ClassFrame(row_class_of(cls), rows)
    assert text in str(refused.value)
    with pytest.raises(InvalidValueError) as refused:
        list(ClassFrame(row_class_of(cls), iter(rows)).batches(types_of(schema_of(cls))))
    assert text in str(refused.value)


def test_rows_of_a_subclass_are_rows():
    @dataclass
    class More(Later):
        extra: int = 0

    assert there_and_back(Later, [More(1)])[0] == Later(1)


# --- tables that differ ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "column", "fits"),
    [
        (int, "TINYINT", True),
        (int, "DOUBLE", False),
        (float, "FLOAT", True),
        (float, "DECIMAL(3, 1)", False),
        (str, "CHAR(3)", True),
        (str, "BYTES", False),
        (bytes, "BINARY(3)", True),
        (Annotated[Decimal, "DECIMAL(5, 1)"], "DECIMAL(9, 3)", True),
        (datetime, "TIMESTAMP_LTZ(0)", True),
        (datetime, "DATE", False),
        (date, "TIMESTAMP(3)", False),
        (bool, "INT", False),
        (list[int], "ARRAY<SMALLINT>", True),
        (list[int], "ARRAY<STRING>", False),
        (list[int], "INT", False),
        (dict[str, int], "MAP<STRING, BIGINT>", True),
        (dict[int, int], "MAP<STRING, BIGINT>", False),
        (Address, "ROW<zip CHAR(5), other INT, street STRING>", True),
        (Address, "ROW<street STRING>", False),
        (Address, "STRING", False),
        (Color, "STRING", True),
        (Color, "INT", False),
        (np.int32, "BIGINT", True),
        (np.int32, "DOUBLE", False),
        (uuid.UUID, "BYTES", True),
        (Any, "INT", True),
    ],
    ids=repr,
)
def test_a_field_has_a_column_of_its_family(annotation, column, fits):
    cls = dataclass(type("Row", (), {"__annotations__": {"x": annotation}}))
    types = types_of(fluss.Schema({"x": column}))
    if fits:
        assert RowCodec(row_class_of(cls), types, "d.t")
        return
    with pytest.raises(SchemaMismatchError) as refused:
        RowCodec(row_class_of(cls), types, "d.t")
    assert "Row.x" in str(refused.value)
    assert "d.t" in str(refused.value)


def test_fields_of_a_nested_class_are_found_by_name():
    schema = fluss.Schema({"x": "ROW<zip CHAR(5), other INT, street STRING>"})
    cls = dataclass(type("Row", (), {"__annotations__": {"x": Address | None}}))
    rows = [cls(Address("Main", "1")), cls(None)]
    assert written(cls, rows, schema).column("x").to_pylist() == [
        {"zip": "1", "other": None, "street": "Main"}, None,
    ]  # fmt: skip
    assert there_and_back(cls, rows, schema) == rows


def test_a_field_without_a_column_is_refused_with_the_nearest():
    with pytest.raises(SchemaMismatchError, match=r"Later\.note has no column in d\.t") as refused:
        RowCodec(row_class_of(Later), types_of(fluss.Schema({"id": "INT", "nte": "INT"})), "d.t")
    assert "'nte'" in refused.value.hint


# --- as frames ------------------------------------------------------------------------------------


def test_a_list_of_objects_is_a_frame():
    frame = frame_of([Later(1), Later(2)])
    assert frame.names == ["id", "note", "tags", "maybe"]
    assert frame.schema.field("id") == pa.field("id", pa.int64(), nullable=False)
    types = types_of(fluss.Schema({"id": "INT", "note": "STRING", "tags": "ARRAY<STRING>"}))
    (batch,) = frame.batches(types)
    # What the table does not have comes last, for the check of the frame to refuse.
    assert batch.schema.names == ["id", "note", "tags", "maybe"]


def test_objects_of_no_class_of_rows_are_no_frame():
    with pytest.raises(FlussError):
        frame_of([object()]).schema  # noqa: B018 - it is worked out when it is asked for
