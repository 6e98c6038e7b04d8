"""Finds or downloads the jars of a real Fluss, and verifies their SHA-256.

A jar is looked for in this order; the first source with the pinned bytes is used:

1. our own cache (`FLUSS_CACHE_DIR`, else the platform's cache directory),
2. the local Maven repository (`~/.m2/repository`, or the one `settings.xml` names),
3. the repository in `FLUSS_MAVEN_REPOSITORY` (a URL; `https:`, `http:` or `file:`),
4. `mvn`, which has the user's mirrors, proxies and credentials,
5. without `mvn`, a mirror named in `settings.xml`.

The server's jar contains everything but a logger, so a second, small jar is added: the binding of
slf4j to the logging of the JDK. This file does not run the jars.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from fluss.errors import ConfigError, LocalServerError, MissingRuntimeError
from fluss_testkit.cache_paths import CACHE_DIR_VARIABLE, jars_dir

REPOSITORY_VARIABLE = "FLUSS_MAVEN_REPOSITORY"
MAVEN_TIMEOUT_S = 900
SOCKET_TIMEOUT_S = 60
CHUNK_BYTES = 1 << 20
SETTINGS_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One jar of a Maven repository, pinned by its SHA-256."""

    group: str
    name: str
    version: str
    sha256: str
    size_bytes: int

    @property
    def file_name(self) -> str:
        """The jar's file name."""
        return f"{self.name}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        """Its Maven coordinates."""
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def repository_path(self) -> str:
        """Its path below the root of a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file_name}"


FLUSS_SERVER = Artifact(
    group="org.apache.fluss",
    name="fluss-server",
    version="0.9.1-incubating",
    sha256="fdda82aa7cc936086c420090920836066d48d741cf7e0aadde3c0e6f0832a169",
    size_bytes=85_810_597,
)
# For tests that compare with Java's own client; no server needs it.
FLUSS_CLIENT = Artifact(
    group="org.apache.fluss",
    name="fluss-client",
    version="0.9.1-incubating",
    sha256="6921994a2067704ac714cb03cc727ff8448453815eda83b792cd6f937fc491d2",
    size_bytes=68_821_740,
)
# The client of Fluss 1.0, of which no server is published.
FLUSS_CLIENT_1_0 = Artifact(
    group="org.apache.fluss",
    name="fluss-client",
    version="1.0.0",
    sha256="a73101b243277f618f0acfd8a38eb31635f9cb903c040168809d480f575654c0",
    size_bytes=69_224_152,
)
LOG_BINDING = Artifact(
    group="org.slf4j",
    name="slf4j-jdk14",
    version="1.7.36",
    sha256="5bf64690af4e59876b8902bb0db3dd39c686a40abfed97d3837eeeec7a2922ac",
    size_bytes=8_436,
)


def find_jar(artifact: Artifact) -> Path:
    """Return the path of a jar with the pinned bytes; download it if need be.

    Raises:
        MissingRuntimeError: No source has it; the message lists what was tried.
        ConfigError: `FLUSS_MAVEN_REPOSITORY` is not a URL of a repository.
    """
    tried: list[str] = []
    for look in (_in_cache, _in_local_repository, _from_named_repository, _with_maven, _mirror):
        found = look(artifact, tried)
        if found is not None:
            return found
    raise MissingRuntimeError(
        f"{artifact.coordinates} is not on this machine and could not be fetched: "
        f"{'; '.join(tried)}.",
        hint=(
            f"install Maven, or set {REPOSITORY_VARIABLE} to the URL of a Maven repository that "
            f"has it, or put {artifact.file_name} into {jars_dir()}."
        ),
        artifact=artifact.coordinates,
        tried=tuple(tried),
    )


def _in_cache(artifact: Artifact, tried: list[str]) -> Path | None:
    return _if_pinned(jars_dir() / artifact.file_name, artifact, "the cache", tried)


def _in_local_repository(artifact: Artifact, tried: list[str]) -> Path | None:
    path = _local_repository() / artifact.repository_path
    return _if_pinned(path, artifact, "the local Maven repository", tried)


def _from_named_repository(artifact: Artifact, tried: list[str]) -> Path | None:
    named = os.environ.get(REPOSITORY_VARIABLE)
    if not named:
        return None
    if urlsplit(named).scheme not in {"http", "https", "file"}:
        raise ConfigError(
            f"{REPOSITORY_VARIABLE} is {named!r}, which is not a URL.",
            hint="give the root of a Maven repository: https://..., http://... or file:///...",
            key=REPOSITORY_VARIABLE,
            value=named,
        )
    return _download(artifact, named, tried)


def _with_maven(artifact: Artifact, tried: list[str]) -> Path | None:
    maven = shutil.which("mvn")
    if maven is None:
        tried.append("there is no mvn on the PATH")
        return None
    with _fetching(artifact) as (directory, accept):
        command = [
            *(maven, "-q", "-B", "-ntp", "dependency:copy"),
            *(f"-Dartifact={artifact.coordinates}", f"-DoutputDirectory={directory}"),
        ]
        # Run in a directory without a pom.xml.
        outcome = _run(command, directory)
        fetched = directory / artifact.file_name
        if outcome is not None or not fetched.exists():
            tried.append(f"mvn could not get it ({outcome or 'it left no file'})")
            return None
        return accept(fetched, "mvn", tried)


def _mirror(artifact: Artifact, tried: list[str]) -> Path | None:
    if shutil.which("mvn") is not None:
        return None  # mvn has tried the mirror already
    url = _settings().mirror
    if url is None:
        tried.append("settings.xml names no mirror")
        return None
    return _download(artifact, url, tried)


# --- fetching -----------------------------------------------------------------------------------

Accept = Callable[[Path, str, list[str]], Path | None]


@contextmanager
def _fetching(artifact: Artifact) -> Iterator[tuple[Path, Accept]]:
    """Yield a directory beside the cached jars, and a function that moves a fetched jar there."""
    target = jars_dir() / artifact.file_name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-")
    except OSError as error:
        raise LocalServerError(
            f"the cache directory {target.parent} cannot be written: {error.strerror}.",
            hint=f"set {CACHE_DIR_VARIABLE} to a directory that can.",
            path=str(target.parent),
        ) from error

    def accept(fetched: Path, source: str, tried: list[str]) -> Path | None:
        if _if_pinned(fetched, artifact, source, tried) is None:
            return None
        fetched.replace(target)  # atomic: no process sees an incomplete jar
        return target

    with scratch as directory:
        yield Path(directory), accept


def _download(artifact: Artifact, repository: str, tried: list[str]) -> Path | None:
    url = f"{repository.rstrip('/')}/{artifact.repository_path}"
    source = urlsplit(url).hostname or "the file repository"
    with _fetching(artifact) as (directory, accept):
        fetched = directory / artifact.file_name
        try:
            _copy_url(url, fetched, artifact.size_bytes)
        except (OSError, ValueError) as error:  # URLError and HTTPError are OSErrors
            tried.append(f"{source} did not give it ({_one_line(str(error))})")
            return None
        return accept(fetched, source, tried)


def _copy_url(url: str, path: Path, size_bytes: int) -> None:
    # The scheme was checked, or is from the user's own settings; the hash of the bytes is checked.
    with urllib.request.urlopen(url, timeout=SOCKET_TIMEOUT_S) as answer, path.open("wb") as out:  # noqa: S310
        left = size_bytes + 1  # one byte too many is enough to detect a wrong file
        while left > 0 and (chunk := answer.read(min(CHUNK_BYTES, left))):
            out.write(chunk)
            left -= len(chunk)


def _run(command: list[str], directory: Path) -> str | None:
    """Run a command; return None when it succeeds, else one line with the reason."""
    try:
        # The program was found on the user's own PATH, the arguments are ours.
        done = subprocess.run(  # noqa: S603
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MAVEN_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no result within {MAVEN_TIMEOUT_S} s"
    except OSError as error:
        return str(error.strerror)
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
    return _one_line(lines[0] if lines else f"exit code {done.returncode}")


def _one_line(text: str) -> str:
    return " ".join(text.replace("[ERROR]", "").split())[:200]


# --- checking -----------------------------------------------------------------------------------


def _if_pinned(path: Path, artifact: Artifact, source: str, tried: list[str]) -> Path | None:
    """Return the path if its bytes are the pinned ones."""
    try:
        facts = path.stat()
        right = facts.st_size == artifact.size_bytes and artifact.sha256 == _sha256(
            path, (facts.st_ino, facts.st_mtime_ns)
        )
    except OSError:
        tried.append(f"{source} does not have it")
        return None
    if not right:
        tried.append(f"{source} has other bytes than the pinned SHA-256")
        return None
    return path


@functools.lru_cache(maxsize=32)
def _sha256(path: Path, _facts: tuple[int, int]) -> str:
    """Return the hash of a file; a process reads an unchanged file once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- Maven's own settings -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """The relevant part of the user's settings.xml."""

    local_repository: str | None = None
    mirror: str | None = None


def _local_repository() -> Path:
    named = _settings().local_repository
    return Path(named).expanduser() if named else Path.home() / ".m2" / "repository"


def _settings() -> _Settings:
    """Read `~/.m2/settings.xml`; ignore a broken file, which mvn reports itself."""
    path = Path.home() / ".m2" / "settings.xml"
    try:
        if path.stat().st_size > SETTINGS_BYTES_MAX:
            return _Settings()
        # The file is the user's own, and its size is limited.
        root = ET.fromstring(path.read_bytes())  # noqa: S314
    except (OSError, ET.ParseError):
        return _Settings()
    mirrors = [
        url.strip()
        for mirror in root.iterfind("{*}mirrors/{*}mirror")
        if _mirrors_central(mirror.findtext("{*}mirrorOf", ""))
        and (url := mirror.findtext("{*}url", "")).strip().startswith(("https:", "http:", "file:"))
    ]
    local = (root.findtext("{*}localRepository") or "").replace("${user.home}", str(Path.home()))
    return _Settings(local_repository=local.strip() or None, mirror=mirrors[0] if mirrors else None)


def _mirrors_central(mirror_of: str) -> bool:
    names = {name.strip() for name in mirror_of.split(",")}
    return "!central" not in names and bool(names & {"*", "central", "external:*"})
