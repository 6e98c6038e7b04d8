"""The passwords of users: those given at the start of the server, and those of a setting.

The setting `security.sasl.plain.credentials` of Fluss 1.0 (`name:password,name:password`) adds
users while the server runs, and changes the passwords of existing users. It is a map: entries are
appended, and removed by name. Passwords are never shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from fluss.error_codes import ErrorCode
from fluss.errors import FlussError
from fluss_server.catalog.catalog import Catalog
from fluss_server.server_errors import request_error

KEY: Final = "security.sasl.plain.credentials"
_SETTING: Final = "credentials"
_HIDDEN: Final = "******"
_ENTRIES_MAX: Final = 10_000


class UserPasswords(Mapping[str, str]):
    """The password of each user, as of now.

    Args:
        catalog: Stores the setting.
        named: The users given at the start of the server.
    """

    def __init__(self, catalog: Catalog, named: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._named = named
        text = catalog.setting(_SETTING)
        self._added: dict[str, str] | None = None if text is None else json.loads(text)
        self._all: dict[str, str] = {**named, **(self._added or {})}

    def __getitem__(self, name: str) -> str:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def setting(self) -> dict[str, str] | None:
        """The value of the setting; None if it is not set."""
        return None if self._added is None else dict(self._added)

    def store(self, setting: Mapping[str, str] | None) -> None:
        """Change the setting; None unsets it."""
        self._added = None if setting is None else dict(setting)
        self._all = {**self._named, **(self._added or {})}
        self._catalog.put_setting(_SETTING, json.dumps(self._added))


def shown(setting: Mapping[str, str]) -> str:
    """The setting as text, without the passwords."""
    return ",".join(f"{name}:{_HIDDEN}" for name in setting)


def read_entries(text: str) -> dict[str, str]:
    """Read `name:password,name:password`.

    Raises:
        FlussError: CONFIG_EXCEPTION: an entry is not a pair, or a name occurs twice.
    """
    entries: dict[str, str] = {}
    for item in text.split(",") if text else ():
        name, colon, password = item.partition(":")
        if not colon or not name or not password or ":" in password:
            # The item may be a password.
            raise _refused("An entry is not a pair of a name and a password, with a colon between.")
        if name in entries:
            raise _doubled(name)
        entries[name] = password
    return entries


def with_entries(setting: Mapping[str, str], text: str) -> dict[str, str]:
    """Return the setting with more entries.

    Raises:
        FlussError: CONFIG_EXCEPTION: a name exists already, or the text has no entry.
    """
    added = read_entries(text)
    if not added:
        raise _refused("There is no entry to append.")
    for name in added:
        if name in setting:
            raise _doubled(name)
    if len(setting) + len(added) > _ENTRIES_MAX:
        raise _refused(f"There are at most {_ENTRIES_MAX} entries.")
    return {**setting, **added}


def without_entries(setting: Mapping[str, str], text: str) -> dict[str, str] | None:
    """Return the setting without the named entries; None if the last entry was removed."""
    removed = read_entries(text)
    left = {name: password for name, password in setting.items() if name not in removed}
    return left if left or not setting else None


def _doubled(name: str) -> FlussError:
    return _refused(f"{KEY} must not contain duplicate map entry keys: '{name}'.")


def _refused(what: str) -> FlussError:
    return request_error(
        ErrorCode.CONFIG_EXCEPTION, what, hint=f"{KEY} is a text like 'ali:secret,bo:other'."
    )
