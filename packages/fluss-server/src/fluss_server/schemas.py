"""All schemas of one table, ready for its codecs: what batches of each schema id look like.

Made when a table is opened and again when its schema changes; codecs hold a reference while they
work, so a change never pulls the rug from under them. Where schemas are kept is `catalog`.
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
        schemas: Every schema the table ever had.
        log_format: How the table's log is written.
    """

    def __init__(self, schemas: Mapping[int, Schema], log_format: LogFormat) -> None:
        self.schemas = dict(sorted(schemas.items()))
        self.log_format = log_format
        self.layouts = {
            each: BatchLayout.of_schema(schema) for each, schema in self.schemas.items()
        }
        self.newest_id = max(self.schemas)
        self._projections: dict[tuple[int, tuple[int, ...]], Projection] = {}

    @property
    def newest(self) -> Schema:
        """The schema that new rows have."""
        return self.schemas[self.newest_id]

    @property
    def row_format(self) -> KvFormat:
        """The row format of a log that is not written as Arrow."""
        return KvFormat(self.log_format.value)

    def projection(self, schema_id: int, positions: tuple[int, ...]) -> Projection:
        """What is kept of the batches of a schema when readers ask for these columns.

        Raises:
            SchemaMismatchError: The positions name no columns, or not in ascending order.
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
