"""Completes the names of tables in IPython and notebooks: `session.table("sh`, `scan_fluss("sh`.

The session that is asked is the one whose method is called, or else one among the variables of the
user. Nothing is completed where no session is open, or where the servers do not answer within a
moment: a key press must not wait.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fluss.admin.admin import admin_of
from fluss.admin.name_lists import NAMES_MAX, Ask, table_names
from fluss.errors import FlussError
from fluss.session.show import within_moments

if TYPE_CHECKING:
    from fluss.session.session import Session

# A name that is being written: the first argument of a method of a session, or of a function.
_METHODS: Final = "table|append|upsert|update|delete|ensure_table|alter_table|drop_table"
_FUNCTIONS: Final = "scan_fluss|read_fluss|open_scan|open_table|fluss"
_BEGUN: Final = re.compile(
    rf"(?:\b(?P<owner>\w+)\.(?:{_METHODS})|\b(?:{_FUNCTIONS}))\(\s*[\"'](?P<begun>[\w.]*)$"
)


def register_in_ipython() -> None:
    """Have IPython complete names of tables, if this runs in IPython. Idempotent."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    completer = getattr(shell, "Completer", None)
    matchers = getattr(completer, "custom_matchers", None)
    if shell is None or matchers is None:
        return
    if any(getattr(each, "is_of_fluss", False) for each in matchers):
        return
    matchers.append(_matcher(shell))


def names_begun(text: str, variables: Mapping[str, Any]) -> list[str]:
    """Return the names of tables that complete the end of a line.

    Args:
        text: The line up to the cursor.
        variables: The variables of the user.
    """
    found = _BEGUN.search(text)
    if found is None:
        return []
    session = _session_of(found["owner"], variables)
    if session is None:
        return []
    begun = found["begun"]
    ask = table_names(begun) if "." in begun else _short_and_whole(session, begun)
    try:
        connection = session._open_connection()  # noqa: SLF001 - the same room
        return within_moments(lambda: connection.engine.run(ask(admin_of(connection))))
    except FlussError:
        return []


def _session_of(owner: str | None, variables: Mapping[str, Any]) -> Session | None:
    from fluss.session.session import Session

    if owner is not None and owner != "pl":
        found = variables.get(owner)
        return found if isinstance(found, Session) else None
    opened = (each for each in variables.values() if isinstance(each, Session))
    return next((each for each in opened if not each.is_closed), None)


def _short_and_whole(session: Session, begun: str) -> Ask:
    """Ask for names in the database of the session's URL, and for those with a database."""

    async def ask(admin: Any) -> list[str]:
        short: list[str] = []
        if session.database is not None:
            listed = sorted(await admin.list_tables(session.database))
            short = [name for name in listed if name.startswith(begun)]
        return [*short, *await table_names(begun)(admin)][:NAMES_MAX]

    return ask


def _matcher(shell: Any) -> Any:
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher(identifier="fluss.tables")  # type: ignore[untyped-decorator] # IPython's
    def matcher(context: Any) -> Any:
        names = names_begun(context.text_until_cursor, shell.user_ns)
        # Names of files would be offered beside them, because a text has been begun.
        return {
            "completions": [SimpleCompletion(name, type="table") for name in names],
            "suppress": bool(names),
        }

    matcher.is_of_fluss = True
    return matcher
