"""Profiles: named settings in the user's file `~/.config/fluss/config.toml`.

    default = "dev"

    [profiles.dev]
    bootstrap.servers = "127.0.0.1:9123"

    [profiles.prod]
    bootstrap.servers = "fluss-1:9123,fluss-2:9123"
    security.sasl.username = "me"
    security.sasl.password = "${env:FLUSS_PROD_PASSWORD}"

A file that holds a password and can be read by others is refused.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fluss.errors import ConfigError
from fluss.model.did_you_mean import did_you_mean
from fluss.model.options.config import Config
from fluss.model.options.secrets import is_marker

PATH_VARIABLE = "FLUSS_CONFIG"
PROFILE_VARIABLE = "FLUSS_PROFILE"
FILE_BYTES_MAX = 1024 * 1024
OTHERS = stat.S_IRWXG | stat.S_IRWXO

_TABLE_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_DEFAULT_LINE = re.compile(r"^[ \t]*default[ \t]*=.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The settings of one profile, by key, and where they were found."""

    name: str
    path: Path
    settings: Mapping[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return f"profile {self.name!r} of {self.path}"


def find_profile(environ: Mapping[str, str], name: str | None = None) -> Profile | None:
    """Find the requested profile, or the file's default; None where there is no file.

    Args:
        environ: The environment; FLUSS_CONFIG names the file, FLUSS_PROFILE the profile.
        name: The profile; counts before the environment and the default.

    Raises:
        ConfigError: The profile does not exist, or the file cannot be used.
    """
    path = profile_path(environ)
    requested = name or environ.get(PROFILE_VARIABLE)
    is_named = bool(environ.get(PATH_VARIABLE))
    content = _read(path, must_exist=is_named or requested is not None)
    if content is None:
        return None
    profiles = content.get("profiles", {})
    if not isinstance(profiles, dict):
        raise ConfigError(f"In {path}, 'profiles' is no table.", path=str(path))
    requested = requested or content.get("default")
    if requested is None:
        return None
    if not isinstance(profiles.get(requested), dict):
        hint = _known_profiles(str(requested), profiles)
        raise ConfigError(f"{path} has no profile {requested!r}.", hint=hint, path=str(path))
    settings = dict(_flattened(profiles[requested], path))
    return Profile(name=str(requested), path=path, settings=settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """The profiles of the user's file.

    Attributes:
        path: The file, which may not exist.
        default: The profile that counts where none is named.
        profiles: All profiles, by name.
    """

    path: Path
    default: str | None
    profiles: Mapping[str, Profile]


def read_profiles(environ: Mapping[str, str]) -> ProfileFile:
    """Read the user's file; without one there are no profiles.

    Raises:
        ConfigError: The file cannot be used.
    """
    path = profile_path(environ)
    content = _read(path, must_exist=bool(environ.get(PATH_VARIABLE))) or {}
    profiles = content.get("profiles", {})
    if not isinstance(profiles, dict):
        raise ConfigError(f"In {path}, 'profiles' is no table.", path=str(path))
    default = content.get("default")
    found = {
        name: Profile(name=name, path=path, settings=dict(_flattened(each, path)))
        for name, each in profiles.items()
        if isinstance(each, dict)
    }
    return ProfileFile(path=path, default=None if default is None else str(default), profiles=found)


def _known_profiles(name: str, profiles: Mapping[str, object]) -> str:
    if not profiles:
        return f"write a section [profiles.{name}]; `fluss config profiles -h` shows one"
    return did_you_mean(name, profiles) or f"there are: {', '.join(profiles)}"


def use_profile(environ: Mapping[str, str], name: str) -> ProfileFile:
    """Make a profile the default, and leave the rest of the file as it is.

    Raises:
        ConfigError: There is no such profile, or the file cannot be read or written.
    """
    found = read_profiles(environ)
    if name not in found.profiles:
        hint = _known_profiles(name, found.profiles)
        raise ConfigError(f"{found.path} has no profile {name!r}.", hint=hint, path=str(found.path))
    try:
        _replace(found.path, with_default(found.path.read_text(encoding="utf-8"), name))
    except OSError as error:
        raise ConfigError(
            f"The configuration file {found.path} cannot be written: {error.strerror}.",
            path=str(found.path),
        ) from error
    return read_profiles(environ)


def with_default(text: str, name: str) -> str:
    """Return the text of a file with another default profile."""
    line = f"default = {_quoted(name)}"
    head_end = found.start() if (found := _TABLE_HEADER.search(text)) else len(text)
    head, rest = text[:head_end], text[head_end:]
    if _DEFAULT_LINE.search(head):
        return _DEFAULT_LINE.sub(lambda _: line, head, count=1) + rest
    return f"{line}\n{'' if text.startswith(chr(10)) or not text else chr(10)}{text}"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)  # a basic string of TOML


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole, with the permissions that it has."""
    target = path.resolve()  # a link stays a link
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    try:
        with os.fdopen(
            os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w"
        ) as file:
            os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            file.write(text)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def profile_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's file, which may not exist."""
    named = environ.get(PATH_VARIABLE)
    return Path(named) if named else _usual_path(environ)


def _usual_path(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CONFIG_HOME")
    home = Path(base) if base else Path(environ.get("HOME") or Path.home()) / ".config"
    return home / "fluss" / "config.toml"


def _read(path: Path, *, must_exist: bool) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        if not must_exist:
            return None
        raise ConfigError(
            f"There is no configuration file {path}.",
            hint=f"{PATH_VARIABLE} names another; profiles are written into such a file",
            path=str(path),
        ) from None
    except OSError as error:
        raise ConfigError(
            f"The configuration file {path} cannot be read: {error.strerror}.", path=str(path)
        ) from error
    if len(text) > FILE_BYTES_MAX:
        raise ConfigError(f"The configuration file {path} is larger than {FILE_BYTES_MAX} bytes.")
    try:
        content = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        # The parser's message may quote a line with a password.
        raise ConfigError(f"The configuration file {path} is not TOML.", path=str(path)) from None
    if os.name == "posix" and mode & OTHERS and _holds_secret(content):
        raise ConfigError(
            f"The configuration file {path} holds a password, and others than its owner may read "
            "or change it.",
            hint=f"chmod 600 {path}, or write ${{env:NAME}} in place of the password",
            path=str(path),
        )
    return content


def _holds_secret(content: Mapping[str, Any]) -> bool:
    profiles = content.get("profiles", {})
    return any(
        Config.OPTIONS[key].secret and not is_marker(value)
        for profile in (profiles.values() if isinstance(profiles, dict) else ())
        if isinstance(profile, dict)
        for key, value in _pairs(profile)
        if key in Config.OPTIONS
    )


def _flattened(profile: Mapping[str, Any], path: Path) -> Iterator[tuple[str, Any]]:
    for key, value in _pairs(profile):
        try:
            yield Config.option(key).key, value
        except ConfigError as error:
            raise ConfigError(
                f"{path} sets the unknown option {key!r}.", hint=error.hint, path=str(path), key=key
            ) from None


def _pairs(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """TOML reads `a.b = 1` as a table in a table; options are dotted keys."""
    for name, value in table.items():
        key = prefix + name
        if isinstance(value, dict) and key not in Config.OPTIONS:
            yield from _pairs(value, f"{key}.")
        else:
            yield key, value
