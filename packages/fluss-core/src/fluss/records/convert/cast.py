"""Converts users' batches to the form that Fluss stores, or refuses them with the reason.

Columns are matched by name, whatever their order. A column of another Arrow type is cast where no
value can change its meaning (`records.convert.cast_rules`): wider integers that fit, text in any of
Arrow's layouts, timestamps of other units as long as no digit is lost. Then every value must fit
its column (`records.convert.value_checks`). A batch that does not fit is refused before it is
queued, with the column and, for a single value, its row.

The plan from an Arrow schema to a layout is computed once and cached, so a batch that needs
nothing costs a few microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from fluss.errors import InvalidValueError, SchemaMismatchError
from fluss.hints import Hint, HintKey
from fluss.model.did_you_mean import did_you_mean
from fluss.model.types.type_code import code_of
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.convert.cast_rules import (
    Caster,
    NoCastError,
    caster_of,
    relabelled,
    value_check_of,
)
from fluss.records.convert.value_checks import DoesNotFitError, ValueCheck

_SHOWN_VALUE_MAX = 60
_OUT_OF_RANGE = re.compile("not in range|out of bounds")  # in Arrow's words
_REFUSALS = (pa.ArrowInvalid, DoesNotFitError)  # by a cast, by a check


def to_wire_batch(
    batch: pa.RecordBatch, layout: BatchLayout, *, fill_missing: bool = False
) -> pa.RecordBatch:
    """Bring a batch into wire form: the layout's columns in order, with Fluss's buffers.

    Args:
        batch: The batch; it is returned itself where it has that form already. The names of its
            nested fields, its zones and its nullability may then differ from `wire_schema`.
        layout: The columns of the table, or those to write.
        fill_missing: Whether columns that may be NULL can be missing.

    Raises:
        SchemaMismatchError: A column is missing, unknown, twice there, or of a type that cannot be
            cast safely.
        InvalidValueError: A value does not fit its column; `column` and `row` say which.
    """
    # The metadata decide nothing, and before Arrow 22 a schema with metadata has no hash.
    plan = _plan(batch.schema.remove_metadata(), layout, fill_missing)
    if not plan.has_work:
        return batch
    arrays = batch.columns
    made = [_made(step, arrays, batch.num_rows) for step in plan.steps]
    if plan.is_identity:  # the batch needs no change, only checks
        return batch
    fields = zip(made, layout.wire_schema, strict=True)
    arrays = [relabelled(array, field.type) for array, field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=layout.wire_schema)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Step:
    """How a column of the layout is made; `source` is None where the batch lacks it."""

    name: str
    wire_type: pa.DataType
    source: int | None
    cast: Caster | None
    check: ValueCheck | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    steps: tuple[_Step, ...]
    is_identity: bool  # the batch itself is the result
    has_work: bool  # a column must be cast or checked


@lru_cache(maxsize=256)
def _plan(schema: pa.Schema, layout: BatchLayout, fill_missing: bool) -> _Plan:  # noqa: FBT001 - a cache key
    sources = _match_names(schema.names, layout, fill_missing=fill_missing)
    steps = tuple(_step(schema, layout, index, source) for index, source in enumerate(sources))
    is_identity = sources == list(range(len(schema))) and all(each.cast is None for each in steps)
    has_work = not is_identity or any(each.check is not None for each in steps)
    return _Plan(steps=steps, is_identity=is_identity, has_work=has_work)


def _match_names(names: list[str], layout: BatchLayout, *, fill_missing: bool) -> list[int | None]:
    places = {name: index for index, name in enumerate(names)}
    if len(places) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SchemaMismatchError(
            f"The batch has columns of the same name: {_listed(twice)}.",
            hint="rename or drop one of them",
            column=twice[0],
        )
    unknown = [name for name in names if name not in layout.names]
    if unknown:
        raise SchemaMismatchError(
            f"The table has no column {_listed(unknown)}; it has {_listed(layout.names)}.",
            hint=did_you_mean(unknown[0], layout.names),
            column=unknown[0],
        )
    for name, data_type in zip(layout.names, layout.types, strict=True):
        if name not in places and not (fill_missing and data_type.nullable):
            key = HintKey.ADD_COLUMN_OF_NULLS if data_type.nullable else HintKey.ADD_COLUMN
            raise SchemaMismatchError(
                f"The batch lacks the column {name!r} ({data_type}); it has {_listed(names)}.",
                hint=Hint(key, column=name, **code_of(data_type)),
                column=name,
            )
    return [places.get(name) for name in layout.names]


def _step(schema: pa.Schema, layout: BatchLayout, index: int, source: int | None) -> _Step:
    name, data_type = layout.names[index], layout.types[index]
    wire_type = layout.wire_schema.field(index).type
    if source is None:
        return _Step(name=name, wire_type=wire_type, source=None, cast=None, check=None)
    found = schema.field(source).type
    try:
        cast = caster_of(found, data_type, wire_type)
    except NoCastError as error:
        raise SchemaMismatchError(
            f"The column {name!r} is {data_type.as_nullable()} (Arrow: {wire_type}),"
            f" but the batch has {found}{error.why}.",
            hint=error.hint and Hint(error.hint, column=name, **code_of(data_type)),
            column=name,
            expected=data_type,
            found=str(found),
        ) from error
    check = value_check_of(data_type, limits=layout.limits)
    return _Step(name=name, wire_type=wire_type, source=source, cast=cast, check=check)


def _made(step: _Step, arrays: list[pa.Array], rows: int) -> pa.Array:
    if step.source is None:
        return pa.nulls(rows, step.wire_type)
    array = arrays[step.source]
    if step.cast is not None:
        array = _tried(step, step.cast, array)
    if step.check is not None:
        _tried(step, step.check, array)
    return array


def _tried(step: _Step, work: Callable[[pa.Array], Any], array: pa.Array) -> Any:
    """Cast or check a whole column; on failure, find the row that fails."""
    try:
        return work(array)
    except _REFUSALS as error:
        row, cause = _first_failing_row(work, array, error)
        shown = _shown(array, row)
        why, hint = _reason(step, cause)
        raise InvalidValueError(
            f"The column {step.name!r} cannot take {shown}: {why}.", hint=hint, column=step.name
        ).add_context(row=row) from error


def _reason(step: _Step, cause: Exception) -> tuple[str, str | Hint | None]:
    """Why a value does not fit, and what to do about it."""
    if isinstance(cause, DoesNotFitError):
        hint = cause.hint
        return str(cause), Hint(hint, column=step.name) if isinstance(hint, HintKey) else hint
    if pa.types.is_integer(step.wire_type) and _OUT_OF_RANGE.search(str(cause)):
        bits = step.wire_type.bit_width
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        return f"it is not between {low} and {high}", "choose a wider type for the column"
    return str(cause), None


def _first_failing_row(
    work: Callable[[pa.Array], Any], array: pa.Array, error: Exception
) -> tuple[int, Exception]:
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            work(array.slice(low, middle - low))
            low = middle
        except _REFUSALS as found:
            high, error = middle, found
    return low, error


def _shown(array: pa.Array, row: int) -> str:
    try:
        text = str(array[row])
    except (OverflowError, ValueError):  # a date that Python's calendar does not have
        text = " ".join(str(array.slice(row, 1)).split())
    return text if len(text) <= _SHOWN_VALUE_MAX else f"{text[:_SHOWN_VALUE_MAX]}…"


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(map(repr, names)) or "no columns"
