"""Databases: the descriptor of a new one, and the facts of an existing one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fluss.model.json_values import Json, as_text, as_text_map, json_text, parse_json
from fluss.model.names import check_text
from fluss.model.string_map import StringMap

DATABASE_VERSION = 1


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DatabaseDescriptor:
    """The descriptor of a database.

    Args:
        comment: A description for users.
        custom_properties: The user's own properties, stored unchanged.
    """

    comment: str | None
    custom_properties: StringMap

    def __init__(
        self, comment: str | None = None, custom_properties: Mapping[str, Any] | None = None
    ) -> None:
        checked = None if comment is None else check_text("database comment", comment)
        object.__setattr__(self, "comment", checked)
        properties = StringMap(custom_properties, what="custom properties")
        object.__setattr__(self, "custom_properties", properties)

    @staticmethod
    def builder() -> DatabaseDescriptorBuilder:
        """Return a builder: `.comment(text).custom_property(key, value).build()`."""
        return DatabaseDescriptorBuilder()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the database that Fluss's JSON describes.

        Raises:
            CorruptDataError: When the text is not what Fluss writes.
        """
        node = parse_json(text, "database")
        comment = None if node.get("comment") is None else as_text(node, "comment", "database")
        return cls(comment, as_text_map(node, "custom_properties", "database"))

    def to_json(self) -> str:
        """Return the database in Fluss's JSON."""
        written: Json = {"version": DATABASE_VERSION}
        if self.comment is not None:
            written["comment"] = self.comment
        written["custom_properties"] = dict(self.custom_properties)
        return json_text(written)

    def get_custom_properties(self) -> dict[str, str]:
        """Return the user's own properties."""
        return dict(self.custom_properties)

    def __repr__(self) -> str:
        return (
            f"DatabaseDescriptor(comment={self.comment!r}, "
            f"custom_properties={self.custom_properties!r})"
        )


class CommentedBuilder:
    """Collects what databases and tables have in common; nothing is checked before `build`."""

    def __init__(self) -> None:
        self._comment: str | None = None
        self._custom_properties: dict[str, Any] = {}

    def comment(self, comment: str | None) -> Self:
        """Set the comment."""
        self._comment = comment
        return self

    def custom_property(self, key: str, value: Any) -> Self:
        """Set a property of your own."""
        self._custom_properties[key] = value
        return self

    def custom_properties(self, properties: Mapping[str, Any]) -> Self:
        """Set several properties of your own."""
        self._custom_properties.update(properties)
        return self


class DatabaseDescriptorBuilder(CommentedBuilder):
    """Collects the facts about a database."""

    def build(self) -> DatabaseDescriptor:
        """Return the descriptor."""
        return DatabaseDescriptor(self._comment, self._custom_properties)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DatabaseInfo:
    """A database that exists. Times are milliseconds since 1970."""

    database_name: str
    database_descriptor: DatabaseDescriptor
    created_time: int
    modified_time: int

    def get_database_descriptor(self) -> DatabaseDescriptor:
        """Comment and properties."""
        return self.database_descriptor

    def __repr__(self) -> str:
        return (
            f"DatabaseInfo(database_name={self.database_name!r}, "
            f"created_time={self.created_time}, modified_time={self.modified_time})"
        )


@dataclass(frozen=True, slots=True)
class DatabaseSummary:
    """A database in a list.

    Attributes:
        database_name: Its name.
        created_time: When it was created, in milliseconds since 1970; None where not known.
        table_count: How many tables it has; None where not known.
    """

    database_name: str
    created_time: int | None
    table_count: int | None
