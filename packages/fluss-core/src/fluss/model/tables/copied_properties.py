"""Decides which properties a copy of a table gets: the definition is copied, logins are not.

Statements and programs that create a table like another one take their properties from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fluss.model.options.secrets import is_secret
from fluss.model.tables.table_info import TableInfo
from fluss.model.tables.table_options import DataLakeFormat

# A server adds the settings of the cluster's lake to the properties of each table that is copied
# into the lake. They are not the table's own, and a request that creates a table with them is
# refused.
_OF_CLUSTER: Final = tuple(f"table.datalake.{each}." for each in DataLakeFormat)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedProperties:
    """The properties of a table that a copy gets.

    Attributes:
        properties: The properties.
        secrets: The names of the properties that are left out because their values are secret.
    """

    properties: Mapping[str, str]
    secrets: tuple[str, ...]


def copied_properties(table: TableInfo) -> CopiedProperties:
    """Return the properties of a table, of Fluss and of users, that a copy of it gets."""
    own = {
        key: value
        for key, value in {**table.custom_properties, **table.properties}.items()
        if not key.startswith(_OF_CLUSTER)
    }
    return CopiedProperties(
        properties={key: value for key, value in own.items() if not is_secret(key, value)},
        secrets=tuple(key for key, value in own.items() if is_secret(key, value)),
    )
