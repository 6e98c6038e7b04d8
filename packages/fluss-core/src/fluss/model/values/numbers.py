"""Converts booleans and numbers to physical values, and back.

Nothing is rounded away: an integer must fit its type, a decimal its digits. The exception is
floating point, which takes the nearest number; only integers must be held exactly.
"""

from __future__ import annotations

import operator
import struct
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from fluss.model.types.data_type import PRECISION_MAX_DECIMAL, DecimalType, FloatType, IntegerFamily
from fluss.model.values.target import Converter, Target, is_nothing, is_numpy, is_truth

_FLOAT = struct.Struct("<f")
# Digits beyond what a column holds are an error, not a rounding.
_EXACT = Context(prec=PRECISION_MAX_DECIMAL, traps=[Inexact, InvalidOperation])
_ONE = Decimal(1)
_INFINITE = (float("inf"), float("-inf"))
_SIZED = "choose a wider type for the column"


def boolean_to_physical(target: Target, _: object) -> Converter:
    """Takes bool and numpy's bool; 0 and 1 are numbers."""

    def convert(value: Any) -> Any:
        if value is True or value is False:
            return value
        if is_nothing(value):
            return target.nothing()
        if is_truth(value):
            return bool(value)
        raise target.refuse(value, hint="write True or False")

    return convert


def integer_to_physical(target: Target, data_type: IntegerFamily) -> Converter:
    """Take Python's and numpy's integers that fit."""
    bits = data_type.bits
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def convert(value: Any) -> Any:
        if type(value) is int and low <= value <= high:
            return value
        return otherwise(value)

    def otherwise(value: Any) -> Any:
        if is_nothing(value):
            return target.nothing()
        if is_truth(value):
            raise target.refuse(value, hint="write 0 or 1")
        try:
            number = operator.index(value)
        except TypeError:
            raise target.refuse(value, hint=_hint_for_integer(value)) from None
        if not low <= number <= high:
            raise target.refuse(value, f"it is not between {low} and {high}", _SIZED)
        return number

    return convert


def _hint_for_integer(value: object) -> str:
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - only NaN differs from itself
        return "NaN is no integer; write None for a value that is not there"
    return "write an int; int(value) makes one where that loses nothing"


def float_to_physical(target: Target, data_type: FloatType) -> Converter:
    """Take what `double_to_physical` takes, rounded to 32 bits; integers must be held exactly."""
    double = double_to_physical(target, data_type)
    pack, unpack = _FLOAT.pack, _FLOAT.unpack

    def convert(value: Any) -> Any:
        wide = double(value)
        if wide is None:
            return None
        try:
            (rounded,) = unpack(pack(wide))
        except OverflowError:
            raise target.refuse(value, "it is too large for 32 bits", "use DOUBLE") from None
        if rounded != wide and not isinstance(value, float) and is_integer(value):
            raise target.refuse(value, "32 bits cannot hold it exactly", "use DOUBLE or an integer")
        return rounded

    return convert


def is_integer(value: object) -> bool:
    """Return whether a value is an integer of Python or numpy."""
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def double_to_physical(target: Target, _: object) -> Converter:
    """Takes floats, decimals, and integers that 64 bits can hold exactly."""

    def convert(value: Any) -> Any:
        if type(value) is float:
            return value
        return otherwise(value)

    def nearest(value: Decimal) -> float:
        if value.is_snan():
            raise target.refuse(value, hint="write float('nan')")
        number = float(value)
        if value.is_finite() and number in _INFINITE:
            raise target.refuse(value, "it is too large for 64 bits", "use DECIMAL or STRING")
        return number

    def otherwise(value: Any) -> Any:
        if is_nothing(value):
            return target.nothing()
        if is_truth(value):
            raise target.refuse(value, hint="write 0.0 or 1.0")
        if isinstance(value, float):
            return float(value)
        if isinstance(value, Decimal):
            return nearest(value)
        try:
            number = operator.index(value)
        except TypeError:
            if is_numpy(value) and value.dtype.kind == "f":
                return float(value)
            raise target.refuse(value, hint="write a float") from None
        try:
            exact = float(number)
        except OverflowError:
            exact = 0.0
        if int(exact) != number:
            raise target.refuse(
                value, "a floating-point number cannot hold it exactly", "use DECIMAL"
            )
        return exact

    return convert


def decimal_to_physical(target: Target, data_type: DecimalType) -> Converter:
    """Takes Decimal and int whose digits all have a place; gives the unscaled integer."""
    scale = data_type.scale
    digits_before = data_type.precision - scale
    limit = 10**data_type.precision
    scaleb, quantize = _EXACT.scaleb, _EXACT.quantize

    def convert(value: Any) -> Any:
        if type(value) is not Decimal:
            return otherwise(value)
        if not value.is_finite():
            raise target.refuse(value, "it is not a number of digits", "write None instead")
        # Checked before computing: 1E+999999999 is a short text and a huge number.
        if value and value.adjusted() >= digits_before:
            raise _too_large(target, value, digits_before)
        try:
            return int(quantize(scaleb(value, scale), _ONE))
        except (Inexact, InvalidOperation):
            raise target.refuse(
                value,
                f"it has more than {scale} digits after the point",
                f"round it: value.quantize(Decimal('1e-{scale}'))",
            ) from None

    def otherwise(value: Any) -> Any:
        if is_nothing(value):
            return target.nothing()
        if is_truth(value):
            raise target.refuse(value, hint="write a Decimal")
        if isinstance(value, Decimal):
            return convert(Decimal(value))
        try:
            unscaled = operator.index(value) * 10**scale
        except TypeError:
            hint = "write Decimal(str(value))" if isinstance(value, float) else "write a Decimal"
            raise target.refuse(value, hint=hint) from None
        if not -limit < unscaled < limit:
            raise _too_large(target, value, digits_before)
        return unscaled

    return convert


def _too_large(target: Target, value: object, digits_before: int) -> Exception:
    return target.refuse(value, f"it has more than {digits_before} digits before the point", _SIZED)


def decimal_from_physical(data_type: DecimalType) -> Converter:
    """Gives Decimal with exactly the type's digits after the point."""
    down = -data_type.scale
    scaleb = _EXACT.scaleb

    def convert(unscaled: Any) -> Any:
        return None if unscaled is None else scaleb(unscaled, down)

    return convert
