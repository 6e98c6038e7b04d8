"""Lays columns of strings out as dictionaries, for engines that read those without copying texts.

A stream of Arrow has one type for each column. So where some rows come as dictionaries from the
files of a lake, all others are laid out as dictionaries, too. Texts are not compared for that: each
row gets an entry of its own, and the array of the texts becomes the dictionary, without a copy.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa

from fluss.records.arrow.numpy_arrays import from_numpy

TEXT: Final = pa.string()
DICTIONARY: Final = pa.dictionary(pa.int32(), TEXT)
# Batches of up to this many rows share their numbers.
SHARED_ROWS_MAX: Final = 128 * 1024


def dictionary_schema(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """The schema with dictionaries in these columns, as far as they are strings."""
    for number, column in enumerate(schema):
        if column.name in names and column.type == TEXT:
            schema = schema.set(number, column.with_type(DICTIONARY))
    return schema


def with_dictionaries(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in a schema with dictionaries; the other columns are shared."""
    if not any(map(_is_dictionary, schema.types)):
        return batch
    columns = [
        _dictionary(column) if _is_dictionary(field.type) else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with texts in place of dictionaries; the other columns are shared."""
    for number, column in enumerate(batch.schema):
        if _is_dictionary(column.type):
            texts = batch.column(number).cast(column.type.value_type)
            batch = batch.set_column(number, column.with_type(texts.type), texts)
    return batch


def _is_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _dictionary(column: pa.Array) -> pa.DictionaryArray:
    if _is_dictionary(column.type):
        if column.type == DICTIONARY and len(column.dictionary) <= len(column):
            return column
        # An engine converts all entries of a dictionary, however few rows refer to them.
        column = column.cast(TEXT)
    rows = len(column)
    numbers = _shared_numbers().slice(0, rows) if rows <= SHARED_ROWS_MAX else _numbers(rows)
    return pa.DictionaryArray.from_arrays(numbers, column, safe=False)


@cache
def _shared_numbers() -> pa.Array:
    return _numbers(SHARED_ROWS_MAX)


def _numbers(count: int) -> pa.Array:
    return from_numpy(np.arange(count, dtype=np.int32))
