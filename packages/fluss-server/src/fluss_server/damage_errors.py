"""Errors for a damaged data directory: which files are affected, and how to recover.

Where files are missing, shortened, damaged or from another moment, a server must neither serve the
rest as if it were complete, nor overwrite it. Before the server listens, such an error ends the
start; afterwards it is the response to requests for the affected bucket.
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
    """Return the error for one file or directory.

    Args:
        path: The damaged or missing file or directory.
        why: What is wrong with it, as a clause that follows its name.
        hint: The remedy, where it is neither a backup nor the repair.
        at: The byte position of the damage.
    """
    return DamagedDataError(
        f"{path} {why}. Nothing was changed.",
        hint=WAYS_OUT if hint is None else hint,
        path=str(path),
        why=why,
        at=at,
    )


def removed(path: Path, consequence: str) -> DamagedDataError:
    """Return the error for a file that was removed or replaced while the server runs.

    Args:
        path: The file.
        consequence: What the server no longer does, as a clause.
    """
    return DamagedDataError(
        f"{path} was removed or replaced while the server runs, so {consequence}.",
        hint="Stop the server and restore the whole data directory from a backup.",
        path=str(path),
    )


def fresh_copy(error: FlussError) -> FlussError:
    """Return a copy of an error to raise again, so that tracebacks do not accumulate on it."""
    return type(error)(error.message, error.error_code, hint=error.hint, **error.facts)


def raise_found(found: Sequence[FlussError]) -> None:
    """Raise one error for all problems that a check found; return if there is none.

    Raises:
        DamagedDataError: The check found a problem.
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
    f"({REPAIR}): it serves what is left, moves the rest aside and reports what was given up."
)
