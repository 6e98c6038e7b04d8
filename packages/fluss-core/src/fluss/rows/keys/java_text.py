"""Numbers and instants as Java prints them: the text inside partition names and Hudi keys.

Two clients must print a value alike, or its rows go to two partitions. The reference is the Java
client, including its oddities. Which text a Fluss type becomes is decided in
`rows.keys.partition_text` and `rows.keys.hudi_keys`.

FLOAT and DOUBLE print as JDK 8 to 18 print them, the JDKs that Fluss and its Flink connector are
run on (witness: JDK 17). Those digits always read back as the same number but are not always the
shortest that do: 2E23 is 1.9999999999999998E23 there, 2^-44 is 5.6843418860808015E-14, the FLOAT
3.4E10 is 3.3999999E10. Since JDK 19 (JDK-4511638) the shortest digits are printed, as in Python.
A Java client on JDK 19 or later thus names the partition of such a value differently from one on
JDK 17, and from this one. No client can agree with both; servers accept any name.
"""

from __future__ import annotations

import math
import struct

from fluss.rows.formats.civil import civil_from_days

MILLIS_PER_DAY = 86_400_000

# Java's plain notation covers 10^-3 <= |x| < 10^7; everything else is written d.ddE±x.
_PLAIN_EXPONENT_MIN = -3
_PLAIN_EXPONENT_MAX = 7

_DOUBLE_FRACTION_BITS = 52
_DOUBLE_BIAS = 1023
_FLOAT_FRACTION_BITS = 23
_FLOAT_BIAS = 127
_LONG_BITS = 63
_INT_BITS = 31


def double_text(value: float) -> str:
    """What `Double.toString` gives: `100.0`, `-2.25E10`, `NaN`, `Infinity`."""
    bits = int.from_bytes(struct.pack(">d", value), "big")
    return _special_text(value) or _sign(value) + _finite_text(
        bits & ~(1 << 63), fraction_bits=_DOUBLE_FRACTION_BITS, bias=_DOUBLE_BIAS
    )


def float_text(value: float) -> str:
    """What `Float.toString` gives for a value that 32 bits hold exactly."""
    bits = int.from_bytes(struct.pack(">f", value), "big")
    return _special_text(value) or _sign(value) + _finite_text(
        bits & ~(1 << 31), fraction_bits=_FLOAT_FRACTION_BITS, bias=_FLOAT_BIAS
    )


def decimal_text(unscaled: int, scale: int) -> str:
    """What `BigDecimal.toPlainString` gives: all `scale` digits after the point, no exponent."""
    sign = "-" if unscaled < 0 else ""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def local_date_time_text(millis: int, nano_of_milli: int) -> str:
    """What `LocalDateTime.toString` gives: seconds and fraction only where they are not zero."""
    date, minutes, seconds, nanos = _split(millis, nano_of_milli)
    if not seconds and not nanos:
        return f"{date}T{minutes}"
    return f"{date}T{minutes}:{seconds:02d}{_fraction(nanos)}"


def instant_text(millis: int, nano_of_milli: int) -> str:
    """What `Instant.toString` gives: always with seconds, in UTC, with a final Z."""
    date, minutes, seconds, nanos = _split(millis, nano_of_milli)
    return f"{date}T{minutes}:{seconds:02d}{_fraction(nanos)}Z"


def _split(millis: int, nano_of_milli: int) -> tuple[str, str, int, int]:
    days, milli_of_day = divmod(millis, MILLIS_PER_DAY)
    second_of_day, milli_of_second = divmod(milli_of_day, 1000)
    minute_of_day, seconds = divmod(second_of_day, 60)
    minutes = f"{minute_of_day // 60:02d}:{minute_of_day % 60:02d}"
    return _iso_date(days), minutes, seconds, milli_of_second * 1_000_000 + nano_of_milli


def _iso_date(days: int) -> str:
    # ISO 8601 as `LocalDate.toString` has it: four digits at least, a plus from five digits on.
    year, month, day = civil_from_days(days)
    plus = "+" if year > 9999 else ""
    sign = "-" if year < 0 else plus
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    if nanos % 1_000_000 == 0:
        return f".{nanos // 1_000_000:03d}"
    if nanos % 1000 == 0:
        return f".{nanos // 1000:06d}"
    return f".{nanos:09d}"


def _special_text(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return None


def _sign(value: float) -> str:
    return "-" if math.copysign(1.0, value) < 0 else ""


def _finite_text(bits: int, *, fraction_bits: int, bias: int) -> str:
    if not bits:
        return "0.0"
    biased_exponent, fraction = bits >> fraction_bits, bits & ((1 << fraction_bits) - 1)
    if biased_exponent:
        mantissa = fraction | 1 << fraction_bits
        exponent = biased_exponent - bias
        precision_bits = fraction_bits + 1
    else:  # subnormal: the leading bit is wherever it is, and only the bits below it count
        mantissa = fraction
        precision_bits = fraction.bit_length()
        exponent = precision_bits - fraction_bits - bias
    mantissa >>= (mantissa & -mantissa).bit_length() - 1
    digits, decimal_exponent = _digits(mantissa, exponent, precision_bits)
    return _notation(digits, decimal_exponent)


def _notation(digits: str, exponent: int) -> str:
    """Digits d1 d2 d3 … of the number d1.d2d3… * 10^exponent in Java's notation."""
    if not _PLAIN_EXPONENT_MIN <= exponent < _PLAIN_EXPONENT_MAX:
        return f"{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"


def _digits(mantissa: int, exponent: int, precision_bits: int) -> tuple[str, int]:
    """Return the digits of mantissa * 2^k; mantissa is odd, `exponent` is that of its top bit."""
    bits = mantissa.bit_length()
    if exponent >= bits - 1 and exponent < _LONG_BITS:
        return _digits_of_long(mantissa << exponent - bits + 1, exponent - precision_bits - 1)
    return _digits_of_quotient(mantissa, exponent, precision_bits)


def _digits_of_long(value: int, noise_bits: int) -> tuple[str, int]:
    # Integers below 2^63 are printed as they are; digits that lie below the precision of the
    # type (the last `noise_bits` bits) are rounded away, half up, however close they were.
    dropped = len(str(1 << noise_bits)) - 1 if noise_bits > 0 else 0
    unit = 10**dropped
    text = str((value + unit // 2) // unit)
    return text.rstrip("0"), len(text) - 1 + dropped


def _digits_of_quotient(mantissa: int, exponent: int, precision_bits: int) -> tuple[str, int]:
    """Steele and White's digit generation with the JDK's own estimates, widths and tie rules.

    The number is rest / divisor * 10^decimal_exponent and half its unit in the last place is
    margin / divisor on the same scale. Digits are peeled off until what is left is below the
    margin (`low`: the digits so far will do) or within a margin of the next digit (`high`: so
    will the digits rounded up).
    """
    decimal_exponent = _estimate_decimal_exponent(mantissa, exponent)
    rest, divisor, margin, width = _scale(mantissa, exponent, precision_bits, decimal_exponent)
    tens = divisor * 10

    def peel() -> tuple[int, bool, bool]:
        nonlocal rest, margin
        digit, rest = divmod(rest, divisor)
        rest, margin = rest * 10, _wrap(margin * 10, width)
        if margin <= 0:  # overflown, hence certainly larger than the rest
            return digit, True, True
        reach = _wrap(rest + margin, width)
        return digit, rest < margin, reach > tens or (reach == tens and not width)

    digit, low, high = peel()
    digits = [digit]
    if digit == 0 and not high:  # the estimate was one too large
        digits.clear()
        decimal_exponent -= 1
    if not -3 <= decimal_exponent < 8:
        low = high = False  # d.dE±x has a second digit whether it is needed or not
    while not low and not high:
        digit, low, high = peel()
        digits.append(digit)
    if high and (not low or _rounds_up(2 * rest - tens, digits[-1])):
        decimal_exponent += _round_up(digits)
    return "".join(map(str, digits)), decimal_exponent


def _estimate_decimal_exponent(mantissa: int, exponent: int) -> int:
    # log10 by a tangent at 1.5, in doubles: right or one too large. Where it is too large decides
    # the digits of some numbers, so the constants are part of the format.
    fraction = mantissa / (1 << mantissa.bit_length() - 1)
    estimate = (fraction - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981
    return math.floor(estimate)


def _scale(
    mantissa: int, exponent: int, precision_bits: int, decimal_exponent: int
) -> tuple[int, int, int, int]:
    """Rest, divisor and margin as integers, and the bits of the Java integers they stand for.

    Width 0 means big integers. The JDK uses 32 and 64 bits where rest and 10 * divisor seem to
    fit; the margin may then overflow, and ties against the next digit fall the other way.
    """
    bits = mantissa.bit_length()
    bits_below_point = max(0, bits - exponent - 1)
    rest_fives = max(0, -decimal_exponent)
    divisor_fives = max(0, decimal_exponent)
    rest_twos = rest_fives + bits_below_point + exponent - (bits - 1)
    divisor_twos = divisor_fives + bits_below_point
    margin_twos = rest_twos + bits - 1 - precision_bits
    if bits == 1:  # below a power of two the neighbours are half as far away
        margin_twos -= 1
    spare = min(rest_twos, divisor_twos, margin_twos)
    rest_twos, divisor_twos, margin_twos = (
        each - spare for each in (rest_twos, divisor_twos, margin_twos)
    )
    five_bits = _bits_of_five(rest_fives), _bits_of_five(divisor_fives + 1)
    widest = max(bits + rest_twos + five_bits[0], divisor_twos + 1 + five_bits[1])
    return (
        mantissa * 5**rest_fives << rest_twos,
        5**divisor_fives << divisor_twos,
        5**rest_fives << margin_twos,
        _INT_BITS if widest <= _INT_BITS else _LONG_BITS if widest <= _LONG_BITS else 0,
    )


def _bits_of_five(power: int) -> int:
    return (5**power).bit_length() if power else 0


def _wrap(value: int, width: int) -> int:
    if not width:
        return value
    half = 1 << width
    return (value + half) % (2 * half) - half


def _rounds_up(difference: int, last_digit: int) -> bool:
    return difference > 0 or (difference == 0 and last_digit % 2 == 1)


def _round_up(digits: list[int]) -> int:
    """Add one to the last digit, in place; how much that raises the decimal exponent."""
    for index in range(len(digits) - 1, -1, -1):
        if digits[index] != 9:
            digits[index] += 1
            return 0
        digits[index] = 0
    digits[0] = 1
    return 1
