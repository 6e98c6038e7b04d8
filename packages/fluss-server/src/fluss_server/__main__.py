"""`python -m fluss_server`: the same as `fluss server`."""

from __future__ import annotations

from fluss_server.server_command import app

app(prog_name="fluss server")
