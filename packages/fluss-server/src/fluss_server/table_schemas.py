"""All schemas of one table with their batch layouts, as codecs need them.

An instance is made when a table is opened and again when its schema changes. Codecs keep a
reference while they work, so a change does not affect them. The catalog stores the schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fluss.model.schema.schema import Schema
from fluss.model.tables.table_options import KvFormat, LogFormat
from fluss.records.arrow.batch_layout import BatchLayout
from fluss.records.arrow.projection import Projection

_PROJECTIONS_MAX: Final = 256


class TableSchemas:
    """The schemas of one table by id, with the layouts of their batches.

    Args:
        schemas: All schemas of the table by id.
        log_format: The format of the table's log.
    """

    def __init__(self, schemas: Mapping[int, Schema], log_format: LogFormat) -> None:
        self.schemas = dict(sorted(schemas.items()))
        self.log_format = log_format
        self.layouts = {
            schema_id: BatchLayout.of_schema(schema) for schema_id, schema in self.schemas.items()
        }
        self.newest_id = max(self.schemas)
        self._projections: dict[tuple[int, tuple[int, ...]], Projection] = {}

    @property
    def newest(self) -> Schema:
        """The schema of new rows."""
        return self.schemas[self.newest_id]

    @property
    def row_format(self) -> KvFormat:
        """The row format of a log that is not written as Arrow."""
        return KvFormat(self.log_format.value)

    def projection(self, schema_id: int, positions: tuple[int, ...]) -> Projection:
        """Return the projection of a schema's batches to these columns.

        Raises:
            SchemaMismatchError: A position is not a column, or the positions do not ascend.
        """
        key = (schema_id, positions)
        found = self._projections.get(key)
        if found is None:
            newest = self.layouts[self.newest_id]
            found = Projection.of(self.layouts[schema_id], positions, newest=newest)
            if len(self._projections) >= _PROJECTIONS_MAX:
                self._projections.clear()
            self._projections[key] = found
        return found
