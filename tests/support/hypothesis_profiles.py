"""Three Hypothesis profiles, chosen with FLUSS_TEST_PROFILE.

`quick` is the default: few examples, the same ones in every run, so that a failing test fails
again. `brief` is for `./dev test quick`: the same, with a quarter of the examples. `exhaustive`
takes hours and uses new examples, for a changed codec. Deadlines are off, because machines may be
busy.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_MACHINES = (HealthCheck.too_slow, HealthCheck.data_too_large)

for _name, _examples in (("quick", 40), ("brief", 10)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=_SLOW_MACHINES,
    )
settings.register_profile(
    "exhaustive",
    max_examples=2_000,
    deadline=None,
    suppress_health_check=_SLOW_MACHINES,
    print_blob=True,
)
settings.load_profile(os.environ.get("FLUSS_TEST_PROFILE", "quick"))

# Tests with their own loops read whether this is the long run.
IS_EXHAUSTIVE = os.environ.get("FLUSS_TEST_PROFILE") == "exhaustive"
