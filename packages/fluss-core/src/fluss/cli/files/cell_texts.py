"""Formats columns as text: cells of CSV and of screens, and tokens of JSON, a column at a time.

Every value has one text, which `cli.files.cell_parsing` parses as the same value:

=====================  ==========================================================================
numbers                as they are; a float with its shortest digits, `NaN`, `Infinity`
STRING, CHAR           as they are
BYTES, BINARY          base64
DECIMAL                all digits, no exponent; in JSON in quotes, or readers make it a float
DATE, TIME             ISO 8601; years outside of 0000 to 9999 have a sign, as in Java
TIMESTAMP              ISO 8601 with `T`; a TIMESTAMP_LTZ ends with `Z`
ARRAY, ROW             JSON, also in a cell of CSV
MAP                    JSON: a list of pairs, because a key need not be text
=====================  ==========================================================================

Arrow's kernels do the work. Only bytes, and years that Arrow does not print, are formatted value by
value.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fluss.model.types.data_type import UNITS_PER_SECOND
from fluss.rows.formats.civil import civil_from_days

_NULL: Final = "null"
_CONTROL_CHARS: Final = "[\x01-\x1f]|\\x00"
_SECONDS_PER_DAY: Final = 86_400
# Arrow prints a year of four digits within these days, 0000-01-01 and 9999-12-31.
_FIRST_DAY: Final = -719_528
_LAST_DAY: Final = 2_932_896


def texts_of(column: pa.Array) -> pa.Array:
    """Format the values of a column; NULL stays NULL."""
    column, kind = _plain(column)
    if pa.types.is_nested(kind):
        return pc.if_else(column.is_null(), pa.scalar(None, pa.string()), json_of(column))
    if pa.types.is_string(kind):
        return column
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _base64_texts(column)
    if pa.types.is_floating(kind):
        return _float_texts(column)
    if pa.types.is_decimal(kind):
        return _decimal_texts(column)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _moment_texts(column)
    texts = pc.cast(column, pa.string())
    return _without_zero_fraction(texts) if pa.types.is_time(kind) else texts


def json_of(column: pa.Array) -> pa.Array:
    """Format the values of a column as JSON; NULL is `null`."""
    column, kind = _plain(column)
    if pa.types.is_null(kind):
        return pa.array([_NULL] * len(column), pa.string())
    if pa.types.is_struct(kind):
        tokens = _objects(column, kind)
    elif pa.types.is_map(kind):
        lists = column.cast(_as_list(kind))
        tokens = _joined_lists(lists, _pairs(pc.list_flatten(lists)))
    elif pa.types.is_nested(kind):
        tokens = _joined_lists(column, json_of(pc.list_flatten(column)))
    else:
        tokens = _leaf_tokens(column, kind)
    return pc.fill_null(pc.if_else(column.is_valid(), tokens, None), _NULL)


def json_lines(batch: pa.RecordBatch) -> memoryview:
    """Format the rows of a batch as JSON, one object in each line."""
    if not batch.num_columns:
        return memoryview(b"{}\n" * batch.num_rows)
    return _bytes_of(_object_texts(batch.schema.names, list(map(json_of, batch.columns)), "}\n"))


def csv_lines(batch: pa.RecordBatch) -> memoryview:
    """Format the rows of a batch as records of CSV: NULL is an empty cell, an empty text `""`."""
    if not batch.num_columns:
        return memoryview(b"\n" * batch.num_rows)
    cells = [pc.fill_null(_quoted_cells(texts_of(each)), "") for each in batch.columns]
    return _bytes_of(_concat(_concat(*cells, between=","), "\n"))


def csv_header(names: list[str]) -> memoryview:
    """Format the names of the columns as the first record of CSV."""
    cells = _quoted_cells(pa.array(names, pa.string()))
    return memoryview(f"{','.join(cells.to_pylist())}\n".encode())


# --- leaves ---------------------------------------------------------------------------------------


def _plain(column: pa.Array) -> tuple[pa.Array, pa.DataType]:
    """Return the column without dictionaries, extension types and Arrow's other text layouts."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.dictionary_decode())
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        column = column.cast(pa.string())
    elif pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        column = column.cast(pa.binary())
    return column, column.type


def _leaf_tokens(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return pc.cast(column, pa.string())
    texts = texts_of(column)
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), texts, _concat('"', texts, '"'))
    return _concat('"', _escaped(texts) if pa.types.is_string(kind) else texts, '"')


def _float_texts(column: pa.Array) -> pa.Array:
    texts = pc.cast(column, pa.string())
    texts = pc.replace_substring_regex(texts, r"^(-?[0-9]+)$", r"\1.0")
    if pc.all(pc.is_finite(column)).as_py() is not False:
        return texts
    texts = pc.if_else(pc.is_nan(column), "NaN", texts)
    infinite = pc.if_else(pc.greater(column, 0), "Infinity", "-Infinity")
    return pc.if_else(pc.is_inf(column), infinite, texts)


def _decimal_texts(column: pa.Array) -> pa.Array:
    texts = pc.cast(column, pa.string())
    return _replaced(texts, pc.match_substring(texts, "E"), lambda row: _digits(column[row]))


def _digits(value: Any) -> str:
    found: Decimal = value.as_py()
    return f"{found:f}"


def _base64_texts(column: pa.Array) -> pa.Array:
    return pa.array(
        [None if each is None else base64.b64encode(each).decode() for each in column.to_pylist()],
        pa.string(),
    )


def _moment_texts(column: pa.Array) -> pa.Array:
    kind = column.type
    per_day = 1
    if pa.types.is_timestamp(kind):
        per_day = UNITS_PER_SECOND[kind.unit] * _SECONDS_PER_DAY
        zoned = kind.tz is not None
        column = column.cast(pa.timestamp(kind.unit)) if zoned else column
    else:
        zoned = False
        column = column.cast(pa.date32())
    width = pa.int32() if per_day == 1 else pa.int64()
    counts = column.view(width)
    is_far = pc.or_(
        pc.less(counts, max(_FIRST_DAY * per_day, -(2**63))),
        pc.greater(counts, min((_LAST_DAY + 1) * per_day - 1, 2**63 - 1)),
    )
    texts = pc.cast(column, pa.string())
    if per_day != 1:
        texts = _without_zero_fraction(pc.replace_substring(texts, " ", "T", max_replacements=1))
    texts = _replaced(texts, is_far, lambda row: _far_text(counts[row].as_py(), per_day))
    return _concat(texts, "Z") if zoned else texts


def _far_text(count: int, per_day: int) -> str:
    """Format a date or time in a year that Arrow does not print."""
    days, left = divmod(count, per_day)
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""  # noqa: PLR2004 - the last of four digits
    text = f"{sign}{abs(year):04}-{month:02}-{day:02}"
    if per_day == 1:
        return text
    per_second = per_day // _SECONDS_PER_DAY
    seconds, fraction = divmod(left, per_second)
    text += f"T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{len(str(per_second)) - 1}}" if fraction else text


def _without_zero_fraction(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"\.0+$", "")


def _replaced(texts: pa.Array, where: pa.Array, text_of: Callable[[int], str]) -> pa.Array:
    """Replace the texts in the rows of a mask; NULL in the mask selects no row."""
    rows = np.flatnonzero(pc.fill_null(where, False).to_numpy(zero_copy_only=False))
    if not len(rows):
        return texts
    return pc.replace_with_mask(
        texts,
        pc.fill_null(where, False),
        pa.array(map(text_of, rows.tolist()), pa.string()),
    )


def _escaped(texts: pa.Array) -> pa.Array:
    """Escape texts as in JSON, without the quotes."""
    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, _CONTROL_CHARS)).as_py():
        for code in range(0x20):
            texts = pc.replace_substring(texts, chr(code), json.dumps(chr(code))[1:-1])
    return texts


def _quoted_cells(texts: pa.Array) -> pa.Array:
    needs = pc.match_substring_regex(texts, '[",\r\n\ufeff]|^$')
    if not pc.any(needs).as_py():
        return texts
    return pc.if_else(needs, _concat('"', pc.replace_substring(texts, '"', '""'), '"'), texts)


# --- nested ---------------------------------------------------------------------------------------


def _joined_lists(column: pa.Array, tokens: pa.Array) -> pa.Array:
    """Format each list as `[a, b]`, given the tokens of the elements of all lists."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), tokens)
    return _concat("[", pc.binary_join(lists, ", "), "]")


def _pairs(entries: pa.Array) -> pa.Array:
    key, value = json_of(entries.field(0)), json_of(entries.field(1))
    return _concat("[", key, ", ", value, "]")


def _as_list(kind: pa.DataType) -> pa.DataType:
    entry = pa.struct([kind.key_field, kind.item_field])
    return pa.list_(pa.field("entries", entry, nullable=False))


def _objects(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not kind.num_fields:
        return pa.array(["{}"] * len(column), pa.string())
    fields = [column.field(index) for index in range(kind.num_fields)]
    return _object_texts([each.name for each in kind], list(map(json_of, fields)), "}")


def _object_texts(names: list[str], tokens: list[pa.Array], end: str) -> pa.Array:
    parts: list[Any] = []
    for index, (name, token) in enumerate(zip(names, tokens, strict=True)):
        parts += [f"{', ' if index else '{'}{json.dumps(name, ensure_ascii=False)}: ", token]
    return _concat(*parts, end)


def _concat(*parts: Any, between: str = "") -> pa.Array:
    return pc.binary_join_element_wise(*parts, between)


def _bytes_of(texts: pa.Array) -> memoryview:
    """Return the bytes of texts that are contiguous in one buffer."""
    _, offsets, data = texts.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)
    return memoryview(data)[ends[texts.offset] : ends[texts.offset + len(texts)]]
