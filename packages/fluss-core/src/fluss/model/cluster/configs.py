"""The settings of a cluster: what they are, and how they are changed while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fluss.errors import InvalidValueError
from fluss.model.cluster.codes import NamedCode
from fluss.model.options.secrets import shown_value


class ConfigSource(StrEnum):
    """Where a value comes from."""

    DYNAMIC_SERVER_CONFIG = "DYNAMIC_SERVER_CONFIG"
    INITIAL_SERVER_CONFIG = "INITIAL_SERVER_CONFIG"

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting of the cluster.

    Attributes:
        key: Its name.
        value: Its value; servers write secrets as `******`.
        source: Whether it was changed while the cluster runs, or is from the servers' files.
    """

    key: str
    value: str | None
    source: ConfigSource | str

    @property
    def shown(self) -> str | None:
        """The value for people: `***` in place of a secret that a server has not hidden."""
        return None if self.value is None else shown_value(self.key, self.value)

    def __repr__(self) -> str:
        return f"ConfigEntry(key={self.key!r}, value={self.shown!r}, source={self.source!r})"


class AlterConfigOpType(NamedCode):
    """What happens to a setting."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


@dataclass(frozen=True, slots=True)
class AlterConfig:
    """A change of a setting: `AlterConfig.set(key, value)`, `.delete(key)`, `.append`, `.subtract`.

    Raises:
        InvalidValueError: A value is missing, or not needed.
    """

    key: str
    value: str | None
    op_type: AlterConfigOpType

    def __post_init__(self) -> None:
        object.__setattr__(self, "op_type", AlterConfigOpType.of(self.op_type))
        if not self.key:
            raise InvalidValueError("A setting has a name.")
        if (self.value is None) != (self.op_type is AlterConfigOpType.DELETE):
            raise InvalidValueError(
                f"{self.op_type} {self.key} is given "
                f"{'without a value' if self.value is None else 'with a value'}.",
                hint="DELETE takes no value, every other operation takes one.",
            )

    @staticmethod
    def set(key: str, value: str) -> AlterConfig:
        """Set a value."""
        return AlterConfig(key, value, AlterConfigOpType.SET)

    @staticmethod
    def delete(key: str) -> AlterConfig:
        """Return to the value of the servers' files."""
        return AlterConfig(key, None, AlterConfigOpType.DELETE)

    @staticmethod
    def append(key: str, value: str) -> AlterConfig:
        """Add an item to a list, or an entry `name:value` to a map."""
        return AlterConfig(key, value, AlterConfigOpType.APPEND)

    @staticmethod
    def subtract(key: str, value: str) -> AlterConfig:
        """Take an item out of a list, or an entry out of a map by its name."""
        return AlterConfig(key, value, AlterConfigOpType.SUBTRACT)

    def __str__(self) -> str:
        shown = "" if self.value is None else f" {shown_value(self.key, self.value)}"
        return f"{self.op_type} {self.key}{shown}"

    def __repr__(self) -> str:
        shown = None if self.value is None else shown_value(self.key, self.value)
        return f"AlterConfig(key={self.key!r}, value={shown!r}, op_type={self.op_type!r})"
