"""What every test may use. Fixtures live by theme in tests/support/fix_*.py and are listed here."""

from __future__ import annotations

pytest_plugins = [
    "tests.support.fix_cluster",
    "tests.support.fix_doors",
    "tests.support.fix_oracle",
    "tests.support.fix_wire",
    "tests.support.fix_writing",
    "tests.support.profiles",
]
