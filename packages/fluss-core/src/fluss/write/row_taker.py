"""Makes the function behind `append` and `upsert`: it converts a row and adds it to the buffer.

It does what `RowWriter.take_plainly` does, in one function instead of four (measured: 680 instead
of 1 190 ns for a dict of six columns, of which reading the row is 350). While the open chunk of the
buffer takes values, a row needs a lock, four attributes and a list. In all other cases (the first
row of a chunk, a row after a frame, a full or closed writer, a large row) the buffer's own methods
take the values. Where `fluss_native` is installed, it takes rows of plain values, and leaves all
others to this function (`write.native_taker`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fluss.write.native_taker import native_taker
from fluss.write.row_function import RowReader
from fluss.write.write_result import WriteResultHandle

if TYPE_CHECKING:
    from fluss.write.writer_cores import RowWriter


def row_taker(
    reader: RowReader, writer: RowWriter, *, large_row_bytes: int
) -> Callable[[Any], WriteResultHandle]:
    """Make the function.

    Args:
        reader: Reads the rows.
        writer: Takes them.
        large_row_bytes: A larger row is tried by itself before it is taken.
    """
    rows = writer.open_rows
    names = {
        "rows": rows,
        "acquire": rows.lock.acquire,
        "release": rows.lock.release,
        "is_owned": rows.lock._is_owned,  # type: ignore[attr-defined] # noqa: SLF001 - as `threading.Condition` does
        "add": rows.values.extend,
        "extend": list.extend,
        "streams": (rows.values, *rows.runs),
        "writer": writer,
        "Handle": WriteResultHandle,
    }
    refused = ("raise error.with_context(row=writer.rows_taken) from None",)
    taker = reader.compiled(
        partial(_lines, large_row_bytes), names, refused=refused, flat=writer.flat_rows
    )
    return native_taker(reader, writer, taker, large_row_bytes=large_row_bytes) or taker


def _lines(large_row_bytes: int, cells: str, runs: Sequence[str]) -> Sequence[str]:
    all_runs = f"({''.join(f'{each}, ' for each in runs)})"
    # One call adds the cells and all runs, so that a signal handler cannot append between them. It
    # is the only one after the row is counted, because an interrupt may come after each call.
    streams = f"({cells}, {', '.join(runs)})"
    prepare = (f"            extending = map(extend, streams, {streams})",) if runs else ()
    add = "any(extending)" if runs else f"add({cells})"
    return (
        f"if size <= {large_row_bytes}:",
        "    handle = Handle()",
        "    filled = 0",
        # `with` would take 75 ns more. An interrupt may come with or without the lock.
        "    try:",
        "        acquire()",
        "        if rows.takes_values:",
        *prepare,
        "            handle._chunk = rows.chunk",
        "            handle._first = count = rows.count",
        "            rows.count = count + 1",
        "            rows.bytes = filled = rows.bytes + size",
        "            target = rows.target_bytes",
        "            if filled >= target:",
        "                rows.takes_values = False",
        # Last, because a signal handler may run after it, and may append rows of its own.
        f"            {add}",
        "        release()",
        "    except BaseException:",
        "        if is_owned():",
        "            release()",
        "        raise",
        "    if filled:",
        "        if filled >= target:",
        "            writer.seal_full()",
        "        return handle",
        f"return writer.take_flat({cells}, {all_runs}, size)",
    )
