"""Reads JSON lines as batches: one object in each line, parsed as the table's types.

Blocks of whole lines go through Arrow's reader, which is given the types. A block that it refuses
is read line by line, by rules that accept more and that find the line, the column and the value
that are wrong. Numbers stay texts until they are parsed as their type, so no digit is lost.

A key that a line lacks is NULL. A MAP may be a list of pairs, as `fluss export` writes it, or an
object, or a list of `{"key": ..., "value": ...}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from fluss.cli.files.byte_sources import ByteSource
from fluss.cli.files.cell_parsing import CellError, text_type, values_of
from fluss.errors import LimitExceededError
from fluss.model.types.type_to_arrow import with_leaves

BLOCK_BYTES: Final = 4 << 20
LINE_BYTES_MAX: Final = 256 << 20

_NULL_LINE: Final = re.compile(rb"(?m)^[ \t]*null")
_HOW: Final = "write one JSON object in each line; `jq -c '.[]'` makes such lines of an array; --file-format names another format"


class LineError(Exception):
    """A line that is not a row: the row in its block, the column if one is wrong, and why."""

    def __init__(self, row: int, column: str | None, error: CellError) -> None:
        super().__init__(row, column, error)
        self.row, self.column, self.error = row, column, error


class Number(str):
    """A JSON number, as its text."""

    __slots__ = ()


def json_batches(
    source: ByteSource, schema: pa.Schema, known: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Read the rows of JSON lines.

    Args:
        source: The file.
        schema: The columns to read.
        known: The keys that a line may have; any other is an error.

    Raises:
        LineError: A line is not an object, or a value is not of its column's type.
    """
    reader = _Reader(schema, known)
    for block in _blocks(source):
        yield from reader.batches(block)


def parsed_lines(block: bytes) -> Iterator[tuple[int, Any]]:
    """Parse the lines of a block that are not blank; numbers are `Number`.

    Raises:
        LineError: A line is not JSON.
    """
    row = 0
    for line in block.split(b"\n"):
        if not line.strip():
            continue
        yield row, _parsed(line, row)
        row += 1


def lines_in(source: ByteSource) -> Iterator[bool]:
    """Return for each line whether it is a row, not blank."""
    for block in _blocks(source):
        for line in block.removesuffix(b"\n").split(b"\n"):
            yield bool(line.strip())


def _blocks(source: ByteSource) -> Iterator[bytes]:
    """Read whole lines, some megabytes at a time."""
    begun = b""
    while block := source.read(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        if not end:
            begun += block
            if len(begun) > LINE_BYTES_MAX:
                raise LimitExceededError(
                    f"A line has more than {LINE_BYTES_MAX:,} bytes.", hint=_HOW
                )
            continue
        yield begun + block[:end]
        begun = block[end:]
    if begun:
        yield begun


class _Reader:
    def __init__(self, schema: pa.Schema, known: Sequence[str]) -> None:
        self._schema = schema
        self._known = frozenset(known)
        self._quick = _arrow_schema(schema)

    def batches(self, block: bytes) -> Iterator[pa.RecordBatch]:
        try:
            columns = self._by_arrow(block)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError, CellError):
            columns = self._by_line(block)
        if columns is not None:
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _by_arrow(self, block: bytes) -> list[pa.Array] | None:
        """Read a block with Arrow, which fails or gives the same as `_by_line`."""
        if self._quick is None or _NULL_LINE.search(block):
            raise pa.ArrowInvalid
        block.decode()  # Arrow does not check that it is UTF-8
        if not block.strip():
            return None
        found = arrow_json.read_json(
            pa.BufferReader(block),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=self._quick, unexpected_field_behavior="error"
            ),
        )
        if found.num_rows != _line_count(block, found.num_rows):
            raise pa.ArrowInvalid  # two objects in one line, or one object in two lines
        (batch,) = found.combine_chunks().to_batches()
        return [_finite(values_of(batch.column(each.name), each.type)) for each in self._schema]

    def _by_line(self, block: bytes) -> list[pa.Array] | None:
        lines: list[dict[str, Any]] = []
        for row, parsed in parsed_lines(block):
            if not isinstance(parsed, dict):
                raise LineError(row, None, CellError(_shown(parsed), "is not a JSON object", _HOW))
            if not self._known.issuperset(parsed):
                unknown = next(key for key in parsed if key not in self._known)
                raise LineError(row, unknown, CellError(unknown, "is not a column of the table"))
            lines.append(parsed)
        if not lines:
            return None
        return [_column(lines, each) for each in self._schema]


def _column(lines: list[dict[str, Any]], field: pa.Field) -> pa.Array:
    texts: list[Any] = []
    try:
        for line in lines:
            texts.append(_texts_in(line.get(field.name), field.type))  # noqa: PERF401 - its length is the row that failed
        return values_of(pa.array(texts, text_type(field.type)), field.type)
    except CellError as error:
        row = error.index if len(texts) == len(lines) else len(texts)
        raise LineError(row, field.name, error) from None


def values_of_json(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Make a column of parsed JSON values; numbers among them are `Number`.

    Raises:
        CellError: A value is not of the type.
    """
    texts: list[Any] = []
    try:
        for value in values:
            texts.append(_texts_in(value, kind))  # noqa: PERF401 - its length is the row that failed
    except CellError as error:
        raise error.at(len(texts)) from None
    return values_of(pa.array(texts, text_type(kind)), kind)


def parse_json_value(text: str) -> Any:
    """Parse a JSON value; numbers become `Number`.

    Raises:
        CellError: The text is not JSON.
    """
    try:
        return _DECODER.decode(text)
    except ValueError as error:
        raise CellError(text, f"is not JSON: {error}") from None
    except RecursionError:
        raise CellError(text, "is JSON that is nested too deeply") from None


# --- one line -------------------------------------------------------------------------------------


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(each for each in names if names.count(each) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return found


_DECODER: Final = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=_unique
)


def _parsed(line: bytes, row: int) -> Any:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise LineError(
            row, None, CellError(_shown(line), f"is not UTF-8 (byte {error.start})")
        ) from None
    try:
        return parse_json_value(text.strip())
    except CellError as error:
        raise LineError(row, None, CellError(_shown(text.strip()), error.why, _HOW)) from None


def _texts_in(value: Any, kind: pa.DataType) -> Any:
    """Give a JSON value the shape of a type, with texts for leaves."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return _fields_in(value, kind)
    if pa.types.is_map(kind):
        return [
            (_inside(key, kind.key_type, ".key"), _inside(item, kind.item_type, ".value"))
            for key, item in _entries(value)
        ]
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            raise CellError(_shown(value), "is not a list")
        return [_inside(each, kind.value_type, "[]") for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise CellError(_shown(value), "is an object or a list, and the column holds single values")
    if not value.isascii():
        _refuse_half_surrogates(value)
    return str(value)


def _fields_in(value: Any, kind: pa.DataType) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CellError(_shown(value), "is not an object")
    names = [each.name for each in kind]
    unknown = [each for each in value if each not in names]
    if unknown:
        raise CellError(_shown(value), f"has {unknown[0]!r}, and the fields are {', '.join(names)}")
    return {each.name: _inside(value.get(each.name), each.type, f".{each.name}") for each in kind}


def _entries(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list):
        pairs = [pair for each in value if (pair := _pair(each)) is not None]
        if len(pairs) == len(value) and all(key is not None for key, _ in pairs):
            return pairs
    raise CellError(
        _shown(value), "is not a map", 'write {"a": 1}, or [["a", 1]] if the keys are not texts'
    )


def _pair(value: Any) -> tuple[Any, Any] | None:
    if isinstance(value, list) and len(value) == 2:  # noqa: PLR2004 - key and value
        return value[0], value[1]
    if isinstance(value, dict) and set(value) == {"key", "value"}:
        return value["key"], value["value"]
    return None


def _inside(value: Any, kind: pa.DataType, name: str) -> Any:
    try:
        return _texts_in(value, kind)
    except CellError as error:
        raise error.at(0, name) from None


def _refuse_half_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        at = error.start
        raise CellError(ascii(text), f"has half a surrogate pair at position {at}") from None


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- the schema for Arrow's reader ----------------------------------------------------------------


def _arrow_schema(schema: pa.Schema) -> pa.Schema | None:
    """Return the columns in types that Arrow reads exactly; None where it cannot."""
    if any(_has_map(each.type) for each in schema):
        return None
    return pa.schema([(each.name, with_leaves(each.type, _arrow_leaf)) for each in schema])


def _arrow_leaf(kind: pa.DataType) -> pa.DataType:
    exact = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return kind if any(each(kind) for each in exact) else pa.string()


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(index).type) for index in range(kind.num_fields))


def _finite(column: pa.Array) -> pa.Array:
    """Return a column without infinite numbers, which Arrow makes of numbers that are too large.

    Raises:
        ArrowInvalid: A number is infinite.
    """
    if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
        raise pa.ArrowInvalid
    if pa.types.is_struct(column.type):
        for index in range(column.type.num_fields):
            _finite(column.field(index))
    elif pa.types.is_list(column.type):
        _finite(column.values)
    return column


def _line_count(block: bytes, rows: int) -> int:
    count = block.count(b"\n") + (not block.endswith(b"\n"))
    if count == rows:
        return count
    return sum(bool(each.strip()) for each in block.split(b"\n"))
