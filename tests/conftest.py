"""What every test may use. Fixtures live by theme in tests/support/fix_*.py and are listed here."""

from __future__ import annotations

import signal

# A run that was started in the background ignores Ctrl-C, and so would the programs it tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.support.servers.fix_cluster",
    "tests.support.servers.fix_dialects",
    "tests.support.differential.fix_oracle",
    "tests.support.fix_order",
    "tests.support.servers.fix_tables",
    "tests.support.servers.fix_wire",
    "tests.support.servers.fix_writing",
    "tests.support.profiles",
]
