"""Our speed compared with pyfluss 1.0.0: both sides alternate on the same real server.

Each client runs in its own environment and process and gets the same program (`_peer_tasks`); the
order alternates from pair to pair. Figures are medians; "ours / peer" is our speed relative to the
peer's, as the median over the pairs, with the worst and the best pair. Absolute figures vary with
the machine; ratios hardly do. "CPU" is the processor time of the client, ours divided by the
peer's.

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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, cast

from benchmarks._measure import Pairs, cluster, interleaved, print_table
from benchmarks._peer_cases import KEYS, PEER_LOOKUPS, WIDE_SHARE, Case, cases_of
from benchmarks._peer_imports import import_lines
from tools.peer import PeerUnavailableError, peer_environment, peer_python

ROOT = Path(__file__).resolve().parent.parent
ANSWER_TIMEOUT_S = 90.0
STALLS_MAX = 2  # per task; pyfluss sometimes stalls
HEADS = ("what", "ours", "peer", "ours / peer", "spread", "CPU", "target", "")


class AnswerError(Exception):
    """A side failed at its task."""


class StalledError(AnswerError):
    """A side did not finish in time, or ended."""


class Side:
    """One client in its own process; one that stalls is restarted."""

    def __init__(self, python: str, module: str, *, bootstrap: str, database: str) -> None:
        self.module = module
        self.cpu: list[float] = []
        self.stalls: list[str] = []
        self._command = [python, "-m", "benchmarks._peer_worker"]
        self._environment = {
            **peer_environment(),
            "FLUSS_UNDER_TEST": module,
            "FLUSS_BOOTSTRAP_SERVERS": bootstrap,
            "FLUSS_BENCH_DATABASE": database,
        }
        self._start()

    def ask(self, task: str, **arguments: Any) -> dict[str, Any]:
        """Run a task; retry once where the client stalled."""
        for _ in range(STALLS_MAX):
            try:
                return self._ask(task, arguments)
            except StalledError:
                self.stalls.append(task)
                self._worker.kill()
                self.close()
                self._start()
        return self._ask(task, arguments)

    def _start(self) -> None:
        self._worker = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._asked = cast("IO[str]", self._worker.stdin)
        self._answers = cast("IO[str]", self._worker.stdout)

    def _ask(self, task: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
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
            raise StalledError(f"{self.module} gave no answer to {task}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise AnswerError(f"{self.module}, {task}: {answer['error']}")
        return answer

    def seconds(self, task: str, arguments: Mapping[str, Any], factor: float = 1.0) -> float:
        """Return how long a task took; `cpu` records its processor time."""
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
    with cluster(os.environ.get("FLUSS_BOOTSTRAP_SERVERS")) as bootstrap, ExitStack() as stack:
        database = f"bench_{uuid.uuid4().hex[:8]}"
        filled = _filled(bootstrap, database, options)
        ours, peer = _sides(stack, bootstrap=bootstrap, database=database)
        stack.callback(_drop_database, (ours, peer))
        for case in cases_of(options, filled):
            if not options.only or any(word in case.what for word in options.only):
                print(f"  {case.what}: ", end="", file=sys.stderr, flush=True)
                lines.append(_line(case, ours, peer, pairs=options.pairs))
                print("; ".join(filter(None, lines[-1][1:])), file=sys.stderr, flush=True)
        if not options.only:
            lines += import_lines(None if peer is None else peer_python(), pairs=options.pairs)
    title = f"Beside pyfluss 1.0.0: {options.rows:,} rows x 6 columns, {options.pairs} pairs"
    print_table(title, HEADS, lines)
    print(f"* extrapolated from {PEER_LOOKUPS} lookups")
    for side in (ours, peer):
        if side is not None and side.stalls:
            print(f"{side.module} was restarted, without an answer to {', '.join(side.stalls)}")
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


def _filled(bootstrap: str, database: str, options: argparse.Namespace) -> dict[str, str]:
    """Fill the tables that both sides read, in a process that ends before they begin.

    A process that has written tables has memory that its reads use again, so neither side may write
    them: reading two columns took pyfluss 6.5 instead of 9.5 ms of processor time then.
    """
    side = _filler(bootstrap=bootstrap, database=database)
    try:
        return _filled_by(side, options)
    finally:
        side.close()


def _filler(*, bootstrap: str, database: str) -> Side:
    try:
        python, module = str(peer_python()), "fluss"
    except PeerUnavailableError:
        python, module = sys.executable, "fluss.aio"
    return Side(python, module, bootstrap=bootstrap, database=database)


def _filled_by(side: Side, options: argparse.Namespace) -> dict[str, str]:
    rows = options.rows
    found = {
        f"{codec} {batch_rows}": side.ask("fill", rows=rows, batch_rows=batch_rows, codec=codec)
        for codec in ("ZSTD", "NONE")
        for batch_rows in (100_000, 10_000)
    }
    found["nested"] = side.ask("fill_rows", rows=options.row_count // WIDE_SHARE, shape="nested")
    keyed = side.ask("fill_keyed", rows=KEYS)
    return {name: answer["table"] for name, answer in found.items()} | keyed


# --- one line of the table ------------------------------------------------------------------------


def _line(case: Case, ours: Side, peer: Side | None, *, pairs: int) -> Sequence[str]:
    try:
        found = _measured(case, ours, peer, pairs=pairs)
    except AnswerError as error:
        return (case.what, *[""] * (len(HEADS) - 2), f"FAILED: {error}")
    mine = statistics.median(found.ours)
    if peer is None:
        return (case.what, case.figure(mine), "", "", "", "", case.target, case.verdict(mine))
    theirs = statistics.median(found.peer)
    mark = " *" if case.peer_factor != 1 else ""
    cpu = statistics.median(ours.cpu) / max(statistics.median(peer.cpu), 1e-9)
    return (
        case.what,
        case.figure(mine),
        case.figure(theirs) + mark,
        f"{found.ratio:.2f}",
        found.spread,
        f"{cpu:.2f}",
        case.target,
        case.verdict(mine, found.ratio),
    )


def _measured(case: Case, ours: Side, peer: Side | None, *, pairs: int) -> Pairs:
    def mine() -> float:
        return ours.seconds(case.task, case.arguments)

    def theirs() -> float:
        if peer is None:
            return 1.0
        given = case.peer_arguments or case.arguments
        return peer.seconds(case.task, given, case.peer_factor)

    mine(), theirs()  # warm-up for both sides
    for side in (ours, peer):
        if side is not None:
            side.cpu.clear()
    return interleaved(mine, theirs, pairs=pairs)


def _drop_database(sides: Sequence[Side | None]) -> None:
    for side in sides:
        if side is not None:
            with suppress(AnswerError):
                side.ask("drop_database")
                return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
