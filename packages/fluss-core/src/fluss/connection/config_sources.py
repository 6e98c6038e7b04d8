"""Finds settings in their sources, in order of precedence: `fluss.config`.

The first layer that has a setting counts: an argument, the URL, a profile that is named as an
argument, the active session, the environment, the profile file, the default. `explain()` reports
which it was. A user and a password belong to the servers they were written for: a layer that names
other servers, or another user, lends neither. A session that is open, but not in a `with`, lends
them only to calls that take its servers, too (decision 0010).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fluss.connection.profiles import find_profile
from fluss.connection.url import parse_url
from fluss.errors import ConfigError
from fluss.model.options.config import Config
from fluss.model.options.config_options import LAKE_PREFIX
from fluss.model.options.secrets import HIDDEN, Secret, is_marker

T = TypeVar("T")

Settings = Config | Mapping[str, Any] | str | None

SERVERS = "bootstrap.servers"
PROTOCOL = "security.protocol"
USER = "security.sasl.username"
PASSWORD = "security.sasl.password"  # noqa: S105 - the name of the option
VARIABLES: Mapping[str, str] = {
    "FLUSS_BOOTSTRAP_SERVERS": SERVERS,
    "FLUSS_SASL_USERNAME": USER,
    "FLUSS_SASL_PASSWORD": PASSWORD,
    # FLUSS_LAKE_PASSWORD, FLUSS_LAKE_S3_SECRET_ACCESS_KEY, and so on
    **{
        f"FLUSS_{key.replace('.', '_').replace('-', '_').upper()}": key
        for key in Config.OPTIONS
        if key.startswith(LAKE_PREFIX)
    },
}
_LOGIN = (PROTOCOL, "security.sasl.mechanism", USER, PASSWORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Settings that were found in one place."""

    name: str
    settings: Mapping[str, Any] = field(repr=False)
    # Whether it may give a login for servers that another layer has named.
    lends_login: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Settings, and the source of each.

    Attributes:
        config: The settings.
        sources: The layer of each key that is set.
        ignored: The keys of layers that do not count, with the reason.
    """

    config: Config
    sources: Mapping[str, str]
    ignored: tuple[str, ...]

    def __str__(self) -> str:
        shown = self.config.to_dict()
        lines = [
            f"{key} = {shown.get(key, HIDDEN)}    # {self.sources[key]}" for key in self.sources
        ]
        if SERVERS not in self.sources:
            lines.insert(0, f"{SERVERS} = {self.config.bootstrap_servers}    # default")
        return "\n".join([*lines, *(f"# not used: {each}" for each in self.ignored)])


def resolve(
    given: Settings = None,
    *,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
    with_active: bool = True,
    **arguments: Any,
) -> Resolved:
    """Find the settings that count.

    Args:
        given: Settings, a URL, or None.
        profile: A profile of the configuration file; it counts more than the active session and
            the environment.
        environ: The environment; the process's by default.
        with_active: Whether the active session counts; not for other processes.
        **arguments: Single settings, by the names of `Config`; they count most.

    Raises:
        ConfigError: A setting is unknown or invalid, a profile is missing, or a file that holds
            passwords can be read by others.
    """
    variables = os.environ if environ is None else environ
    layers = [Layer(name="argument", settings=_keyed(arguments))]
    if given is not None:
        name = "URL" if isinstance(given, str) else "argument"
        layers.append(Layer(name=name, settings=written(given)))
    if profile is not None:
        layers += _profile_layers(variables, profile)
    if with_active:
        layers += _session_layers()
    layers.append(Layer(name="environment", settings=_of_environment(variables)))
    # A file that is not needed is not opened: its errors would be in the way.
    if profile is None and not any(SERVERS in each.settings for each in layers):
        layers += _profile_layers(variables, None)
    return _merged(layers)


def completed(config: Config) -> Config:
    """Complete settings that were resolved before with the password that their pickle has lost.

    A session that is active now does not add a user: the settings keep their meaning.
    """
    return resolve(config, with_active=bool(config.security_sasl_username)).config


def _session_layers() -> list[Layer]:
    entered = _entered.get()
    if entered:
        return [Layer(name="active session", settings=entered[-1].written())]
    last = active_config()
    if last is None:
        return []
    return [Layer(name="session opened last", settings=last.written(), lends_login=False)]


def _profile_layers(environ: Mapping[str, str], name: str | None) -> list[Layer]:
    found = find_profile(environ, name)
    return [] if found is None else [Layer(name=str(found), settings=found.settings)]


def explain(given: Settings = None, **arguments: Any) -> str:
    """Show which layer gave each setting, as text; passwords are hidden.

    Takes what `fluss.connect` takes.

    Example:
        >>> print(explain("fluss://me@fluss-1:9123"))  # doctest: +SKIP
        bootstrap.servers = fluss-1:9123    # URL
        security.sasl.username = me    # URL
    """
    return str(resolve(given, **arguments))


def written(settings: Settings) -> dict[str, Any]:
    """Return settings by key; literal passwords are hidden.

    Raises:
        ConfigError: A setting is unknown; the hint names the nearest.
    """
    if isinstance(settings, str):
        return parse_url(settings).to_settings()
    if isinstance(settings, Config):
        return settings.written()
    if not isinstance(settings, Mapping | None):
        raise ConfigError(
            f"Settings are a Config, a dict or a URL, not a {type(settings).__name__}.",
            hint="a session has its settings in session.config",
        )
    return _keyed(settings or {})


def _keyed(settings: Mapping[str, Any]) -> dict[str, Any]:
    keyed = {}
    for name, value in settings.items():
        option = Config.option(name)
        if value is not None:
            is_open = not option.secret or not isinstance(value, str) or is_marker(value)
            keyed[option.key] = value if is_open else Secret(value)
    return keyed


def _of_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {key: environ[name] for name, key in VARIABLES.items() if environ.get(name)}


def _merged(layers: Sequence[Layer]) -> Resolved:
    settings: dict[str, Any] = {}
    sources: dict[str, str] = {}
    ignored: list[str] = []
    for layer in layers:
        # Decided before the layer's own settings count.
        why_no_login = _why_no_login(layer, settings)
        for key, value in layer.settings.items():
            if key in settings:
                continue
            if _is_of_login(key) and why_no_login is not None:
                ignored.append(f"{key} of the {layer.name}, {why_no_login}")
                continue
            settings[key] = _unmarked(key, value)
            sources[key] = layer.name
    if settings.get(USER) and PROTOCOL not in settings:
        settings[PROTOCOL] = "sasl"
        sources[PROTOCOL] = "there is a user"
    return Resolved(config=Config(settings), sources=sources, ignored=tuple(ignored))


def _is_of_login(key: str) -> bool:
    """Whether a setting belongs to the servers that it was written for: logins, also of a lake."""
    return key in _LOGIN or key.startswith(LAKE_PREFIX)


def _why_no_login(layer: Layer, settings: Mapping[str, Any]) -> str | None:
    mine = layer.settings
    if SERVERS in mine and settings.get(SERVERS, mine[SERVERS]) != mine[SERVERS]:
        return "which is for other servers"
    if USER in mine and settings.get(USER, mine[USER]) != mine[USER]:
        return "which is for another user"
    if SERVERS in settings and not layer.lends_login and USER not in settings:
        return "which is lent inside `with`, or to what names no servers"
    return None


def _unmarked(key: str, value: Any) -> Any:
    # A program may pass a function as the password, which asks a keyring.
    if key == PASSWORD and callable(value):
        answer = value()
        if not isinstance(answer, str):
            raise ConfigError("The function given as password returned no text.", key=key)
        return f"${answer}" if is_marker(answer) else answer
    return value


# --- the active session ---------------------------------------------------------------------------

# The `with` blocks of this thread or task, innermost last; and all sessions that are open.
_entered: ContextVar[tuple[Config, ...]] = ContextVar("fluss_sessions", default=())
_opened: list[OpenedConfig] = []
_opened_lock = threading.Lock()


class OpenedConfig:
    """The settings of a session that is open.

    Attributes:
        config: The settings.
        is_dropped: Whether nothing refers to the session any more. It stays the active one until
            another session is opened.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.is_dropped = False

    def forget(self) -> None:
        """Note that the session is closed. Idempotent."""
        with _opened_lock:
            _remove(_opened, self)


def active_config() -> Config | None:
    """The settings of the active session: the innermost `with`, else the last one opened.

    The last one opened lends no login to calls that name servers themselves; see `resolve`.
    """
    entered = _entered.get()
    if entered:
        return entered[-1]
    with _opened_lock:
        return _opened[-1].config if _opened else None


def opened(config: Config) -> OpenedConfig:
    """Note that a session with these settings is open."""
    note = OpenedConfig(config)
    with _opened_lock:
        _opened[:] = [other for other in _opened if not other.is_dropped]
        _opened.append(note)
    return note


@contextmanager
def entered(config: Config) -> Iterator[None]:
    """Make these settings the active ones, here and in all calls from here."""
    _entered.set((*_entered.get(), config))
    try:
        yield
    finally:
        # Not back to what was active before: that may have ended, as with generators that hold
        # sessions and end in the order in which they began.
        left = list(_entered.get())
        _remove(left, config)
        _entered.set(tuple(left))


def _remove(items: list[T], item: T) -> None:
    """Remove this very item, not an equal one; of several, the last."""
    for index in reversed(range(len(items))):
        if items[index] is item:
            del items[index]
            return


def _forget_in_child() -> None:
    global _opened_lock  # noqa: PLW0603 - the parent's may be held at the moment of the fork
    _opened_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
