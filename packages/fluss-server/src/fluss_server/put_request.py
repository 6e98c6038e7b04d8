"""The arguments of primary-key state: the facts of a table, and the options of a put.

Data only. `fluss_server.kv` uses it; `fluss_server.tablets` describes which thread may call what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluss.model.schema.schema import Schema
from fluss.model.tables.table_info import TableInfo

AGGREGATE = 0
OVERWRITE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KvTable:
    """The facts of a primary-key table that one of its buckets needs.

    Args:
        info: The table with its newest schema.
        schemas: All its schemas by id; rows on disk carry the id they were written with.
        partition_name: The bucket's partition; its values are not in the keys.
    """

    info: TableInfo
    schemas: Mapping[int, Schema]
    partition_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOptions:
    """The options of one PUT_KV request.

    Args:
        target_columns: The positions of the columns to write; empty for all.
        agg_mode: AGGREGATE, or OVERWRITE to bypass the merge engine.
        api_version: The request's version, which decides the format of keys and errors.
    """

    target_columns: tuple[int, ...] = ()
    agg_mode: int = AGGREGATE
    api_version: int = 0
