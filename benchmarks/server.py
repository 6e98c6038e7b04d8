"""The speed of the embedded server compared with the real one: the same clients alternate.

Our client and pyfluss 1.0.0, each in a process per server, run the same tasks against the embedded
server (`durability=process`) and Fluss 0.9.1 in one JVM on the same machine; the order alternates
from pair to pair. "ours / real" is the speed of the embedded server relative to the real one, as
the median over the pairs, with the worst and the best pair. `_server_alone` measures the embedded
server alone: start, restart, idle memory, many connections.

    ./dev bench server [--quick] [--pairs N] [--rows N] [--only WORD ...] [--restart-gb G]

Clients and servers share the machine's processors, so a slow client hides the cost of its server;
"client" names the client, and "CPU" is the processor time of our server divided by that of the real
one, which other programs disturb least. Without the peer its lines are missing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks._measure import interleaved, print_table
from benchmarks._server_alone import alone_lines, cpu_seconds
from benchmarks._server_cases import KEYS, ServerCase, cases_of
from benchmarks.peer import AnswerError, Side
from fluss_server import LocalCluster
from tools.peer import PeerUnavailableError, peer_python

HEADS = ("what", "client", "ours", "real", "ours / real", "spread", "CPU", "bar", "")
BARE_HEADS = ("the embedded server alone", "found", "spread", "bar", "")
FILLED_BATCHES = (("ZSTD", 100_000), ("ZSTD", 10_000), ("NONE", 100_000), ("NONE", 10_000))
SERVERS = ("python", "java")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment of the cases.

    Args:
        sides: A process for each client and server.
        tables: The tables that are read, for each server.
        pids: The servers' processes.
    """

    sides: Mapping[tuple[str, str], Side]
    tables: Mapping[str, Mapping[str, str]]
    pids: Mapping[str, int]


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code is 1 when a side failed, not when a bar was missed."""
    options = _options(arguments)
    lines = _beside_the_real_one(options)
    if lines:
        title = f"Embedded and real: {options.rows:,} rows x 6 columns, {options.pairs} pairs"
        print_table(title, HEADS, lines)
    alone = alone_lines(options)
    if alone:
        print_table("Start, restart, memory, crowd", BARE_HEADS, alone)
    return int(any(line[-1].startswith("FAILED") for line in (*lines, *alone)))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench server", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows and pairs: a look only")
    parser.add_argument("--pairs", type=int, help="how many pairs (7, at least; 3 with --quick)")
    parser.add_argument("--rows", type=int, help="rows of the bulk data")
    parser.add_argument("--only", nargs="*", default=[], help="lines whose name holds a word")
    parser.add_argument(
        "--restart-gb", type=float, help="how long a log is opened again (1; 0.1 with --quick)"
    )
    parser.add_argument(
        "--load-s", type=float, help="how long the load lasts (600 seconds; 10 with --quick)"
    )
    options = parser.parse_args(arguments)
    options.load_s = options.load_s or (10 if options.quick else 600)
    options.pairs = options.pairs or (3 if options.quick else 7)
    options.rows = options.rows or (200_000 if options.quick else 1_000_000)
    options.restart_gb = options.restart_gb or (0.1 if options.quick else 1.0)
    return options


def _beside_the_real_one(options: argparse.Namespace) -> list[Sequence[str]]:
    cases = [each for each in cases_of(options) if each.is_selected(options.only)]
    if not cases:
        return []
    with ExitStack() as stack:
        bed = _bed(stack, options.rows)
        lines: list[Sequence[str]] = []
        for case in cases:
            if (case.client, "python") in bed.sides:
                print(f"  {case.what} ({case.client}): ", end="", file=sys.stderr, flush=True)
                lines.append(_line(case, bed, pairs=options.pairs))
                print("; ".join(filter(None, lines[-1][2:])), file=sys.stderr, flush=True)
        return lines


def _bed(stack: ExitStack, rows: int) -> Environment:
    scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="fluss-bench-"))
    servers = {
        "python": stack.enter_context(LocalCluster(Path(scratch), durability="process")),
        "java": stack.enter_context(LocalCluster(kind="real")),
    }
    clients = {"ours": (sys.executable, "fluss.aio")}
    try:
        clients["pyfluss"] = (str(peer_python()), "fluss")
    except PeerUnavailableError as error:
        print(f"bench: without pyfluss: {error}", file=sys.stderr)
    database = f"bench_{uuid.uuid4().hex[:8]}"
    sides = {}
    for client, (python, module) in clients.items():
        for name, server in servers.items():
            side = Side(python, module, bootstrap=server.bootstrap_servers, database=database)
            stack.callback(side.close)
            sides[client, name] = side
    return Environment(
        sides=sides,
        tables={server: _filled(sides["ours", server], rows) for server in SERVERS},
        pids={name: server.pid for name, server in servers.items()},
    )


def _filled(side: Side, rows: int) -> dict[str, str]:
    """Fill the tables of one server."""
    tables = {
        f"{codec} {size}": side.ask("fill", rows=rows, batch_rows=size, codec=codec)["table"]
        for codec, size in FILLED_BATCHES
    }
    return tables | {"keyed": side.ask("fill_keys", rows=KEYS)["table"]}


def _line(case: ServerCase, bed: Environment, *, pairs: int) -> Sequence[str]:
    spent: dict[str, list[float]] = {server: [] for server in SERVERS}

    def taken(server: str) -> float:
        arguments = case.arguments_on(bed.tables[server])
        before = cpu_seconds(bed.pids[server])
        seconds = bed.sides[case.client, server].seconds(case.task, arguments)
        spent[server].append(cpu_seconds(bed.pids[server]) - before)
        return seconds

    try:
        taken("python"), taken("java")  # warm-up for both sides
        found = interleaved(lambda: taken("python"), lambda: taken("java"), pairs=pairs)
    except AnswerError as error:
        return (case.what, case.client, *[""] * (len(HEADS) - 3), f"FAILED: {error}")
    mine = statistics.median(found.ours)
    return (
        case.what,
        case.client,
        case.figure(mine),
        case.figure(statistics.median(found.peer)),
        f"{found.ratio:.2f}",
        found.spread,
        _beside(sum(spent["python"]), sum(spent["java"])),
        case.bar,
        case.verdict(mine, found.ratio),
    )


def _beside(ours: float, real: float) -> str:
    return f"{ours / real:.2f}" if ours and real else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
