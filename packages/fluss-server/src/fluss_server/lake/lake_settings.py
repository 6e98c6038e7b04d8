"""How a server's lake is described: what a user gives, what is kept, and what clients see.

Passwords are used, and neither kept nor shown: the catalog of the server has the settings without
them, and so has the description of each table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

TABLE_PREFIX: Final = "table.datalake."
# Java: `MetadataManager.SENSITIVE_TABLE_OPTIONS`.
_SECRET_WORDS: Final = ("password", "secret", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeLocation:
    """Where a lake is, as a user gives it.

    Args:
        url: The catalog; empty for the lake that the directory has, or else a new one in it.
        warehouse: Where the files of its tables are; None for a place beside the catalog.
        options: More settings of the catalog, such as `s3.endpoint`.
    """

    url: str = ""
    warehouse: str | None = None
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @classmethod
    def of(cls, given: Any) -> Self | None:
        """Return the lake of an argument, or of its JSON.

        Args:
            given: The URL of a catalog, True for one in the directory, a mapping of the fields
                of this class, or None.
        """
        match given:
            case None | False:
                return None
            case True:
                return cls()
            case cls():
                return given
            case Mapping():
                return cls(**given)
            case _:
                return cls(url=str(given))

    @property
    def fields(self) -> dict[str, Any]:
        """Its fields, for JSON."""
        return {"url": self.url, "warehouse": self.warehouse, "options": dict(self.options)}

    @property
    def sqlite_file(self) -> Path | None:
        """The file of a catalog in SQLite; None of another one, and of one in the directory."""
        scheme, _, rest = self.url.removeprefix("jdbc:").partition(":")
        named = rest.removeprefix("///").partition("?")[0]
        return Path(named).expanduser().absolute() if scheme == "sqlite" and named else None

    @property
    def is_open(self) -> bool:
        """Whether it names no catalog, so that any will do."""
        return not self.url and self.warehouse is None and not self.options


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that anybody may see."""
    return {
        key: value
        for key, value in settings.items()
        if not any(word in key.lower() for word in _SECRET_WORDS)
    }


def settings_of_tables(lake_format: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return what the descriptions of tables say about their lake."""
    prefix = f"{TABLE_PREFIX}{lake_format}."
    return {f"{prefix}{key}": value for key, value in without_secrets(settings).items()}


def settings_to_json(settings: Mapping[str, str]) -> str:
    """Return the text that is kept of a lake."""
    return json.dumps(without_secrets(settings), sort_keys=True)


def settings_from_json(text: str) -> dict[str, str]:
    """Return the settings that were kept."""
    return {str(key): str(value) for key, value in json.loads(text).items()}
