"""The settings of a server's lake: as the user gives, the server stores, and clients see them.

The server neither stores nor shows passwords: its catalog and the descriptions of tables hold the
settings without them.
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
    """The location of a lake, as the user gives it.

    Args:
        url: The URL of the catalog; empty for the lake of the directory, or for a new one in it.
        warehouse: Where the files of its tables are; None for a folder beside the catalog.
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
        """The file of a SQLite catalog; None for another catalog, and for one in the directory."""
        scheme, _, rest = self.url.removeprefix("jdbc:").partition(":")
        named = rest.removeprefix("///").partition("?")[0]
        return Path(named).expanduser().absolute() if scheme == "sqlite" and named else None

    @property
    def is_open(self) -> bool:
        """Whether the location is empty, so that any catalog fits it."""
        return not self.url and self.warehouse is None and not self.options


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without passwords and keys."""
    return {
        key: value
        for key, value in settings.items()
        if not any(word in key.lower() for word in _SECRET_WORDS)
    }


def settings_of_tables(lake_format: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that describe the lake in the descriptions of tables."""
    prefix = f"{TABLE_PREFIX}{lake_format}."
    return {f"{prefix}{key}": value for key, value in without_secrets(settings).items()}


def settings_to_json(settings: Mapping[str, str]) -> str:
    """Return the text of the settings for the catalog."""
    return json.dumps(without_secrets(settings), sort_keys=True)


def settings_from_json(text: str) -> dict[str, str]:
    """Return the settings of a stored text."""
    return {str(key): str(value) for key, value in json.loads(text).items()}
