"""Casts of numbers that keep the value, or round it as floating point rounds (decision 0004).

Arrow's own safe casts differ from that in both directions: they refuse integers of more than 24 or
53 bits even where a floating-point number holds them, round decimals twice on the way to one, and
let a number that is too large become infinite. Each function raises `pyarrow.ArrowInvalid` for a
value that does not fit.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as at

from fluss.records.arrow.numpy_arrays import to_numpy

_MANTISSA_BITS: Final = {32: 24, 64: 53}


def to_floating(array: pa.Array, wire: pa.DataType) -> pa.Array:
    """Numbers of any kind as floating-point numbers: each the nearest, integers exact."""
    if at.is_integer(array.type):
        return _integers_to_floating(array, wire)
    if at.is_decimal(array.type):
        # Arrow multiplies by a power of ten, which is not the nearest; its parser gives that.
        array = array.cast(pa.string()).cast(pa.float64())
    rounded = array.cast(wire, safe=False)
    if wire.bit_width < array.type.bit_width:
        grown = pc.and_(pc.is_inf(rounded), pc.invert(pc.is_inf(array)))
        if pc.any(grown).as_py():
            raise pa.ArrowInvalid(
                f"a {wire.bit_width}-bit number ends at about ±{np.finfo(np.float32).max:.2e}"
            )
    return rounded


def _integers_to_floating(array: pa.Array, wire: pa.DataType) -> pa.Array:
    try:
        return array.cast(wire)  # as long as all have few bits
    except pa.ArrowInvalid:
        bits = _MANTISSA_BITS[wire.bit_width]
        present = to_numpy(array.drop_null())
        magnitudes = present.astype(np.uint64)
        magnitudes = np.where(present < 0, np.uint64(0) - magnitudes, magnitudes)
        last_bits = magnitudes & (np.uint64(0) - magnitudes)
        if ((magnitudes // np.maximum(last_bits, 1)) >> np.uint64(bits)).any():
            raise pa.ArrowInvalid(
                f"a floating-point number of {wire.bit_width} bits cannot hold it exactly"
            ) from None
        return array.cast(wire, safe=False)
