"""Checks what a caller of `tier` passes: the options by their names, and the names of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fluss.connection.arguments import table_path_of
from fluss.connection.url import parse_url
from fluss.errors import ConfigError, InvalidValueError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.paths import TablePath
from fluss_lake.tiering.range_task import WriteMode
from fluss_lake.tiering.round_driver import RoundOptions
from fluss_lake.tiering.worker import WorkerOptions

# The parameters of `tier`, for the nearest name to an unknown option.
_PARAMETERS: Final = ("tables", "cluster", "once", "now", "on_round")


def worker_options(given: Mapping[str, Any]) -> WorkerOptions:
    """The options of a worker and of its rounds.

    Args:
        given: The options by their names; those that are None keep their default.

    Raises:
        ConfigError: There is no option of a name; the hint has the nearest one.
        InvalidValueError: An option does not take a value.
    """
    for name in given:
        _check_name(name)
    values = {name: value for name, value in given.items() if value is not None}
    checked = {name: _PARSERS[name](name, value) for name, value in values.items()}
    rounds = {name: checked.pop(name) for name in _OF_ROUNDS if name in checked}
    return WorkerOptions(rounds=RoundOptions(**rounds), **checked)


def table_paths(tables: str | Iterable[str], cluster: Any) -> frozenset[TablePath]:
    """The paths of tables by their names.

    Args:
        tables: One name, or several. A name without a database is in that of the session or URL.
        cluster: A session, or settings to connect with.

    Raises:
        InvalidNameError: A name has no database, and neither has the session or the URL.
    """
    path_of = _paths_in(cluster)
    named = [tables] if isinstance(tables, str | TablePath) else tables
    return frozenset(path_of(each) for each in named)


def _paths_in(cluster: Any) -> Callable[[TablePath | str], TablePath]:
    if hasattr(cluster, "path_of"):
        found: Callable[[TablePath | str], TablePath] = cluster.path_of
        return found
    database = parse_url(cluster).database if isinstance(cluster, str) else None

    def path_of(name: TablePath | str) -> TablePath:
        if database is not None and isinstance(name, str) and "." not in name:
            return TablePath(database, name)
        return table_path_of(name)

    return path_of


def _check_name(name: str) -> None:
    if name in _PARSERS:
        return
    nearest = did_you_mean(name, (*_PARAMETERS, *_PARSERS))
    listed = f"The options are {', '.join(_PARSERS)}."
    raise ConfigError(
        f"tier() has no option {name!r}.",
        hint=listed if nearest is None else f"{nearest} {listed}",
        key=name,
    )


# --- values -----------------------------------------------------------------------------------


def _as_it_is(_name: str, value: Any) -> Any:
    return value


def _write_mode(name: str, value: Any) -> WriteMode:
    try:
        return WriteMode(value)
    except ValueError:
        nearest = did_you_mean(str(value), WriteMode)
        raise InvalidValueError(
            f"{name}={value!r} is not a write mode.",
            hint=nearest or f"choose {' or '.join(WriteMode)}",
            option=name,
        ) from None


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidValueError(
            f"{name}={value!r} is not a number of at least 1.", option=name, value=value
        )
    return value


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InvalidValueError(
            f"{name}={value!r} is not a number of seconds above 0.", option=name, value=value
        )
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError(f"{name}={value!r} is neither True nor False.", option=name)
    return value


def _settings(name: str, value: Any) -> Mapping[str, str]:
    # The values are not shown: they may be secrets.
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise InvalidValueError(
            f"{name} is not a mapping of texts.",
            hint='write the names of lake.* options without the prefix: {"password": "..."}',
            option=name,
        )
    return value


_OF_ROUNDS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "write_mode": _write_mode,
    "rows_max": _count,
    "skips_lost": _flag,
    "replaces_partitions": _flag,
    "file_bytes": _count,
    "memory_bytes": _count,
    "settings": _settings,
    "worker": _as_it_is,
}
_PARSERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    **_OF_ROUNDS,
    "tables_max": _count,
    "threads": _count,
    "round_s_max": _seconds,
    "carry": _as_it_is,
}
