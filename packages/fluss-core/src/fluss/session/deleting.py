"""Deletes the rows of a primary-key table that fulfil a condition.

The servers delete by key, so the keys of the rows are read first, all of them: a condition that
fails while it is read has deleted nothing. What a condition may be is decided by scans.
"""

from __future__ import annotations

from typing import Any

from fluss.connection.connection import TableHandle
from fluss.errors import InvalidValueError
from fluss.model.options.scan_options import Mode, is_arrow_expression, scan_options
from fluss.model.predicates.predicate import Predicate
from fluss.progress import Progress
from fluss.scan.scan import Scan
from fluss.write.frame_checks import check_frame
from fluss.write.frame_writer import write_frame
from fluss.write.write_tally import WriteReport


def is_condition(value: Any) -> bool:
    """Return whether this is a condition and not keys; a text could be either."""
    return isinstance(value, Predicate) or is_arrow_expression(value)


def keys_given(keys: Any) -> Any:
    """Return keys, where there are any.

    Raises:
        InvalidValueError: There are none, or a text.
    """
    if keys is None:
        raise InvalidValueError(
            "The rows to delete are not given.",
            hint='give their keys, or a condition: delete(where="id > 5")',
        )
    if isinstance(keys, str):
        raise InvalidValueError(
            f"The text {keys!r} may be a key or a condition.",
            hint=f"a key is delete([{keys!r}]), a condition is delete(where={keys!r})",
        )
    return keys


def delete_where(
    table: TableHandle, where: Any, keys: Any = None, *, progress: Progress = False
) -> WriteReport:
    """Delete the rows that fulfil a condition; see `Table.delete`."""
    if keys is not None:
        raise InvalidValueError(
            "Keys and a condition are both given.",
            hint="add the keys to the condition, as id IN (1, 2)",
        )
    names = table.info.primary_keys
    nothing = table.info.schema.to_arrow().empty_table()
    check_frame(table, nothing, mode="delete")  # refuses a table that is not deleted from by key
    options = scan_options({"columns": names, "filter": where, "mode": Mode.STATE, "lake": "off"})
    found = Scan(table, options).to_arrow(progress=progress)
    return write_frame(table, found, mode="delete", progress=progress)
