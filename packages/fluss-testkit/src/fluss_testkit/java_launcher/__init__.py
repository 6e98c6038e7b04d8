"""Two launchers that stop a server when its parent ends, and the choice between them.

`FlussNode.java` is our own main class: several roles in one JVM, stopped in order, and stopped when
the parent ends. The JDK compiles it once for each Java, and the class files are cached, which saves
each JVM 0.5 s and 60 MB over running it from source. Without a JDK the jar's own main classes run,
one role per process, and `watchdog.py` watches the parent.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

from fluss.errors import LocalServerError
from fluss_testkit.cache_paths import cache_dir
from fluss_testkit.java_runtime import JavaRuntime

MAIN_CLASS = "FlussNode"
SOURCE = Path(__file__).with_name(f"{MAIN_CLASS}.java")
WATCHDOG = Path(__file__).with_name("watchdog.py")
COMPILE_TIMEOUT_S = 120
HASH_LENGTH = 16
# Java archives the classes of a class path (`class_archive`) only if it has no directories.
JAR_NAME = "launcher.jar"


def compiled_launcher(java: JavaRuntime, jars: Sequence[Path]) -> Path | None:
    """Return the jar with our compiled main class; None without a compiler.

    Raises:
        LocalServerError: The compiler failed, which happens with a different version of the
        server.
    """
    if java.compiler is None:
        return None
    target = cache_dir() / "launcher" / _fingerprint(java, jars)
    jar = target / JAR_NAME
    if not jar.is_file():
        _compile(java.compiler, jars, target)
    return jar


def _fingerprint(java: JavaRuntime, jars: Sequence[Path]) -> str:
    """Return a hash of everything that the class files depend on."""
    digest = hashlib.sha256(SOURCE.read_bytes())
    digest.update(f"{JAR_NAME} {java.version}".encode())
    for jar in jars:
        facts = jar.stat()
        digest.update(f"{jar.name} {facts.st_size} {facts.st_mtime_ns}".encode())
    return digest.hexdigest()[:HASH_LENGTH]


def _compile(compiler: Path, jars: Sequence[Path], target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compiling-") as scratch:
            classes = Path(scratch) / "classes"
            command = [str(compiler), "-nowarn", "-proc:none", "-d", str(classes), str(SOURCE)]
            command += ["-cp", ":".join(map(str, jars))]
            # The compiler belongs to the Java that the user chose.
            subprocess.run(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMPILE_TIMEOUT_S,
                check=True,
            )
            packed = Path(scratch) / "packed"
            packed.mkdir()
            with ZipFile(packed / JAR_NAME, "w") as jar:
                for file in sorted(classes.iterdir()):
                    jar.write(file, file.name)
            with suppress(OSError):  # another process was faster, and compiled the same
                packed.rename(target)
    except subprocess.CalledProcessError as error:
        failure = LocalServerError(
            f"{SOURCE.name} does not compile against {jars[0].name}.",
            hint="use the published server, or a Java without a compiler: it runs the jar's mains.",
            jar=str(jars[0]),
        )
        failure.add_note(error.stderr.strip())
        raise failure from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LocalServerError(
            f"the launcher could not be compiled into {target}: {error}.",
            hint="check that the directory can be written and that javac works.",
            path=str(target),
        ) from error
