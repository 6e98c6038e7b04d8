"""`python -m fluss_server.child_process DIRECTORY`: the server as a child of `LocalCluster`.

Its orders come as one line of JSON on the standard input, which ends with whoever started it; then
the server ends, too. It says one line when it is ready. For people there is `fluss server`
(`command`), which takes longer to start because it speaks to people.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from fluss.errors import FlussError
from fluss_server.server import serve
from fluss_server.server_config import Durability, ServerConfig


def main() -> int:
    """Serve until the input ends."""
    logging.basicConfig(
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    told = json.loads(sys.stdin.buffer.readline())
    try:
        config = ServerConfig(
            directory=Path(sys.argv[1]),
            port=told["port"],
            users=told["users"],
            sasl_port=told["sasl_port"],
            durability=Durability(told["durability"]),
        )
        serve(config, ready=lambda _: print("ready", flush=True), lifeline=sys.stdin.buffer)  # noqa: T201 - what the parent waits for
    except (FlussError, ValueError) as error:
        print(f"fluss server: {error}", file=sys.stderr)  # noqa: T201 - it goes into the log
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
