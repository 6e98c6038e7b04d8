"""Tables that are created where they do not exist, for `ensure_table` and `create=True`.

A table that exists is compared with what the call names. One that does not exist is created only
after the frame was checked, so that a refused call creates no table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from fluss.doors import check_argument_names
from fluss.errors import InvalidValueError, TableNotFoundError
from fluss.model.options.argument_types import Names
from fluss.model.paths import TablePath
from fluss.write.frame_checks import checked_frame
from fluss.write.table_from_frame import check_existing, info_of, schema_of_frame
from fluss.write.tabular import Frame, frame_of

if TYPE_CHECKING:
    from fluss.session.session_writes import SessionWrites
    from fluss.session.table import Table


class NewTable(TypedDict, total=False):
    """How a table is created; the arguments of `Session.create_table`."""

    primary_key: Names | None
    """The columns of the primary key; none for a log table."""

    partition_by: Names | None
    """The columns that divide it into partitions."""

    bucket_key: Names | None
    """The columns that choose the bucket; the primary key's by default."""

    buckets: int | None
    """How many buckets it has, in each partition; the cluster's default otherwise."""

    auto_increment: str | None
    """A column that the servers count up by themselves."""

    properties: Mapping[str, Any] | None
    """Fluss's own properties, such as `table.log.ttl`."""

    comment: str | None
    """A description of the table."""


# What the functions that take a `NewTable` take, too; the nearest of all is named.
_OF_WRITES: Final = ("create", "progress", "config")


def check_how(how: Mapping[str, Any], *, create: bool, function: str) -> None:
    """Refuse an unknown argument, and the description of a table in a call that creates none.

    Args:
        how: The description, by the names of arguments.
        create: Whether the call creates a table.
        function: The function that was called.

    Raises:
        TypeError: A new table has no such argument.
        InvalidValueError: The call creates none.
    """
    known = [*NewTable.__annotations__, *_OF_WRITES]
    check_argument_names(how, known, function)
    if how and not create:
        raise InvalidValueError(
            f"{', '.join(how)}: these describe a table to create, and create=True is missing."
        )


def ensured_table(
    session: SessionWrites, name: TablePath | str, schema: Any, rows: Any, how: Mapping[str, Any]
) -> Table:
    """The table; see `Session.ensure_table`."""
    check_how(how, create=True, function="ensure_table")
    table = table_if_there(session, name, how)
    if table is None:
        descriptor = schema_of_frame(schema, **how)
        path = session.path_of(name)
        if rows is not None:
            mode: Literal["append", "upsert"] = (
                "upsert" if descriptor.schema.has_primary_key else "append"
            )
            checked_frame(info_of(descriptor, path), frame_of(rows), mode=mode)
        table = session.create_table(path, descriptor, ignore_if_exists=True)
        check_existing(table.info, **how)  # another process may have created it meanwhile
    return table


def table_for_frame(
    session: SessionWrites,
    name: TablePath | str,
    data: Any,
    *,
    mode: Literal["append", "upsert"],
    how: Mapping[str, Any],
) -> tuple[Table, Frame]:
    """The table that a frame is written to with `create=True`, and the frame, of the same rows."""
    frame = frame_of(data)  # texts in it are values, and no types
    table = table_if_there(session, name, how)
    if table is None:
        table, frame = created_for_frame(session, name, frame, mode=mode, how=how)
    return table, frame


def created_for_frame(
    session: SessionWrites,
    name: TablePath | str,
    data: Any,
    *,
    mode: Literal["append", "upsert"],
    how: Mapping[str, Any],
) -> tuple[Table, Frame]:
    """Create the table that a frame is written to; return it and a frame of the same rows."""
    frame = frame_of(data)
    descriptor = schema_of_frame(frame, **how)
    path = session.path_of(name)
    frame = checked_frame(info_of(descriptor, path), frame, mode=mode)
    table = session.create_table(path, descriptor, ignore_if_exists=True)
    check_existing(table.info, **how)  # another process may have created it meanwhile
    return table, frame


def table_if_there(
    session: SessionWrites, name: TablePath | str, how: Mapping[str, Any]
) -> Table | None:
    """The table of this name, which must be as `how` describes it; None if there is none."""
    try:
        table = session.table(name)
    except TableNotFoundError:
        return None
    check_existing(table.info, **how)
    return table
