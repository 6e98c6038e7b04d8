"""Converts text and bytes to physical values.

Physical values of text are `str` and those of bytes are `bytes`, so nothing converts them back.
"""

from __future__ import annotations

from typing import Any

from fluss.model.values.target import Converter, Target, is_nothing

# Why a CHAR with few enough characters is refused.
CHAR_BYTES = "and the INDEXED format has room for as many bytes as characters"
CHAR_BYTES_HINT = "Cut it, or use STRING."


def text_to_physical(target: Target, length_max: int | None) -> Converter:
    """Takes str, for CHAR of at most so many characters."""
    counts_bytes = target.limits.counts_char_bytes

    def convert(value: Any) -> Any:
        if type(value) is str and value.isascii():
            if length_max is not None and len(value) > length_max:
                raise _too_long(target, value, length_max)
            return value
        return otherwise(value)

    def otherwise(value: Any) -> Any:
        if is_nothing(value):
            return target.nothing()
        if not isinstance(value, str):
            hint = "decode it: value.decode()" if isinstance(value, bytes) else "write str(value)"
            raise target.refuse(value, hint=hint)
        plain = str.__str__(value)  # without the class that a StrEnum or numpy put around it
        if length_max is not None and len(plain) > length_max:
            raise _too_long(target, plain, length_max)
        try:
            encoded = plain.encode()
        except UnicodeEncodeError as error:
            raise target.refuse(
                plain,
                f"it has half a surrogate pair at position {error.start}",
                "decode it with errors='replace' where it comes from",
            ) from None
        if length_max is not None and counts_bytes and len(encoded) > length_max:
            raise target.refuse(
                plain, f"it has {len(encoded)} bytes, {CHAR_BYTES}", CHAR_BYTES_HINT
            )
        return plain

    return convert


def _too_long(target: Target, value: str, length_max: int) -> Exception:
    return target.refuse(
        value, f"it has {len(value)} characters", f"cut it to {length_max}, or use STRING"
    )


def bytes_to_physical(target: Target, length: int | None) -> Converter:
    """Takes bytes, bytearray and memoryview, for BINARY of exactly so many bytes."""

    def convert(value: Any) -> Any:
        if type(value) is bytes and (length is None or len(value) == length):
            return value
        return otherwise(value)

    def otherwise(value: Any) -> Any:
        if is_nothing(value):
            return target.nothing()
        if not isinstance(value, bytes | bytearray | memoryview):
            hint = "encode it: value.encode()" if isinstance(value, str) else "write bytes"
            raise target.refuse(value, hint=hint)
        plain = bytes(value)
        if length is not None and len(plain) != length:
            raise target.refuse(
                plain, f"it has {len(plain)} bytes", f"fill or cut it to {length}, or use BYTES"
            )
        return plain

    return convert
