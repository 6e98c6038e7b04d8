"""What the Arrow PyCapsule interface hands over: a schema that a consumer asks for.

A consumer may ask for fewer columns than there are, in another order, or in other types. Columns
are a scan's to narrow; types are cast by Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from fluss.errors import InvalidValueError
from fluss.model.did_you_mean import did_you_mean


@dataclass(frozen=True, slots=True)
class _Handed:
    capsule: object

    def __arrow_c_schema__(self) -> object:
        return self.capsule


def requested_of(capsule: object, schema: pa.Schema) -> pa.Schema:
    """The schema in a capsule, which is empty afterwards.

    Args:
        capsule: What a consumer gave.
        schema: What there is.

    Raises:
        InvalidValueError: It asks for a column that is not there, or twice for one.
    """
    requested = pa.schema(_Handed(capsule))
    for name in requested.names:
        if name not in schema.names:
            raise InvalidValueError(
                f"A consumer of the scan asks for the column {name!r}, which it has not.",
                hint=did_you_mean(name, schema.names) or f"it has {', '.join(schema.names)}",
                column=name,
            )
        if requested.names.count(name) > 1:
            raise InvalidValueError(f"A consumer of the scan asks twice for {name!r}.", column=name)
    return requested
