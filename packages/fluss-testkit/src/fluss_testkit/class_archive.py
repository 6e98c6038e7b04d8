"""An archive of Java's loaded classes, which each server after the first one starts from.

A JVM that maps the classes of Fluss from such a file (class data sharing) neither parses nor
verifies them, which saves a third of the processor time of a start, and 30 MB for each JVM. The
first server that hosts all roles writes the file when it is ready. The file is kept beside the
launcher. It is optional: a JVM that cannot use it ignores it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fluss_testkit.file_locks import FileLock
from fluss_testkit.java_runtime import JavaRuntime

VERSION_MIN = 17  # older ones cannot write an archive while they run
WRITE_TIMEOUT_S = 60
# A JVM ends when it cannot write all of an archive, which has 25 MB.
FREE_BYTES_MIN = 256 << 20
HASH_LENGTH = 16
# A file that does not fit is not worth a line in the server's log.
_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassArchive:
    """The archive of one Java and one class path, which may not be written yet.

    Args:
        path: The file; an empty one says that this Java has failed to write it.
        writer: The JDK's program that lets a running JVM write the file.
    """

    path: Path
    writer: Path

    @classmethod
    def of(cls, java: JavaRuntime, launcher: Path | None, jars: Sequence[Path]) -> Self | None:
        """Return the archive of this class path; None where Java cannot write one.

        Args:
            java: The Java that runs the servers.
            launcher: The jar of our main class.
            jars: The other jars of the class path.
        """
        writer = java.home / "bin" / "jcmd"
        if launcher is None or java.version < VERSION_MIN or not writer.exists():
            return None
        digest = hashlib.sha256(f"{java.executable.resolve()}".encode())
        for file in (java.executable.resolve(), launcher, *jars):
            facts = file.stat()
            digest.update(f"{file} {facts.st_size} {facts.st_mtime_ns}".encode())
        name = f"{digest.hexdigest()[:HASH_LENGTH]}.jsa"
        return cls(path=launcher.with_name(name), writer=writer)

    @property
    def is_written(self) -> bool:
        """Whether the file is there, and not empty."""
        try:
            return self.path.stat().st_size > 0
        except OSError:
            return False

    def options(self, *, has_all_roles: bool) -> list[str]:
        """Return the options of a JVM that uses the archive, or that can write it.

        Args:
            has_all_roles: Whether the JVM hosts all roles, and so loads all classes.
        """
        if self.is_written:
            return [f"-XX:SharedArchiveFile={self.path}", *_SILENT]
        can_write = has_all_roles and not self.path.exists()
        return ["-XX:+RecordDynamicDumpInfo", *_SILENT] if can_write else []

    def write(self, pid: int) -> None:
        """Let a JVM that was started with `options` write the archive, unless it exists.

        Without an effect where another process writes it now. A failure is remembered, and has no
        other consequence.
        """
        lock = FileLock(self.path.with_suffix(".lock"))
        try:
            is_full = shutil.disk_usage(self.path.parent).free < FREE_BYTES_MIN
            if is_full or self.path.exists() or not lock.try_exclusive():
                return
            if not self.path.exists():  # another process may have written it a moment ago
                self._write(pid)
        except OSError:
            return  # for example a cache that may not be written; the next start tries again
        finally:
            lock.release()

    def _write(self, pid: int) -> None:
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=".archiving-") as scratch:
            written = Path(scratch) / self.path.name
            command = [str(self.writer), str(pid), "VM.cds", "dynamic_dump", str(written)]
            try:
                # The program belongs to the Java that the user chose.
                subprocess.run(  # noqa: S603
                    command,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=WRITE_TIMEOUT_S,
                    check=True,
                )
            except subprocess.SubprocessError:
                written.unlink(missing_ok=True)  # it may be a part of an archive
            with written.open("ab") as file:
                os.fsync(file.fileno())  # a JVM crashes where the end of an archive is missing
            written.replace(self.path)
