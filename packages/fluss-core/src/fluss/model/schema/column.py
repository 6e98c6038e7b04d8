"""One column of a table, as it was declared.

Buffers of a column's values are in `rows.buffers.columns`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fluss.errors import InvalidSchemaError
from fluss.model.names import check_column_name, check_text
from fluss.model.schema.aggregation import AggFunction
from fluss.model.types.data_type import DataType


@dataclass(frozen=True, slots=True)
class Column:
    """The declaration of a column.

    Args:
        name: The name, unique in the table.
        data_type: The type, with or without NULL; or what stands for one
            (`model.types.given_types`), such as `"BIGINT"`.
        comment: A description for users.
        column_id: The number that stays when the column moves; the schema assigns it when absent.
        aggregation: How the merge engine `aggregation` combines two values of the column.
    """

    name: str
    data_type: DataType
    comment: str | None = None
    column_id: int | None = field(default=None, kw_only=True)
    aggregation: AggFunction | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_column_name(self.name)
        given: Any = self.data_type
        if not isinstance(given, DataType):
            from fluss.model.types.given_types import data_type_of

            object.__setattr__(self, "data_type", data_type_of(given, self.name))
        if self.comment is not None:
            check_text(f"comment of the column {self.name!r}", self.comment)
        if self.column_id is not None and self.column_id < 0:
            raise InvalidSchemaError(
                f"The id of the column {self.name!r} is {self.column_id}; ids begin at 0.",
                column=self.name,
            )

    def __str__(self) -> str:
        comment = "" if self.comment is None else f" COMMENT {self.comment!r}"
        return f"{self.name} {self.data_type}{comment}"
