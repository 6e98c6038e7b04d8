"""`Config`: the settings of a client.

Each option is declared once, with its key, default, range and meaning; the property of the same
name, the documentation and the hint for a mistyped key come from that declaration. A config reads
neither files nor the environment: secrets kept elsewhere are markers until `resolved` gets the
means to read them (see `model.options.secrets`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeVar, cast

from fluss.errors import ConfigError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.config_options import INFLIGHT_IDEMPOTENT_MAX, ONLY_IN_JAVA, ClientOptions
from fluss.model.options.declaration import Option
from fluss.model.options.secrets import ESCAPE, HIDDEN, ReadFile, Secret, is_marker, resolve_secret
from fluss.model.servers import Address, parse_address, parse_addresses

T = TypeVar("T")

PREFIX = "client."  # Java's clients write it before every key


class Config(ClientOptions):
    """The settings of a client.

    Args:
        properties: Keys and values. Values may be text, as in files (`"2mb"`, `"10s"`, `"true"`),
            or typed. A key may carry Java's prefix `client.`.
        **named: The same by the names of the properties.

    Raises:
        ConfigError: When a key is unknown, or its value is invalid.

    Example:
        >>> config = Config({"bootstrap.servers": "127.0.0.1:9123", "writer.batch-size": "1mb"})
        >>> config.writer_batch_size
        1048576
    """

    __slots__ = ("_markers",)

    def __init__(self, properties: Mapping[str, Any] | None = None, **named: Any) -> None:
        super().__init__()
        self._markers: dict[str, str] = {}
        for key, value in {**(properties or {}), **named}.items():
            self.set_value(self.option(key), value)

    @classmethod
    def option(cls, key: str) -> Option[Any]:
        """Return the option of a key, an alias, a key of Java's clients, or a property's name.

        Raises:
            ConfigError: When there is none.
        """
        for candidate in (key, str(key).removeprefix(PREFIX)):
            found = _OPTION_OF.get(candidate)
            if found is not None:
                return found
        bare = str(key).removeprefix(PREFIX)
        if bare in ONLY_IN_JAVA:
            raise ConfigError(
                f"The option {key!r} is one of Fluss's Java client and has no meaning here: "
                f"{ONLY_IN_JAVA[bare]}.",
                hint="leave it out",
                key=key,
            )
        # A keyword is answered with a keyword: a key of a file is no name in Python.
        known = [name for name in _OPTION_OF if name.isidentifier() or not bare.isidentifier()]
        raise ConfigError(f"There is no option {key!r}.", hint=did_you_mean(bare, known), key=key)

    def set_value(self, option: Option[Any], value: object) -> None:
        if option.secret and isinstance(value, Secret):
            value = value.reveal()
        if isinstance(value, str) and is_marker(value):
            self._values.pop(option.key, None)
            self._markers[option.key] = value
            return
        escaped = isinstance(value, str) and value.startswith(ESCAPE)
        super().set_value(option, cast("str", value)[1:] if escaped else value)
        self._markers.pop(option.key, None)

    def value_of(self, option: Option[T]) -> T:
        if option.key in self._values or option.key not in self._markers:
            return super().value_of(option)
        marker: Any = self._markers[option.key]
        if isinstance(option.default, str):
            return cast("T", marker)
        raise ConfigError(
            f"The option {option.key!r} still is the marker {marker}.",
            hint="connect with it, or call resolved(...) first",
            key=option.key,
        )

    def resolved(self, environ: Mapping[str, str], read_file: ReadFile) -> Self:
        """Return a copy in which every marker is replaced by its secret.

        The copy keeps its markers, so that neither its text nor its pickle shows a secret.

        Raises:
            ConfigError: When a marker names something missing, or an invalid value of its option.
        """
        made = self.copy()
        for key, marker in self._markers.items():
            found = resolve_secret(marker, environ, read_file)
            made._values[key] = self.OPTIONS[key].read(found)  # noqa: SLF001 - a copy of this
        return made

    def copy(self) -> Self:
        """Return an independent copy."""
        made = type(self)()
        made._values |= self._values  # noqa: SLF001 - a copy of this
        made._markers |= self._markers  # noqa: SLF001
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def check(self) -> None:
        """Refuse settings that contradict each other.

        Raises:
            ConfigError: Naming the settings.
        """
        if self.security_protocol == "sasl":
            self._check_credentials()
        if self.writer_enable_idempotence:
            self._check_idempotence()

    def _check_credentials(self) -> None:
        for option in (Config.security_sasl_username, Config.security_sasl_password):
            if not self.value_of(option):
                variable = "FLUSS_SASL_PASSWORD" if option.secret else "FLUSS_SASL_USERNAME"
                lost = ". A pickled config does not keep it" if option.secret else ""
                raise ConfigError(
                    f"{Config.security_protocol.key!r} is sasl, and {option.key!r} is not set.",
                    hint=f"set {variable} in the environment, or the option in the call, the URL or "
                    f"the profile, where ${{env:NAME}} names another variable{lost}",
                    key=option.key,
                )

    def _check_idempotence(self) -> None:
        wrong: Option[Any] | None = None
        if self.writer_acks != "all":
            wrong = Config.writer_acks
        elif self.writer_retries == 0:
            wrong = Config.writer_retries
        elif self.writer_max_inflight_requests_per_bucket > INFLIGHT_IDEMPOTENT_MAX:
            wrong = Config.writer_max_inflight_requests_per_bucket
        if wrong is not None:
            raise ConfigError(
                f"Writing once needs acks from all, retries, and at most {INFLIGHT_IDEMPOTENT_MAX} "
                f"batches in flight; {wrong.key!r} is {self.value_of(wrong)}.",
                hint=f"change it, or set {Config.writer_enable_idempotence.key!r} to false",
                key=wrong.key,
            )

    @property
    def bootstrap_addresses(self) -> tuple[Address, ...]:
        """The addresses of the first servers to connect to."""
        return parse_addresses(self.bootstrap_servers)

    def reachable(self, advertised: Address) -> Address:
        """Return the address at which a server with this advertised address is reached."""
        written = self.address_map.get(str(advertised))
        return advertised if written is None else parse_address(written)

    def written(self) -> dict[str, Any]:
        """Return what was set, by key, for another config; secrets are opaque `Secret`s."""
        found: dict[str, Any] = {}
        for key in self._set_keys():
            value = self._markers.get(key, self._values.get(key))
            is_text_like_marker = key not in self._markers and is_marker(value)
            found[key] = f"${value}" if is_text_like_marker else value
            if self.OPTIONS[key].secret and key not in self._markers:
                found[key] = Secret(found[key])
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what was set, by key; secrets are hidden, markers stay."""
        shown = {key: self._open(key) for key in self._set_keys()}
        return {key: HIDDEN if value is None else value for key, value in shown.items()}

    def _set_keys(self) -> list[str]:
        return [key for key in self.OPTIONS if key in self._values or key in self._markers]

    def _open(self, key: str) -> Any:
        """Return what may be shown of a value: its marker, or itself; None for a secret."""
        if key in self._markers:
            return self._markers[key]
        return None if self.OPTIONS[key].secret else self._values[key]

    def __repr__(self) -> str:
        return f"Config({self.to_dict()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle is sent and stored; passwords must not be. Their markers may.
        kept = {
            key: value for key, value in self.written().items() if not isinstance(value, Secret)
        }
        return (type(self), (kept,))


def _keys_of(options: Iterable[Option[Any]]) -> dict[str, Option[Any]]:
    return {key: option for option in options for key in (option.key, *option.aliases, option.name)}


_OPTION_OF = _keys_of(Config.OPTIONS.values())
