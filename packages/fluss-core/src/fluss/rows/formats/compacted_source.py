"""Compiles functions that read and write single compacted rows of given types, without loops.

They are right for bytes and values that are right, and raise something for all others: the loops of
`rows.formats.compacted_row` are asked then, which find the field and the words for it. The layout
is drawn in `rows.formats.compacted`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from fluss.model.types.data_type import DataType, TextFamily
from fluss.rows.formats.stored_value import Number, ValueWriter, number_of
from fluss.rows.formats.varint import read_varint, read_varlong

# For more fields, compiling would take longer than it saves.
FIELDS_MAX: Final = 200

RowReading = Callable[[bytes], tuple[Any, ...]]
RowWriting = Callable[[Sequence[Any]], bytes]
_READERS: Final = {"i": "read_varint", "q": "read_varlong"}


def compiled_reader(
    types: Sequence[DataType],
    readers: Sequence[Callable[[bytes, int], tuple[Any, int]]],
    *,
    null_bytes: int,
) -> RowReading:
    """Compile a function that decodes a row, which takes all of the data.

    Args:
        types: The types of the fields; at least one.
        readers: Decode the field that begins at a position, and return where it ends.
        null_bytes: How many bytes of null bits a row has.

    Returns:
        The function. It raises something for bytes that cannot be a row of these types.
    """
    names: dict[str, Any] = {"read_varint": read_varint, "read_varlong": read_varlong}
    lines = ["def read(data):"]
    if null_bytes == 1:
        lines += ["    nulls = data[0]"]
    elif null_bytes:
        lines += [f"    nulls = int.from_bytes(data[:{null_bytes}], 'little')"]
    lines += [f"    at = {null_bytes}"]
    for index, data_type in enumerate(types):
        names[f"read{index}"] = readers[index]
        field = _field_lines(index, data_type, names)
        if null_bytes:
            lines += [f"    if nulls & {1 << index}:", f"        v{index} = None", "    else:"]
        lines += [f"{'        ' if null_bytes else '    '}{each}" for each in field]
    values = "".join(f"v{index}, " for index in range(len(types)))
    lines += ["    if at != len(data):", "        raise ValueError", f"    return ({values})"]
    return _made(lines, names, "read")


def _field_lines(index: int, data_type: DataType, names: dict[str, Any]) -> list[str]:
    v, number = f"v{index}", number_of(data_type)
    if isinstance(number, Number):
        return _number_lines(index, number, names)
    if isinstance(data_type, TextFamily):
        return [
            "size = data[at]",
            "at += 1",
            "if size > 127:",  # most are shorter, and a call takes longer than all the rest
            "    size, at = read_varint(data, at - 1)",
            "    if size < 0: raise ValueError",
            f"{v} = data[at : at + size].decode()",
            "at += size",
        ]
    return [f"{v}, at = read{index}(data, at)"]


def _number_lines(index: int, number: Number, names: dict[str, Any]) -> list[str]:
    v, reader = f"v{index}", _READERS.get(number.code)
    lines = [
        f"{v} = data[at]",
        "at += 1",
        f"if {v} > 127:",
        f"    {v}, at = {reader}(data, at - 1)",
    ]
    if reader is None:
        names[f"unpack{index}"] = struct.Struct(f"<{number.code}").unpack_from
        lines = [f"({v},) = unpack{index}(data, at)", f"at += {number.width}"]
    if number.from_stored is not None:
        names[f"convert{index}"] = number.from_stored
        lines.append(f"{v} = convert{index}({v})")
    return lines


def compiled_key_writer(writers: Sequence[ValueWriter]) -> RowWriting:
    """Compile a function that encodes a key, which has no NULL and no null bits.

    Returns:
        The function. It raises something for values that are not such a key.
    """
    values = [f"v{index}" for index in range(len(writers))]
    names: dict[str, Any] = {f"write{index}": each for index, each in enumerate(writers)}
    fields = " + ".join(f"write{index}({each})" for index, each in enumerate(values))
    any_null = " or ".join(f"{each} is None" for each in values)
    lines = [
        "def write(values):",
        f"    {', '.join(values)}, = values",
        f"    if {any_null}: raise ValueError",
        f"    return {fields}",
    ]
    return _made(lines, names, "write")


def _made(lines: Sequence[str], names: dict[str, Any], name: str) -> Callable[[Any], Any]:
    exec("\n".join(lines), names)  # noqa: S102 - made of numbers and names of this package only
    made: Callable[[Any], Any] = names[name]
    return made
