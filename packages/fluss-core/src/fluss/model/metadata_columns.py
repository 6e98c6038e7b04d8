"""The metadata columns, which describe rows, and their types.

They are not columns of a table: a scan adds the requested ones, under these names or with another
prefix than `_` (`model.options.scan_options`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fluss.model.types.data_type import BigIntType, DataType, IntType, StringType, TimestampLtzType

METADATA_TYPES: Final[Mapping[str, DataType]] = MappingProxyType(
    {
        "_log_offset": BigIntType(),
        "_commit_timestamp": TimestampLtzType(3),
        "_bucket": IntType(),
        "_partition": StringType(),
        "_change_type": StringType(),
    }
)


def metadata_types(names: Mapping[str, str]) -> dict[str, DataType]:
    """Return the types of metadata columns by the names that a scan gives them.

    Args:
        names: For each name in the scan, the column's own name.
    """
    return {name: METADATA_TYPES[own] for name, own in names.items()}
