"""The command `fluss doctor`: what works, what does not, and what to do about it."""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import typer

from fluss.cli.files.format_names import OutputFormat
from fluss.cli.global_options import GlobalOptions

if TYPE_CHECKING:
    from fluss.admin.health import ClusterReport, ServerHealth

_PACKAGES: Final = (
    "fluss-core",
    "fluss-duckdb",
    "fluss-lake",
    "fluss-native",
    "fluss-polars",
    "fluss-server",
    "fluss-spark",
    "fluss-testkit",
)
_ENGINES: Final = ("pyarrow", "pandas", "polars", "duckdb", "pyspark", "pyiceberg", "uvloop")
_SERVER: Final = (
    ("server", "string"),
    ("address", "string"),
    ("answers", "bool"),
    ("latency_ms", "float64"),
    ("release", "string"),
    ("clock_skew_ms", "int64"),
    ("leads", "int64"),
    ("error", "string"),
)


def doctor(context: typer.Context) -> None:
    """Examine the cluster: servers, latencies, releases, clocks, leaders, replicas.

    It begins with the versions of packages and engines on this machine. Nothing is written. The
    exit code is 1 if something is wrong; what to do follows then. With -o json, csv or arrow it
    writes a row for each server.

    Examples:
        fluss doctor
        fluss doctor --url fluss-1:9123
        fluss doctor --profile prod -o json
    """
    import fluss.session  # noqa: F401 - its time is not the cluster's

    cluster: GlobalOptions = context.obj
    is_for_people = cluster.output in {None, OutputFormat.TABLE}
    if is_for_people:
        for line in _local_lines():
            typer.echo(line)
    began = time.perf_counter()
    with cluster.session() as session:
        took_ms = (time.perf_counter() - began) * 1_000
        servers = session.config.bootstrap_servers
        found = session.health()
    if is_for_people:
        typer.echo(f"connected to {servers} in {took_ms:,.0f} ms")
        for line in _lines(found):
            typer.echo(line)
    else:
        from fluss.cli.row_output import write_records

        write_records([_record(each) for each in found.servers], _SERVER, cluster.output)
    for advice in found.advice:
        typer.echo(f"fluss: {advice}", err=True)
    if not found.is_sound:
        raise typer.Exit(1)


def _local_lines() -> Iterator[str]:
    """Yield what is known without a server."""
    from fluss.native import describe_native

    yield f"{', '.join(_versions(_PACKAGES))}; native code {describe_native()}"
    yield ", ".join([f"Python {platform.python_version()}", *_versions(_ENGINES)])


def _versions(packages: Sequence[str]) -> Iterator[str]:
    """Yield the names and versions of the packages that are installed."""
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            yield f"{package} {metadata.version(package)}"


def _lines(found: ClusterReport) -> Iterator[str]:
    width = max((len(each.node.uid) for each in found.servers), default=0)
    for server in found.servers:
        yield f"  {server.node.uid:<{width}}  {server.node.address}  {_state_of(server)}"
    left_out = f", {found.tables_left_out:,} more not examined" if found.tables_left_out else ""
    yield (
        f"{_counted(found.databases, 'database')}, {_counted(found.tables, 'table')}{left_out}, "
        f"{_counted(found.buckets, 'bucket')}"
    )
    yield (
        f"{_counted(len(found.leaderless), 'bucket')} without a leader, "
        f"{len(found.under_replicated):,} with missing replicas"
    )
    if found.is_sound:
        yield "all is well"


def _state_of(server: ServerHealth) -> str:
    if server.error is not None:
        return "does not answer"
    facts = [f"{server.latency_ms:.1f} ms"]
    if server.release is not None:
        facts.append(f"Fluss {server.release}")
    if server.clock_skew_ms is not None:
        facts.append(f"clock {server.clock_skew_ms / 1_000:+.2f} s")
    if server.leads:
        facts.append(f"leads {_counted(server.leads, 'bucket')}")
    return ", ".join(facts)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _record(server: ServerHealth) -> dict[str, Any]:
    return {
        "server": server.node.uid,
        "address": str(server.node.address),
        "answers": server.error is None,
        "latency_ms": None if server.latency_ms is None else round(server.latency_ms, 3),
        "release": server.release,
        "clock_skew_ms": server.clock_skew_ms,
        "leads": server.leads,
        "error": server.error,
    }
