"""What stands behind a table's name: `orders$changelog` its changes, `orders$binlog` its events.

Only the name is looked at; whether the table can be read so is the scan's business.
"""

from __future__ import annotations

import re
from typing import Final

from fluss.errors import InvalidNameError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.scan_options import Mode

_VIEW: Final = re.compile(r"\$(\w*)(?=\?|$)")
_VIEWS: Final = {"changelog": Mode.CHANGELOG, "binlog": Mode.BINLOG}


def without_view(name: str) -> tuple[str, str | None]:
    """The name of the table itself, and the mode of scan that its view asks for.

    Raises:
        InvalidNameError: There is no such view; the hint names the nearest.
    """
    found = _VIEW.search(name)
    if found is None:
        return name, None
    mode = _VIEWS.get(found.group(1).lower())
    if mode is None:
        known = [f"${each}" for each in _VIEWS]
        raise InvalidNameError(
            f"A table has no {found.group()!r}.",
            hint=did_you_mean(found.group(), known) or f"there are {' and '.join(known)}",
        )
    return name[: found.start()] + name[found.end() :], mode.value
