"""Bugs planted on purpose, one at a time, each of which the golden bytes must catch.

A suite that cannot fail proves nothing. Each bug here is a real one from the past: a checksum
over the wrong bytes, a tail hashed with the wrong sign, padding forgotten. It is planted in a copy
of the package, and the tests of that codec, run against the copy without Java, must fail. If the
text of a bug is not found, the code has changed and the bug must be adapted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "packages" / "fluss-core" / "src" / "fluss"
SERVER = ROOT / "packages" / "fluss-server" / "src" / "fluss_server"
ROWS = "tests/java/golden/test_golden_rows.py"
KEYS = "tests/java/golden/test_golden_keys.py"
BATCHES = "tests/java/golden/test_golden_batches.py"
DOCUMENTS = "tests/java/golden/test_golden_documents.py"
TESTS_FAILED = 1  # what pytest returns; 2 and more mean that they did not even run


@dataclass(frozen=True, slots=True)
class Bug:
    """One text in one file, by its path from the package, and the mistake that replaces it."""

    name: str
    file: str
    right: str
    wrong: str
    tests: str
    only: str = ""

    def plant(self, package: Path) -> None:
        path = package / self.file
        text = path.read_text()
        assert text.count(self.right) == 1, f"{self.file} has no single {self.right!r}"
        path.write_text(text.replace(self.right, self.wrong))


BUGS = [
    Bug(
        "the checksum of a log batch leaves out the schema id",
        "records/log/log_header.py",
        "return self.crc_at + _CRC.size",
        "return self.crc_at + _CRC.size + 2",
        BATCHES,
    ),
    Bug(
        "the last offset delta counts records instead of steps between them",
        "records/log/log_writer.py",
        "last_offset_delta=max(body.record_count - 1, 0)",
        "last_offset_delta=body.record_count",
        BATCHES,
    ),
    Bug(
        "the checksum of a KV batch begins at the magic byte",
        "records/kv/kv_batch.py",
        "crc32c(memoryview(header)[CRC_END:])",
        "crc32c(memoryview(header)[LENGTH_END:])",
        BATCHES,
    ),
    Bug(
        "the schema id of a stored value is read with its bytes swapped",
        "records/kv/value_batch.py",
        'words_of(values.data, "<i2")',
        'words_of(values.data, ">i2")',
        BATCHES,
    ),
    Bug(
        "the tail of a hashed key is zero-extended",
        "rows/keys/murmur.py",
        'Tail.SIGNED_BYTES: "b"',
        'Tail.SIGNED_BYTES: "B"',
        KEYS,
        "bucket",
    ),
    Bug(
        "a Paimon bucket is Python's remainder instead of Java's",
        "rows/keys/bucketing.py",
        "return (np.abs(codes).view(np.uint32) % np.uint32(bucket_count)).view(np.int32)",
        "return codes % np.int32(bucket_count)",
        KEYS,
        "bucket",
    ),
    Bug(
        "null bits run from the other end of their byte",
        "rows/formats/nulls.py",
        "(~column.valid).astype(np.uint64) << np.uint64(index)",
        "(~column.valid).astype(np.uint64) << np.uint64(index ^ 7)",
        ROWS,
        "compacted",
    ),
    Bug(
        "the null bytes of a single row are swapped",
        "rows/formats/compacted_row.py",
        'nulls.to_bytes(self._null_bytes, "little")',
        'nulls.to_bytes(self._null_bytes, "big")',
        ROWS,
        "compacted",
    ),
    Bug(
        "a negative INT takes ten bytes",
        "rows/formats/varint.py",
        "return _long_form(value & _INT_MASK)",
        "return _long_form(value & _LONG_MASK)",
        ROWS,
        "compacted and INT",
    ),
    Bug(
        "a CHAR of an indexed row loses its padding",
        "rows/formats/indexed.py",
        "return replace(runs, spans=spans if valid is None else spans * valid)",
        "return runs",
        ROWS,
        "indexed and CHAR",
    ),
    Bug(
        "the variable part of an array is filled up to four bytes instead of eight",
        "rows/formats/slots.py",
        "return (lengths + 7) & ~7",
        "return (lengths + 3) & ~3",
        ROWS,
        "ARRAY",
    ),
    Bug(
        "text of seven bytes does not fit its slot",
        "rows/formats/slots.py",
        "INLINE_BYTES_MAX = 7",
        "INLINE_BYTES_MAX = 6",
        ROWS,
        "aligned and STRING",
    ),
    Bug(
        "an aligned row has its null bits where the row kind is",
        "rows/formats/aligned_row.py",
        "HEADER_BITS = 8",
        "HEADER_BITS = 0",
        ROWS,
        "aligned",
    ),
    Bug(
        "an instant before 1970 is split towards zero",
        "rows/formats/stored.py",
        "    millis = values // per_milli\n",
        "    millis = _toward_zero(values, per_milli)\n",
        ROWS,
        "TIMESTAMP",
    ),
    Bug(
        "a DECIMAL forgets the byte that holds its sign",
        "rows/formats/decimals.py",
        "for bit in range(7, 64, 8):",
        "for bit in range(8, 64, 8):",
        ROWS,
        "compacted and DECIMAL",
    ),
    Bug(
        "a TIME in an Iceberg key counts milliseconds",
        "rows/keys/iceberg_keys.py",
        "return wide * _MICROS_PER_MILLI if",
        "return wide if",
        KEYS,
        "recorded_bytes and TIME",
    ),
    Bug(
        "the fraction in a partition name keeps its zeros",
        "rows/keys/partition_text.py",
        '.rstrip("0")',
        "",
        KEYS,
        "partition",
    ),
    Bug(
        "ten million is the last number without an exponent",
        "rows/keys/java_text.py",
        "_PLAIN_EXPONENT_MAX = 7",
        "_PLAIN_EXPONENT_MAX = 8",
        KEYS,
        "partition",
    ),
    Bug(
        "nullable is written for the wrong types",
        "model/types/type_json.py",
        "if not data_type.nullable:",
        "if data_type.nullable:",
        DOCUMENTS,
    ),
    Bug(
        "an index file is little endian",
        "../fluss_server/log/index_files.py",
        '[("offset", ">i4"), ("position", ">i4")]',
        '[("offset", "<i4"), ("position", "<i4")]',
        DOCUMENTS,
    ),
]


@pytest.fixture
def package(tmp_path):
    """A copy of the package, and of the server's; with bytecode, so that it starts as fast."""
    shutil.copytree(SERVER, tmp_path / "fluss_server")
    return shutil.copytree(PACKAGE, tmp_path / "fluss")


# Golden tests need no fixture and no plugin; without any, a run takes a third of the time.
BARE = (
    *("-q", "-x", "-p", "no:cacheprovider", "--noconftest", "--import-mode=importlib"),
    *("-c", os.devnull, f"--rootdir={ROOT}"),
)


def run_tests(package, *arguments):
    # The copy comes first on the path, before the installed package.
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(package.parent), str(ROOT))),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", *BARE, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.slow  # a Python of its own, with numpy, pyarrow and pytest: a second each
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(package, bug):
    bug.plant(package)
    result = run_tests(package, bug.tests, *(("-k", bug.only) if bug.only else ()))
    assert result.returncode == TESTS_FAILED, result.stdout


@pytest.mark.slow  # the same, and all golden tests to the end
def test_without_a_bug_the_same_tests_pass_on_the_copy(package):
    (package / "where.py").write_text("")
    probe = "import fluss.where; print(fluss.where.__file__)"
    files = sorted({bug.tests for bug in BUGS})
    result = run_tests(package, *files)
    assert result.returncode == 0, result.stdout
    seen = subprocess.run(
        [sys.executable, "-c", probe],
        env=os.environ | {"PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(seen.stdout.strip()) == package / "where.py", "the copy was not what ran"
