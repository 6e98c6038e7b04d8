"""What the server hands to primary key state: the table's facts, and how a put is meant.

Only data. What is done with it is in `fluss_server.kv`; who may call that, and when, is said in
`fluss_server.tablets`.
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
    """A primary key table as one of its buckets must know it.

    Args:
        info: The table with its newest schema.
        schemas: Every schema it ever had, by id; rows on disk carry the id they were written with.
        partition_name: The partition that the bucket is of; its values are not in the keys.
    """

    info: TableInfo
    schemas: Mapping[int, Schema]
    partition_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOrder:
    """How the rows of one PUT_KV request are meant.

    Args:
        target_columns: The positions of the columns that are written; empty for all.
        agg_mode: AGGREGATE, or OVERWRITE to bypass the merge engine.
        api_version: The request's version, which tells what the client knows of keys and errors.
    """

    target_columns: tuple[int, ...] = ()
    agg_mode: int = AGGREGATE
    api_version: int = 0
