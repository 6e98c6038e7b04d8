"""Which Arrow types may stand for which Fluss types, and how they become the wire's.

One rule decides every case: a cast is allowed where it either keeps every value exactly or fails at
the one it cannot keep. So integers, decimals and units of time are compared by value; floats do not
become integers (NaN, rounding), and text does not become bytes. There are two exceptions. Floating
point rounds: FLOAT and DOUBLE take the nearest number (decision 0004). A timestamp without a zone
is in UTC where the column is an instant; one with a zone does not fit a column without (decision
0008).

A rule looks at types once and returns a function over arrays, or None where the buffers already
are the wire's. The function raises `pyarrow.ArrowInvalid` for a value that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as at

from fluss.hints import HintKey
from fluss.model.types import data_type as t
from fluss.model.types.arrow_to_type import OPAQUE_EXTENSIONS
from fluss.model.types.data_type import ArrayType, BinaryType, DataType, MapType, RowType
from fluss.model.types.per_type import PerType
from fluss.model.values.limits import NO_LIMITS, ValueLimits
from fluss.model.values.time_zones import KEEP_ZONE, ZONE_WOULD_BE_LOST
from fluss.records.arrow.numpy_arrays import as_list, list_parts, to_numpy
from fluss.records.convert.number_casts import to_floating
from fluss.records.convert.numpy_columns import validity_buffer
from fluss.records.convert.value_checks import (
    ValueCheck,
    char_check,
    digits_check,
    list_check,
    map_check,
    not_null_check,
    row_check,
    time_check,
    timestamp_check,
)

Caster: TypeAlias = Callable[[pa.Array], pa.Array]

_DECIMAL_PRECISION_MAX = 38


class NoCastError(Exception):
    """There is no safe cast; `why` continues the sentence that names both types.

    Args:
        why: The reason, where the types alone do not give it.
        hint: What to do with the column; None where nothing is known to help.
    """

    def __init__(self, why: str = "", hint: HintKey | None = HintKey.CAST_COLUMN) -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint


def caster_of(source: pa.DataType, target: DataType, wire: pa.DataType) -> Caster | None:
    """Return how arrays of an Arrow type become those of a Fluss type.

    Args:
        source: The type of the arrays there are.
        target: The requested Fluss type.
        wire: Its Arrow type on the wire.

    Returns:
        The cast, or None where there is nothing to do.

    Raises:
        NoCastError: There is none.
    """
    if isinstance(source, pa.BaseExtensionType):
        if source.extension_name in OPAQUE_EXTENSIONS:
            raise NoCastError(", whose storage is not its value", None)
        return _after(lambda array: array.storage, source.storage_type, target, wire)
    if at.is_dictionary(source):
        return _after(decoded, source.value_type, target, wire)
    if at.is_run_end_encoded(source):
        return _after(pc.run_end_decode, source.value_type, target, wire)
    if at.is_null(source):
        return lambda array: pa.nulls(len(array), wire)
    if source == wire and not target.is_nested:
        return None
    return _RULES[target].cast(source, target, wire)


def _after(first: Caster, source: pa.DataType, target: DataType, wire: pa.DataType) -> Caster:
    then = caster_of(source, target, wire)
    return first if then is None else lambda array: then(first(array))


def decoded(array: pa.Array) -> pa.Array:
    """Return the values of a dictionary array; those of Polars hold views and stay views."""
    values = array.dictionary
    if at.is_string_view(values.type) or at.is_binary_view(values.type):
        # Arrow has no kernel that takes from views.
        plain = pa.large_string() if at.is_string_view(values.type) else pa.large_binary()
        array = pa.DictionaryArray.from_arrays(array.indices, values.cast(plain))
        return array.dictionary_decode().cast(values.type)
    return array.dictionary_decode()


# --- types without children -------------------------------------------------------------------


_Maker: TypeAlias = Callable[[pa.DataType, Any, pa.DataType], Caster | None]


def _if_any(*allowed: Callable[[pa.DataType], bool]) -> _Maker:
    """Arrow's own cast, for sources that one of these accepts."""

    def rule(source: pa.DataType, _: DataType, wire: pa.DataType) -> Caster:
        if not any(is_allowed(source) for is_allowed in allowed):
            raise NoCastError
        return lambda array: array.cast(wire)

    return rule


_text_caster = _if_any(at.is_string, at.is_large_string, at.is_string_view)


def _is_whole_decimal(source: pa.DataType) -> bool:
    # DuckDB's sums of integers and Polars' Int128 come as these.
    return bool(at.is_decimal(source) and source.scale == 0)


def _float_caster(source: pa.DataType, _: DataType, wire: pa.DataType) -> Caster:
    if not (at.is_floating(source) or at.is_integer(source) or at.is_decimal(source)):
        raise NoCastError
    return lambda array: to_floating(array, wire)


def _binary_caster(source: pa.DataType, target: BinaryType, wire: pa.DataType) -> Caster:
    if not _is_binary(source):
        raise NoCastError
    return _fixed_binary(target, wire)


def _decimal_caster(source: pa.DataType, _: DataType, wire: pa.DataType) -> Caster:
    if at.is_integer(source):
        return _decimal_of_integers(wire)
    if not at.is_decimal(source):
        raise NoCastError
    return lambda array: array.cast(wire)


def _is_binary(source: pa.DataType) -> bool:
    return bool(at.is_binary(source) or at.is_large_binary(source) or at.is_binary_view(source))


def _fixed_binary(target: BinaryType, wire: pa.DataType) -> Caster:
    def cast(array: pa.Array) -> pa.Array:
        array = array.cast(pa.binary())
        lengths = pc.binary_length(array)
        if pc.all(pc.equal(lengths, target.length)).as_py() is False:
            raise pa.ArrowInvalid(f"{target} has exactly {target.length} bytes")
        return array.cast(wire)

    return cast


def _decimal_of_integers(wire: pa.DataType) -> Caster:
    # Arrow wants room for all digits of the integer type before it looks at the values.
    wide = pa.decimal256(_DECIMAL_PRECISION_MAX + wire.scale, wire.scale)
    return lambda array: array.cast(wide).cast(wire)


def _timestamp_caster(source: pa.DataType, _: DataType, wire: pa.DataType) -> Caster | None:
    if not at.is_timestamp(source):
        raise NoCastError("", HintKey.CAST_COLUMN if at.is_date(source) else HintKey.MAKE_TIMES)
    if source.tz is not None:
        raise NoCastError(f": {ZONE_WOULD_BE_LOST}", KEEP_ZONE)
    return _unit_caster(source, wire)


def _instant_caster(source: pa.DataType, _: DataType, wire: pa.DataType) -> Caster | None:
    if not at.is_timestamp(source):
        raise NoCastError("", HintKey.MAKE_TIMES)
    return _unit_caster(source, wire)


def _unit_caster(source: pa.DataType, wire: pa.DataType) -> Caster | None:
    if source.unit == wire.unit:
        return None  # a zone is a word in the schema, the instants are UTC anyway
    plain = pa.timestamp(source.unit)
    return lambda array: array.view(plain).cast(wire)


# --- types with children ----------------------------------------------------------------------


def _list_caster(source: pa.DataType, target: ArrayType, wire: pa.DataType) -> Caster | None:
    if not _is_list(source):
        raise NoCastError("", HintKey.GIVE_NESTED)
    inner = caster_of(source.value_type, target.element, wire.value_type)
    if at.is_list(source) and inner is None:
        return None

    def cast(array: pa.Array) -> pa.Array:
        offsets, elements = list_parts(array)
        return _made_of(array, wire, [offsets], [_cast(elements, inner, wire.value_type)])

    return cast


def _map_caster(source: pa.DataType, target: MapType, wire: pa.DataType) -> Caster | None:
    if not at.is_map(source):
        raise NoCastError("", HintKey.GIVE_NESTED)
    keys = caster_of(source.key_type, target.key, wire.key_type)
    values = caster_of(source.item_type, target.value, wire.item_type)
    if keys is None and values is None:
        return None
    pairs = pa.struct([wire.key_field, wire.item_field])

    def cast(array: pa.Array) -> pa.Array:
        offsets, entries = list_parts(as_list(array))
        children = [
            _cast(entries.field(0), keys, wire.key_type),
            _cast(entries.field(1), values, wire.item_type),
        ]
        child = pa.Array.from_buffers(pairs, len(entries), [None], 0, children=children)
        return _made_of(array, wire, [offsets], [child])

    return cast


def _struct_caster(source: pa.DataType, target: RowType, wire: pa.DataType) -> Caster | None:
    if not at.is_struct(source):
        raise NoCastError("", HintKey.GIVE_NESTED)
    names = [each.name for each in source]
    if sorted(names) != sorted(target.field_names):
        raise NoCastError(f", whose fields are not {', '.join(target.field_names)}", None)
    places = [names.index(each) for each in target.field_names]
    inner = [
        caster_of(source.field(place).type, each, wire.field(index).type)
        for index, (place, each) in enumerate(zip(places, target.field_types, strict=True))
    ]
    if places == list(range(len(names))) and all(each is None for each in inner):
        return None

    def cast(array: pa.Array) -> pa.Array:
        children = []
        for index, (place, rule) in enumerate(zip(places, inner, strict=True)):
            child = array.field(place)
            # Values under a NULL struct are unspecified, and might not fit.
            child = child if rule is None else _masked(child, array)
            children.append(_cast(child, rule, wire.field(index).type))
        return _made_of(array, wire, [], children)

    return cast


def _cast(array: pa.Array, cast: Caster | None, wire: pa.DataType) -> pa.Array:
    return relabelled(array if cast is None else cast(array), wire)


def _made_of(
    array: pa.Array, wire: pa.DataType, own: list[pa.Buffer], children: list[pa.Array]
) -> pa.Array:
    """Return an array of these buffers and children, with the NULLs of the given one."""
    buffers = [validity_buffer(array), *own]
    return pa.Array.from_buffers(wire, len(array), buffers, array.null_count, children=children)


def _masked(child: pa.Array, parent: pa.Array) -> pa.Array:
    """Return the field of a struct, NULL where the struct is."""
    if not parent.null_count:
        return child
    if at.is_dictionary(child.type):
        return pa.DictionaryArray.from_arrays(_masked(child.indices, parent), child.dictionary)
    if at.is_string_view(child.type) or at.is_binary_view(child.type):
        # Arrow has no kernel that chooses among views.
        plain = pa.large_string() if at.is_string_view(child.type) else pa.large_binary()
        return _masked(child.cast(plain), parent).cast(child.type)
    if at.is_nested(child.type) and not at.is_union(child.type):
        return _masked_nested(child, parent)
    return pc.if_else(parent.is_valid(), child, pa.scalar(None, child.type))


def _masked_nested(child: pa.Array, parent: pa.Array) -> pa.Array:
    # The same memory with other validity, because Arrow has no kernel for some nested types.
    offset = 0 if at.is_struct(child.type) else child.offset
    valid = np.zeros(offset + len(child), dtype=np.bool_)
    valid[offset:] = to_numpy(pc.and_(parent.is_valid(), child.is_valid()))
    if at.is_struct(child.type):
        own = []
        children = [child.field(index) for index in range(child.type.num_fields)]
    else:
        own = child.buffers()[1 : _own_buffers(child.type)]
        children = [child.values]
    buffers = [pa.py_buffer(np.packbits(valid, bitorder="little")), *own]
    return pa.Array.from_buffers(child.type, len(child), buffers, -1, offset, children)


def _own_buffers(kind: pa.DataType) -> int:
    """Return how many buffers an array of lists has beside those of its elements."""
    if at.is_fixed_size_list(kind):
        return 1  # validity
    if at.is_list_view(kind) or at.is_large_list_view(kind):
        return 3  # validity, offsets, sizes
    return 2  # validity, offsets


def _is_list(source: pa.DataType) -> bool:
    kinds = (at.is_list, at.is_large_list, at.is_fixed_size_list, at.is_list_view)
    return any(is_kind(source) for is_kind in kinds)


def relabelled(array: pa.Array, wire: pa.DataType) -> pa.Array:
    """Return the same buffers as the wire's type: without zone, with the wire's field names."""
    if array.type.equals(wire, check_metadata=True):
        return array
    if at.is_list(wire) or at.is_map(wire):
        child = (
            wire.value_type if at.is_list(wire) else pa.struct([wire.key_field, wire.item_field])
        )
        buffers, offset = array.buffers()[:2], array.offset
        children = [relabelled(array.values, child)]
    elif at.is_struct(wire):
        buffers, offset = [validity_buffer(array)], 0
        children = [relabelled(array.field(i), each.type) for i, each in enumerate(wire)]
    else:
        return array.view(wire)
    return pa.Array.from_buffers(wire, len(array), buffers, array.null_count, offset, children)


# --- by type ----------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """How arrays become those of a type, and what is checked afterwards, if anything."""

    cast: _Maker
    check: Callable[[Any, ValueLimits], ValueCheck | None] = lambda *_: None


def value_check_of(data_type: DataType, *, limits: ValueLimits = NO_LIMITS) -> ValueCheck | None:
    """Return the check for a column of this type, None where there is nothing to check.

    Args:
        data_type: The type.
        limits: What the table adds to the limits of the type (`TableInfo.value_limits`).
    """
    check = _RULES[data_type].check(data_type, limits)
    return check if data_type.nullable else not_null_check(check)


def _child_checks(data_type: DataType, limits: ValueLimits) -> list[ValueCheck | None]:
    return [value_check_of(each, limits=limits) for each in data_type.children()]


_RULES: Final = PerType[_Rule](
    {
        t.BooleanType: _Rule(_if_any()),
        t.IntegerFamily: _Rule(_if_any(at.is_integer, _is_whole_decimal)),
        t.FloatFamily: _Rule(_float_caster),
        t.CharType: _Rule(_text_caster, char_check),
        t.StringType: _Rule(_text_caster),
        t.BytesType: _Rule(_if_any(_is_binary, at.is_fixed_size_binary)),
        t.BinaryType: _Rule(_binary_caster),
        t.DecimalType: _Rule(_decimal_caster, digits_check),
        t.DateType: _Rule(_if_any(at.is_date)),
        t.TimeType: _Rule(_if_any(at.is_time), time_check),
        t.TimestampType: _Rule(_timestamp_caster, timestamp_check),
        t.TimestampLtzType: _Rule(_instant_caster, timestamp_check),
        t.ArrayType: _Rule(_list_caster, lambda *given: list_check(*_child_checks(*given))),
        t.MapType: _Rule(_map_caster, lambda *given: map_check(_child_checks(*given))),
        t.RowType: _Rule(_struct_caster, lambda *given: row_check(_child_checks(*given))),
    }
)
