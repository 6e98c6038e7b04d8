"""How to install what is missing: the one place that decides the sentence.

Our packages are on no package index yet, so a hint for one of them names the wheels that a checkout
makes. Most extras bring packages of other projects, which an index has: the hint names those, as
the metadata of the installed package do, and works wherever the package came from.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

FROM_A_CHECKOUT: Final = "run `./dev build` in a checkout of Fluss for Python, then: "
FROM_WHEELS: Final = "pip install --find-links dist {name}"
_EXTRA: Final = re.compile(r"\bextra\s*==\s*[\"']([^\"']+)[\"']")


def how_to_install(name: str) -> str:
    """Return what a user can do today to install a package of ours, or an extra of one.

    Args:
        name: `fluss-server`, or `fluss-core[cli]`.
    """
    distribution, _, extra = name.rstrip("]").partition("[")
    brought = sorted(_requirements(distribution, extra)) if extra else []
    if brought and not any(each.startswith("fluss-") for each in brought):
        return f"pip install {' '.join(shlex.quote(each) for each in brought)}"
    return f"{FROM_A_CHECKOUT}{FROM_WHEELS.format(name=shlex.quote(name))}"


def _requirements(distribution: str, extra: str) -> Iterator[str]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        declared = requires(distribution) or []
    except PackageNotFoundError:
        return
    for line in declared:
        requirement, _, condition = line.partition(";")
        found = _EXTRA.search(condition)
        if found is not None and found.group(1) == extra:
            yield requirement.strip()
