"""`python -m fluss_server.child_process DIRECTORY`: the server as a child of `LocalCluster`.

The parent sends the settings as one line of JSON on standard input. The server stops when standard
input closes, which happens when the parent ends, however it ends; then it also removes a temporary
directory. It prints one line when it is ready. The command
for people is `fluss server` (`server_command`); it takes longer to start.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from fluss.errors import FlussError
from fluss_server.lake.lake_settings import LakeLocation
from fluss_server.server import serve
from fluss_server.server_config import Durability, ServerConfig
from fluss_server.temporary_folder import remove_folder


def main() -> int:
    """Serve until standard input closes."""
    logging.basicConfig(
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    settings = json.loads(sys.stdin.buffer.readline())
    try:
        config = ServerConfig(
            directory=Path(sys.argv[1]),
            port=settings["port"],
            users=settings["users"],
            sasl_port=settings["sasl_port"],
            super_users=settings["super_users"],
            durability=Durability(settings["durability"]),
            lake=LakeLocation.of(settings["lake"]),
            kv_snapshot_interval_ms=settings["kv_snapshot_interval_ms"],
        )
        serve(config, ready=lambda _: print("ready", flush=True), lifeline=sys.stdin.buffer)  # noqa: T201 - the parent waits for it
    except (FlussError, ValueError) as error:
        print(f"fluss server: {error}", file=sys.stderr)  # noqa: T201 - it goes into the log
        return 1
    if settings["is_temporary"]:
        # The parent may have been killed, and removes nothing then.
        remove_folder(config.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
