"""One side of `peer.py` or `server.py`: runs tasks on the client that FLUSS_UNDER_TEST names.

That is `fluss` in pyfluss's environment and `fluss.aio` in ours; nothing else differs. A task is
one line of JSON on standard input, and its result one on standard output; all other output goes to
standard error.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
import traceback
from typing import Any

from benchmarks import _peer_tasks, _server_tasks
from benchmarks._peer_bench import Bench

TASKS = {**_peer_tasks.TASKS, **_server_tasks.TASKS}


def main() -> None:
    """Run tasks until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    fluss = importlib.import_module(os.environ["FLUSS_UNDER_TEST"])
    bench = Bench(
        fluss,
        bootstrap=os.environ["FLUSS_BOOTSTRAP_SERVERS"],
        database=os.environ["FLUSS_BENCH_DATABASE"],
    )
    with asyncio.Runner() as runner:
        runner.run(bench.open())
        for line in sys.stdin:
            answers.write(json.dumps(_answer(runner, bench, json.loads(line))) + "\n")
            answers.flush()
        runner.run(_close(bench))


def _answer(runner: asyncio.Runner, bench: Bench, asked: dict[str, Any]) -> dict[str, Any]:
    gc.collect()
    try:
        return runner.run(_task(bench, asked))
    except Exception as error:  # noqa: BLE001 - whatever it is, the table shall say so
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


async def _task(bench: Bench, asked: dict[str, Any]) -> dict[str, Any]:
    return await TASKS[asked["task"]](bench, **asked["arguments"])


async def _close(bench: Bench) -> None:
    await bench.conn.close()


if __name__ == "__main__":
    main()
