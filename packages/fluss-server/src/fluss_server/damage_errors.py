"""The errors for a data directory that is not what the server left: which files, and the ways out.

Where something is missing, shortened, damaged or from another moment, a server must neither serve
what is left as if it were all, nor write over it. Before the server listens, such an error ends
the start; afterwards it is the answer to requests for the bucket that it is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError, LocalServerError

_SHOWN_MAX: Final = 8
REPAIR: Final = "fluss server --repair"


class DamagedDataError(LocalServerError):
    """Files of a data directory contradict each other, or are missing; nothing was changed."""

    # Not a code of a storage error: clients send those requests again until their deadline.
    default_code = int(ErrorCode.UNKNOWN_SERVER_ERROR)


def damaged(
    path: Path, why: str, *, hint: str | None = None, at: int | None = None
) -> DamagedDataError:
    """The error for one file or directory.

    Args:
        path: What is damaged or missing.
        why: What is wrong with it, as a clause that follows its name.
        hint: What helps, where that is not a backup or the repair.
        at: The byte at which it is wrong.
    """
    return DamagedDataError(
        f"{path} {why}. Nothing was changed.",
        hint=WAYS_OUT if hint is None else hint,
        path=str(path),
        why=why,
        at=at,
    )


def removed(path: Path, consequence: str) -> DamagedDataError:
    """The error for a file that was taken from a server while it runs.

    Args:
        path: The file.
        consequence: What the server does not do any more, as a clause.
    """
    return DamagedDataError(
        f"{path} was removed or replaced while the server runs, so {consequence}.",
        hint="Stop the server and restore the whole data directory from a backup.",
        path=str(path),
    )


def again(error: FlussError) -> FlussError:
    """The same error to be raised once more; one that is raised twice keeps both tracebacks."""
    return type(error)(error.message, error.error_code, hint=error.hint, **error.facts)


def refuse_all(found: Sequence[FlussError]) -> None:
    """Raise one error for all that a check found, if it found anything.

    Raises:
        DamagedDataError: It did.
    """
    if not found:
        return
    if len(found) == 1:
        raise found[0]
    shown = [each.message.removesuffix(" Nothing was changed.") for each in found[:_SHOWN_MAX]]
    if len(found) > _SHOWN_MAX:
        shown.append(f"And {len(found) - _SHOWN_MAX} more.")
    raise DamagedDataError(
        "\n  ".join([f"{len(found)} things in the data directory are damaged or missing:", *shown])
        + "\nNothing was changed.",
        hint=found[0].hint,
        paths=[each.facts.get("path") for each in found],
    )


WAYS_OUT: Final = (
    "Restore the whole data directory from a backup, or start once with --repair "
    f"({REPAIR}): it serves what is left, keeps the rest aside and reports what was given up."
)
