"""The changes that the keywords of `Session.alter_table` stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fluss.model.options.argument_types import Names
from fluss.model.tables.changes import TableChange
from fluss.model.types.given_types import columns_of


def table_changes(
    *,
    add_columns: Any,
    drop_columns: Names,
    rename_columns: Mapping[str, str] | None,
    modify_columns: Any,
    set_properties: Mapping[str, Any] | None,
    reset_properties: Sequence[str],
    buckets: int | None,
) -> list[TableChange]:
    """Return the changes, in the order of the keywords."""
    added = () if add_columns is None else columns_of(add_columns)
    modified = () if modify_columns is None else columns_of(modify_columns)
    dropped = [drop_columns] if isinstance(drop_columns, str) else drop_columns
    changes = [
        *(
            TableChange.add_column(
                each.name, each.data_type, each.comment, aggregation=each.aggregation
            )
            for each in added
        ),
        *map(TableChange.drop_column, dropped),
        *(TableChange.rename_column(old, new) for old, new in (rename_columns or {}).items()),
        *(TableChange.modify_column(each.name, each.data_type, each.comment) for each in modified),
        *(TableChange.set(key, _property(value)) for key, value in (set_properties or {}).items()),
        *map(TableChange.reset, reset_properties),
    ]
    if buckets is not None:
        changes.append(TableChange.modify_bucket_count(buckets))
    return changes


def _property(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
