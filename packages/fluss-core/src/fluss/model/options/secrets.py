"""Markers for secrets that are kept elsewhere, such as `${env:NAME}`; secrets that are not shown.

======================================  =======================================================
`${env:NAME}`                           an environment variable
`${directory:/dir:file}`                the content of /dir/file, to the last byte
`${file:/path/creds.properties:key}`    one property of a Java properties file
`$${…}`                                 the text `${…}` itself
======================================  =======================================================

A marker is the whole value, never a part of it (Java: `ConfigProviders`). Nothing is read here:
the caller gives the environment and a function that reads files.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from string import hexdigits
from typing import Final

from fluss.errors import ConfigError

ReadFile = Callable[[str], bytes]

HIDDEN = "***"  # stands for a secret where settings are shown
ESCAPE = "$${"  # a value that begins like a marker but is none

_PROVIDERS = ("env", "directory", "file")
_PROPERTIES_LENGTH_MAX = 1_000_000
# A server may send a client the login of a lake's catalog: 0.9.1 sends that of a REST catalog.
_SECRET_KEY: Final = re.compile(
    r"secret|passwd|password|sas[-_.]?token|connection[-_.]string|jaas"
    r"|(?:token|credentials?|authorization|(?:account|api|private|shared)[-_.]?key)$",
    re.IGNORECASE,
)
_LOGIN_IN_URL: Final = re.compile(r"(//[^/\s:@]*):[^/\s@]+@")
_SECRET_PARAMETER: Final = re.compile(
    r"([?&;][^?=&;\s]*(?:passw|secret|token|credential|sig(?:nature)?(?==))[^?=&;\s]*=)[^&;\s]+",
    re.IGNORECASE,
)


class Secret:
    """A text that printing, formatting and JSON do not show.

    Its pickle contains it; owners leave it out of theirs.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(
            self._text.encode(), other._text.encode()
        )

    def __hash__(self) -> int:
        return hash((Secret, self._text))


def shown_value(key: str, value: str) -> str:
    """Return a property's value for people: without a secret, `***` if the name is that of one."""
    return HIDDEN if value and _SECRET_KEY.search(key) else without_login(value)


def is_secret(key: str, value: str) -> bool:
    """Return whether people are not shown the value of a property as it is."""
    return shown_value(key, value) != value


def without_login(text: str) -> str:
    """Return a text with `***` in place of the passwords and tokens in its URLs."""
    return _SECRET_PARAMETER.sub(rf"\1{HIDDEN}", _LOGIN_IN_URL.sub(rf"\1:{HIDDEN}@", text))


def is_marker(text: object) -> bool:
    """Return whether this text is a marker."""
    return isinstance(text, str) and len(text) > len("${}") and text[:2] == "${" and text[-1] == "}"


def resolve_secret(text: str, environ: Mapping[str, str], read_file: ReadFile) -> str:
    """Return the secret of a marker; a text that is no marker is returned itself.

    Args:
        text: The marker.
        environ: The environment.
        read_file: Reads the file of a path.

    Raises:
        ConfigError: When the marker is malformed, or names something missing.
    """
    if text.startswith(ESCAPE):
        return text[1:]
    if not is_marker(text):
        return text
    provider, colon, rest = text[2:-1].partition(":")
    if provider not in _PROVIDERS or not colon or not rest:
        raise _malformed(text)
    path, _, key = rest.rpartition(":")
    if not key or (provider == "env") == bool(path):
        raise _malformed(text)
    if provider == "env":
        return _from_environment(text, key, environ)
    if provider == "directory":
        return _from_directory(text, path, key, read_file)
    return _from_properties(text, path, key, read_file)


def _from_environment(marker: str, name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise ConfigError(
            f"The environment variable {name!r}, which {marker} stands for, is not set.",
            hint=f"export {name}=… before this process begins, and before any other that connects",
            key=name,
        )
    return environ[name]


def _from_directory(marker: str, directory: str, name: str, read_file: ReadFile) -> str:
    if "/" in name or "\\" in name or name in {".", ".."}:
        raise ConfigError(f"{marker} names {name!r}, which is not a file in {directory!r}.")
    return _read(marker, f"{directory.rstrip('/')}/{name}", read_file)


def _from_properties(marker: str, path: str, key: str, read_file: ReadFile) -> str:
    found = parse_properties(_read(marker, path, read_file)).get(key)
    if found is None:
        raise ConfigError(f"The file {path!r} has no property {key!r}, which {marker} stands for.")
    return found


def _read(marker: str, path: str, read_file: ReadFile) -> str:
    try:
        content = read_file(path)
    except OSError as error:
        raise ConfigError(
            f"The file {path!r}, which {marker} stands for, cannot be read: {error.strerror}."
        ) from error
    if len(content) > _PROPERTIES_LENGTH_MAX:
        raise ConfigError(f"The file {path!r} has {len(content)} bytes: too many for a secret.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"The file {path!r}, which {marker} stands for, is not UTF-8.") from None


def _malformed(marker: str) -> ConfigError:
    return ConfigError(
        f"{marker} is not a marker that can be resolved.",
        hint="write ${env:NAME}, ${directory:/dir:file} or ${file:/path.properties:key}, "
        "or $${…} for the text itself",
    )


# --- Java's properties files ----------------------------------------------------------------------

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX_DIGITS = 4


def parse_properties(text: str) -> dict[str, str]:
    """Return the keys and values of a Java properties file (Java: `Properties.load`).

    Raises:
        ConfigError: When an escape in it is cut off.
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _end_of_key(line)
        value = line[end:].lstrip(" \t\f")
        if value[:1] in {"=", ":"}:
            value = value[1:].lstrip(" \t\f")
        found[_unescaped(line[:end])] = _unescaped(value)
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    continued = ""
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        line = continued + line
        slashes = len(line) - len(line.rstrip("\\"))
        continued = line[:-1] if slashes % 2 else ""
        if not slashes % 2:
            lines.append(line)
    return [*lines, continued] if continued else lines


def _end_of_key(line: str) -> int:
    escaped = False
    for index, character in enumerate(line):
        if not escaped and character in "=: \t\f":
            return index
        escaped = character == "\\" and not escaped
    return len(line)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    done: list[str] = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            done.append(character)
            continue
        escape = next(characters, "")
        if escape == "u":
            digits = "".join(next(characters, "") for _ in range(_HEX_DIGITS))
            if len(digits) < _HEX_DIGITS or not set(digits) <= set(hexdigits):
                raise ConfigError("A properties file has an escape \\u without four digits.")
            done.append(chr(int(digits, 16)))
        else:
            done.append(_ESCAPES.get(escape, escape))
    return "".join(done)
