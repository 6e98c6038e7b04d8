"""The administrator of both dialects: each call is awaited.

The methods are those of `AdminCore`, with its names, signatures and docstrings. A call has started
when it returns, and continues if its result is not awaited.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from fluss.admin.admin import AdminCore
from fluss.net.engine_thread import Engine

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[AdminCore, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[FlussAdmin, P], Awaitable[T]]:
    """Make the method that starts a method of the core on the engine.

    Its signature and docstring, which `help` and editors show, are those of the core's method.
    """

    @wraps(method, assigned=("__name__", "__doc__"))
    def start(self: FlussAdmin, /, *args: P.args, **named: P.kwargs) -> Awaitable[T]:
        return self._engine.submit(method(self._core, *args, **named))

    signature = inspect.signature(method)
    awaited = f"Awaitable[{signature.return_annotation}]"
    start.__qualname__ = f"FlussAdmin.{method.__name__}"
    start.__signature__ = signature.replace(return_annotation=awaited)  # type: ignore[attr-defined]
    return start


class FlussAdmin:
    """Databases, tables, partitions, offsets and servers of one cluster.

    Tables are named by a `TablePath` or by `"database.table"`.
    """

    def __init__(self, engine: Engine, core: AdminCore) -> None:
        self._engine = engine
        self._core = core

    create_database = _awaited(AdminCore.create_database)
    drop_database = _awaited(AdminCore.drop_database)
    list_databases = _awaited(AdminCore.list_databases)
    database_exists = _awaited(AdminCore.database_exists)
    get_database_info = _awaited(AdminCore.get_database_info)

    create_table = _awaited(AdminCore.create_table)
    drop_table = _awaited(AdminCore.drop_table)
    get_table_info = get_table = _awaited(AdminCore.get_table_info)
    list_tables = _awaited(AdminCore.list_tables)
    table_exists = _awaited(AdminCore.table_exists)

    create_partition = _awaited(AdminCore.create_partition)
    drop_partition = _awaited(AdminCore.drop_partition)
    list_partition_infos = _awaited(AdminCore.list_partition_infos)
    list_partition_infos_with_spec = list_partition_infos

    list_offsets = _awaited(AdminCore.list_offsets)
    list_partition_offsets = _awaited(AdminCore.list_partition_offsets)
    get_latest_lake_snapshot = _awaited(AdminCore.get_latest_lake_snapshot)
    get_server_nodes = _awaited(AdminCore.get_server_nodes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
