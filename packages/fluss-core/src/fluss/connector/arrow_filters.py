"""The filter of a scan where it was given as a pyarrow expression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from fluss.model.metadata_columns import metadata_types
from fluss.model.scan_options import METADATA_PREFIX, ScanOptions
from fluss.model.table_info import TableInfo
from fluss.records.arrow_expressions import from_arrow


def with_predicate(options: Mapping[str, Any], table: TableInfo) -> Mapping[str, Any]:
    """The options of a scan, with a predicate in the place of pyarrow's expression.

    Raises:
        InvalidSchemaError: There is no such column; the hint names the nearest.
        InvalidValueError: A value is not one of its column's type.
        UnsupportedOperationError: A predicate cannot say this.
    """
    given = options.get("filter")
    if not isinstance(given, pc.Expression):
        return options
    prefix = options.get("metadata_prefix")
    named = ScanOptions(metadata_prefix=prefix if isinstance(prefix, str) else METADATA_PREFIX)
    metadata = metadata_types(named.metadata_names)
    return {**options, "filter": from_arrow(given, table.schema, metadata)}
