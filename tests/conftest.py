"""Lists the plugins with fixtures for all tests: tests/support/**/fix_*.py, one file per theme."""

from __future__ import annotations

import signal

# A run that was started in the background ignores Ctrl-C, and so would the programs that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.support.servers.fix_cluster",
    "tests.support.servers.fix_dialects",
    "tests.support.differential.fix_oracle",
    "tests.support.objects.fix_objects",
    "tests.support.fix_garbage",
    "tests.support.fix_native",
    "tests.support.fix_order",
    "tests.support.fix_processor_times",
    "tests.support.fix_reruns",
    "tests.support.fix_schedule",
    "tests.support.servers.fix_tables",
    "tests.support.servers.fix_wire",
    "tests.support.servers.fix_writing",
    "tests.support.hypothesis_profiles",
]
