"""How fast are we beside pyfluss 1.0.0? Both sides in turns, on the same real server.

Each client runs in an environment and a process of its own and gets the same program
(`_peer_tasks`); who goes first changes from pair to pair. Figures are medians; "ours / peer" says
how many times as fast as the peer we were, as the median over the pairs, with the worst and the
best pair. One-sided figures move with the machine; ratios hardly do. "CPU" is the processor time
the client took, ours divided by the peer's.

    ./dev bench peer [--quick] [--pairs N] [--only WORD ...]

The server is the one that FLUSS_BOOTSTRAP_SERVERS names, or one started for the run. Without the
peer (no wheel for this Python, no network) our figures stand alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from benchmarks._measure import Pairs, interleaved, print_table
from benchmarks._peer_imports import import_lines
from fluss_server.java.cluster import JavaCluster
from tools.peer import PeerUnavailableError, peer_environment, peer_python

ROOT = Path(__file__).resolve().parent.parent
ANSWER_TIMEOUT_S = 180.0
KEYS = 10_000
LOOKUPS = 10_000
PEER_LOOKUPS = 50  # the peer's 10 000 would take a quarter of an hour each time
HEADS = ("what", "ours", "peer", "ours / peer", "spread", "CPU", "target", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of the table.

    Args:
        what: Its name.
        task: What runs, of `_peer_tasks`.
        arguments: With what.
        rows: How many rows it moves, when the figure is a rate.
        ratio_min: How many times as fast as the peer we shall be.
        seconds_max: How long we may take.
        peer_arguments: What the peer gets instead, where the whole task would take it too long.
        peer_factor: By how much its time is multiplied then.
    """

    what: str
    task: str
    arguments: Mapping[str, Any]
    rows: int = 0
    ratio_min: float | None = None
    seconds_max: float | None = None
    peer_arguments: Mapping[str, Any] = field(default_factory=dict)
    peer_factor: float = 1.0


class AnswerError(Exception):
    """A side did not do what it was asked for."""


class Side:
    """One client in its own process."""

    def __init__(self, python: str, module: str, *, bootstrap: str, database: str) -> None:
        self.module = module
        self.cpu: list[float] = []
        environment = {
            **peer_environment(),
            "FLUSS_UNDER_TEST": module,
            "FLUSS_BOOTSTRAP_SERVERS": bootstrap,
            "FLUSS_BENCH_DATABASE": database,
        }
        self._worker = subprocess.Popen(
            [python, "-m", "benchmarks._peer_worker"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._asked = cast("IO[str]", self._worker.stdin)
        self._answers = cast("IO[str]", self._worker.stdout)

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._worker.poll() is None

    def ask(self, task: str, **arguments: Any) -> dict[str, Any]:
        """Let it do a task; a side that does not answer is ended."""
        clock = threading.Timer(ANSWER_TIMEOUT_S, self._worker.kill)
        clock.start()
        try:
            self._asked.write(json.dumps({"task": task, "arguments": arguments}) + "\n")
            self._asked.flush()
            line = self._answers.readline()
        except BrokenPipeError:
            line = ""
        finally:
            clock.cancel()
        if not line:
            raise AnswerError(f"{self.module} gave no answer to {task}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise AnswerError(f"{self.module}, {task}: {answer['error']}")
        return answer

    def seconds(self, task: str, arguments: Mapping[str, Any], factor: float = 1.0) -> float:
        """How long a task took; its processor time is kept in `cpu`."""
        answer = self.ask(task, **arguments)
        self.cpu.append(answer["cpu"] * factor)
        return float(answer["seconds"]) * factor

    def close(self) -> None:
        """End the process."""
        with suppress(BrokenPipeError):
            self._asked.close()
        try:
            self._worker.wait(10)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code is 1 when a side failed, not when a target was missed."""
    options = _options(arguments)
    lines: list[Sequence[str]] = []
    with _server() as bootstrap, ExitStack() as stack:
        database = f"bench_{uuid.uuid4().hex[:8]}"
        ours, peer = _sides(stack, bootstrap=bootstrap, database=database)
        stack.callback(_drop_database, (ours, peer))
        filled = _filled(peer or ours, rows=options.rows)
        for case in _cases(options, filled):
            if not options.only or any(word in case.what for word in options.only):
                print(f"  {case.what} ...", file=sys.stderr, flush=True)
                lines.append(_line(case, ours, peer, pairs=options.pairs))
        if not options.only:
            lines += import_lines(None if peer is None else peer_python(), pairs=options.pairs)
    title = f"Beside pyfluss 1.0.0: {options.rows:,} rows x 6 columns, {options.pairs} pairs"
    print_table(title, HEADS, lines)
    print(f"* extrapolated from {PEER_LOOKUPS} lookups\n")
    return int(any(line[-1].startswith("FAILED") for line in lines))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench peer", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and pairs: a look only")
    parser.add_argument("--pairs", type=int, help="how many pairs (7, at least; 3 with --quick)")
    parser.add_argument("--rows", type=int, help="rows of the bulk data")
    parser.add_argument("--only", nargs="*", default=[], help="lines whose name holds a word")
    options = parser.parse_args(arguments)
    options.pairs = options.pairs or (3 if options.quick else 7)
    options.rows = options.rows or (200_000 if options.quick else 2_000_000)
    options.row_count = min(options.rows, 20_000 if options.quick else 100_000)
    return options


@contextmanager
def _server() -> Iterator[str]:
    named = os.environ.get("FLUSS_BOOTSTRAP_SERVERS")
    if named:
        yield named
        return
    with JavaCluster() as cluster:
        yield cluster.bootstrap_servers


def _sides(stack: ExitStack, *, bootstrap: str, database: str) -> tuple[Side, Side | None]:
    ours = Side(sys.executable, "fluss.aio", bootstrap=bootstrap, database=database)
    stack.callback(ours.close)
    try:
        python = str(peer_python())
    except PeerUnavailableError as error:
        print(f"bench: our figures stand alone: {error}", file=sys.stderr)
        return ours, None
    peer = Side(python, "fluss", bootstrap=bootstrap, database=database)
    stack.callback(peer.close)
    return ours, peer


def _filled(side: Side, *, rows: int) -> dict[str, str]:
    """The tables that both sides read; one side writes them."""
    found = {
        f"{codec} {batch_rows}": side.ask("fill", rows=rows, batch_rows=batch_rows, codec=codec)
        for codec in ("ZSTD", "NONE")
        for batch_rows in (100_000, 10_000)
    }
    keyed = side.ask("fill_keyed", rows=KEYS)
    return {name: answer["table"] for name, answer in found.items()} | keyed


def _cases(options: argparse.Namespace, tables: Mapping[str, str]) -> list[Case]:
    """What is asked, with the targets of the project; where it set none, those of the study."""
    return [*_bulk(options, tables), *_rows(options, tables), *_latencies(options, tables)]


def _bulk(options: argparse.Namespace, tables: Mapping[str, str]) -> list[Case]:
    found = []
    rows = options.rows
    for codec in ("ZSTD", "NONE"):
        for size in (100_000, 10_000):
            text, table = f"{codec}, {size // 1000}k batches", tables[f"{codec} {size}"]
            write = {"rows": rows, "batch_rows": size, "codec": codec}
            read = {"table": table, "rows": rows}
            whats: tuple[tuple[str, str, dict[str, Any], float], ...] = (
                (f"write Arrow, {text}", "write_arrow", write, 0.95),
                (f"to_arrow, {text}", "to_arrow", read, 0.95),
                (f"to_arrow, 2 columns, {text}", "to_arrow", read | {"projected": True}, 0.95),
            )
            if codec == "ZSTD":
                whats += (
                    (f"to_pandas, {text}", "to_pandas", read, 0.95),
                    (f"to_arrow_batch_reader, {text}", "batch_reader", read, 0.95),
                    (f"poll_arrow, {text}", "poll_arrow", read, 0.95),
                )
            found += [
                Case(what=what, task=task, arguments=given, rows=rows, ratio_min=ratio)
                for what, task, given, ratio in whats
            ]
    return found


def _rows(options: argparse.Namespace, tables: Mapping[str, str]) -> list[Case]:
    rows, polled = options.row_count, min(options.rows, 4 * options.row_count)
    poll = {"table": tables["ZSTD 10000"], "rows": polled}
    counted, looked = poll | {"look": False}, poll | {"look": True}
    given = {"rows": rows}
    return [
        Case(what="poll(), counted", task="poll", arguments=counted, rows=polled, ratio_min=0.8),
        Case(what="poll(), rows read", task="poll", arguments=looked, rows=polled, ratio_min=0.8),
        Case(
            what="append(dict), flush",
            task="append_rows",
            arguments=given,
            rows=rows,
            ratio_min=0.8,
        ),
        Case(
            what="upsert(dict), flush",
            task="upsert_rows",
            arguments=given,
            rows=rows,
            ratio_min=0.7,
        ),
    ]


def _latencies(options: argparse.Namespace, tables: Mapping[str, str]) -> list[Case]:
    keyed = {"table": tables["table"], "keys": KEYS}
    many = 50 if options.quick else 200
    return [
        Case(
            what="append().wait()",
            task="ack",
            arguments={"waits": True, "most": many},
            seconds_max=5e-3,
        ),
        Case(
            what="append, flush",
            task="ack",
            arguments={"waits": False, "most": many},
            seconds_max=5e-3,
        ),
        Case(
            what="append until a reader has it",
            task="tail",
            arguments={"samples": 5, "pause_s": 0.05},
            seconds_max=30e-3,
        ),
        Case(
            what="lookup",
            task="lookups",
            arguments={**keyed, "most": 4 * many},
            peer_arguments={**keyed, "most": many},
            seconds_max=0.5e-3,
        ),
        Case(
            what=f"{LOOKUPS:,} lookups at once",
            task="gathered",
            arguments={**keyed, "count": LOOKUPS},
            seconds_max=1.0,
            peer_arguments={**keyed, "count": PEER_LOOKUPS},
            peer_factor=LOOKUPS / PEER_LOOKUPS,
        ),
        Case(
            what="prefix lookup of 20 rows",
            task="prefix_lookups",
            arguments={"table": tables["prefixed"], "most": many},
            seconds_max=1e-3,
        ),
        Case(what="connect", task="connects", arguments={"most": 10}, seconds_max=5e-3),
        Case(
            what="connect to first rows",
            task="connects",
            arguments={"most": 10, "table": tables["ZSTD 10000"]},
            seconds_max=12e-3,
        ),
    ]


# --- one line of the table ------------------------------------------------------------------------


def _line(case: Case, ours: Side, peer: Side | None, *, pairs: int) -> Sequence[str]:
    try:
        found = _measured(case, ours, peer, pairs=pairs)
    except AnswerError as error:
        return (case.what, *[""] * (len(HEADS) - 2), f"FAILED: {error}")
    mine = statistics.median(found.ours)
    if peer is None:
        return (case.what, _figure(case, mine), "", "", "", "", _target(case), _verdict(case, mine))
    theirs = statistics.median(found.peer)
    mark = " *" if case.peer_factor != 1 else ""
    cpu = statistics.median(ours.cpu) / max(statistics.median(peer.cpu), 1e-9)
    return (
        case.what,
        _figure(case, mine),
        _figure(case, theirs) + mark,
        f"{found.ratio:.2f}",
        found.spread,
        f"{cpu:.2f}",
        _target(case),
        _verdict(case, mine, found.ratio),
    )


def _measured(case: Case, ours: Side, peer: Side | None, *, pairs: int) -> Pairs:
    def mine() -> float:
        return ours.seconds(case.task, case.arguments)

    def theirs() -> float:
        if peer is None:
            return 1.0
        given = case.peer_arguments or case.arguments
        return peer.seconds(case.task, given, case.peer_factor)

    mine(), theirs()  # neither side pays for being first
    for side in (ours, peer):
        if side is not None:
            side.cpu.clear()
    return interleaved(mine, theirs, pairs=pairs)


def _figure(case: Case, seconds: float) -> str:
    if case.rows:
        return f"{case.rows / seconds / 1e6:.2f} M rows/s"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def _target(case: Case) -> str:
    if case.ratio_min is not None:
        return f">= {case.ratio_min:.2f}x"
    if case.seconds_max is not None:
        return f"< {_figure(case, case.seconds_max)}"
    return ""


def _verdict(case: Case, mine: float, ratio: float | None = None) -> str:
    slow = case.seconds_max is not None and mine >= case.seconds_max
    behind = case.ratio_min is not None and ratio is not None and ratio < case.ratio_min
    return "MISSED" if slow or behind else ""


def _drop_database(sides: Sequence[Side | None]) -> None:
    for side in sides:
        if side is not None and side.is_alive:
            side.ask("drop_database")
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
