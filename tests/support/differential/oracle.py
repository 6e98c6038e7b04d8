"""The Java oracle as an object: one JVM that answers with Apache Fluss's own classes.

Each method is one kind of question and takes many values, because a question costs a round trip
through a pipe and a value costs hardly anything. Jar and Java are those of `fluss_testkit`;
`tests.support.differential.fix_oracle` starts the JVM and counts the comparisons.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from fluss.errors import MissingRuntimeError
from fluss.model.types.data_type import DataType
from fluss_testkit.artifact import FLUSS_SERVER, find_jar
from fluss_testkit.java_runtime import JavaRuntime, find_java
from tests.support.differential.oracle_types import (
    BatchHeader,
    DocumentKind,
    Enumerations,
    KvFormat,
    Lake,
    LogFormat,
    ReadKvBatch,
    ReadLogBatch,
    RowFormat,
)
from tests.support.differential.oracle_wire import Answer, Question
from tests.support.generators.seeded_values import row_type
from tests.support.java_programs import java_command

FLUSS_VERSION = FLUSS_SERVER.version
JAVA_FLOOR = 17
SOURCE = Path(__file__).resolve().parents[3] / "tools" / "Oracle.java"

Rows = Sequence[Sequence[Any]]
Types = Sequence[DataType]

# Arrow accesses its buffers through java.nio; the rest speeds up the start of a short-lived JVM.
_JVM_OPTIONS = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-ea",
)
_CLOSE_SECONDS = 10
T = TypeVar("T")


class OracleUnavailableError(Exception):
    """Java or the jar is missing; the message names the remedy."""


class JavaRefusedError(Exception):
    """Fluss threw: the message is its stack trace."""


class Oracle:
    """A running JVM, for one thread at a time; close it, or use it in a `with`."""

    def __init__(self, *, java: JavaRuntime, jar: Path) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        command = java_command(java, _JVM_OPTIONS, [jar], [SOURCE])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        answer = self._ask(Question("hello"))
        self.fluss_version = answer.name()
        self.java_version = answer.name()
        answer.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the JVM end by itself, which it does when its stdin does."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    # --- rows -----------------------------------------------------------------------------------

    def write_rows(
        self, row_format: RowFormat, types: Types, rows: Rows, *, fresh: bool = True
    ) -> list[bytes]:
        """The bytes of each row.

        With `fresh=False` Java encodes as its clients do, reusing array writers: what stands in
        the slot of a null element is then left over from another array.
        """
        question = Question("write_rows").name(row_format).flag(fresh)
        return self._many(question.type(row_type(types)).rows(types, rows))

    def read_rows(
        self, row_format: RowFormat, types: Types, encoded: Sequence[bytes]
    ) -> list[tuple[Any, ...]]:
        """The values of each encoded row."""
        question = Question("read_rows").name(row_format).type(row_type(types)).many(encoded)
        answer = self._ask(question)
        return _ended(answer, answer.rows(types))

    # --- keys, buckets, partitions --------------------------------------------------------------

    def primary_keys(
        self,
        types: Types,
        keys: Sequence[int],
        rows: Rows,
        *,
        lake: Lake = None,
        kv_format_version: int = 2,
        is_default_bucket_key: bool = True,
    ) -> list[bytes]:
        """The primary key of each row; `keys` are positions."""
        question = Question("write_keys").flag(True).name(lake or "").int32(kv_format_version)
        question.flag(is_default_bucket_key).type(row_type(types)).texts(_names(keys))
        return self._many(question.rows(types, rows))

    def bucket_keys(
        self, types: Types, keys: Sequence[int], rows: Rows, *, lake: Lake = None
    ) -> list[bytes]:
        """The bucket key of each row; `keys` are positions."""
        question = Question("write_keys").flag(False).name(lake or "").int32(2)
        question.flag(True).type(row_type(types)).texts(_names(keys))
        return self._many(question.rows(types, rows))

    def read_primary_keys(
        self,
        types: Types,
        keys: Sequence[int],
        encoded: Sequence[bytes],
        *,
        lake: Lake = None,
        kv_format_version: int = 2,
        is_default_bucket_key: bool = True,
    ) -> list[tuple[Any, ...]]:
        """The key columns of each encoded primary key."""
        question = Question("read_keys").name(lake or "").int32(kv_format_version)
        question.flag(is_default_bucket_key).type(row_type(types)).texts(_names(keys))
        answer = self._ask(question.many(encoded))
        return _ended(answer, answer.rows([types[key] for key in keys]))

    def buckets(self, keys: Sequence[bytes], bucket_count: int, *, lake: Lake = None) -> list[int]:
        """The bucket of each encoded bucket key."""
        answer = self._ask(Question("buckets").name(lake or "").int32(bucket_count).many(keys))
        return _ended(answer, [answer.int32() for _ in range(answer.int32())])

    def partition_texts(self, data_type: DataType, values: Sequence[Any]) -> list[str]:
        """Each value as it stands in a partition name."""
        question = Question("partition_texts").type(data_type).int32(len(values))
        for value in values:
            question.value(data_type, value)
        answer = self._ask(question)
        return _ended(answer, answer.texts())

    def partition_names(self, keys: Sequence[str], values: Sequence[str]) -> tuple[str, str]:
        """The name of a partition, and its qualified name."""
        answer = self._ask(Question("partition_names").texts(keys).texts(values))
        return _ended(answer, (answer.text(), answer.text()))

    def auto_partitions(
        self, zone: str, unit: str, moments: Sequence[tuple[int, int]]
    ) -> list[str]:
        """The partition for each (epoch milliseconds, units from there)."""
        question = Question("auto_partitions").name(zone).name(unit).int32(len(moments))
        for now, offset in moments:
            question.int64(now).int32(offset)
        answer = self._ask(question)
        return _ended(answer, answer.texts())

    # --- JSON -----------------------------------------------------------------------------------

    def write_type_json(self, types: Types) -> list[bytes]:
        """Each type as JSON."""
        question = Question("write_type_json").int32(len(types))
        for data_type in types:
            question.type(data_type)
        return self._many(question)

    def read_type_json(self, documents: Sequence[bytes]) -> list[DataType]:
        """The type each document describes."""
        answer = self._ask(Question("read_type_json").many(documents))
        return _ended(answer, [answer.type() for _ in range(answer.int32())])

    def json_again(
        self,
        kind: DocumentKind,
        documents: Sequence[bytes],
    ) -> list[bytes]:
        """Each document after Java has read it and written it again."""
        return self._many(Question("json").name(kind).many(documents))

    # --- batches --------------------------------------------------------------------------------

    def write_log(
        self,
        log_format: LogFormat,
        types: Types,
        records: Sequence[tuple[int, Sequence[Any]]],
        header: BatchHeader,
        *,
        compression: tuple[str, int] = ("NONE", -1),
    ) -> bytes:
        """A log batch of (change type, row) records, base offset and timestamp filled in."""
        question = Question("write_log").name(log_format).type(row_type(types))
        question.int8(header.magic).flag(header.append_only).int32(header.schema_id)
        question.int64(header.base_offset).int64(header.timestamp)
        question.int64(header.writer_id).int32(header.sequence)
        question.name(compression[0]).int32(compression[1]).int32(len(records))
        for change, row in records:
            question.int8(change).row(types, row)
        answer = self._ask(question)
        return _ended(answer, answer.data())

    def read_log(self, log_format: LogFormat, types: Types, data: bytes) -> list[ReadLogBatch]:
        """The batches that stand one after the other in `data`."""
        answer = self._ask(Question("read_log").name(log_format).type(row_type(types)).data(data))
        return _ended(answer, [_read_log_batch(answer, types) for _ in range(answer.int32())])

    def project_log(
        self,
        types: Types,
        positions: Sequence[int],
        data: bytes,
        *,
        compression: tuple[str, int] = ("NONE", -1),
    ) -> bytes:
        """Stored ARROW batches as a tablet server sends them when only some columns are asked."""
        question = Question("project_log").type(row_type(types))
        question.name(compression[0]).int32(compression[1]).int32(len(positions))
        for position in positions:
            question.int32(position)
        answer = self._ask(question.data(data))
        return _ended(answer, answer.data())

    def write_kv(
        self,
        kv_format: KvFormat,
        types: Types,
        records: Sequence[tuple[bytes, Sequence[Any] | None]],
        *,
        schema_id: int = 1,
        writer_id: int = -1,
        sequence: int = -1,
    ) -> bytes:
        """A KV batch of (key, row or None) records."""
        question = Question("write_kv").name(kv_format).type(row_type(types)).int32(schema_id)
        question.int64(writer_id).int32(sequence).int32(len(records))
        for key, row in records:
            question.data(key).flag(row is not None)
            if row is not None:
                question.row(types, row)
        answer = self._ask(question)
        return _ended(answer, answer.data())

    def read_kv(self, kv_format: KvFormat, types: Types, data: bytes) -> ReadKvBatch:
        """A KV batch whose checksum Java has found right."""
        answer = self._ask(Question("read_kv").name(kv_format).type(row_type(types)).data(data))
        magic, schema_id, writer_id = answer.int8(), answer.int32(), answer.int64()
        sequence, size = answer.int32(), answer.int32()
        records = [
            (answer.data(), answer.row(types) if answer.flag() else None)
            for _ in range(answer.int32())
        ]
        found = ReadKvBatch(
            magic=magic,
            schema_id=schema_id,
            writer_id=writer_id,
            sequence=sequence,
            size=size,
            records=records,
        )
        return _ended(answer, found)

    def write_values(
        self, kv_format: KvFormat, types: Types, rows: Rows, *, schema_id: int = 1
    ) -> tuple[list[bytes], bytes]:
        """Each row as a stored value, and all of them as a value batch."""
        question = Question("write_values").name(kv_format).type(row_type(types)).int32(schema_id)
        answer = self._ask(question.rows(types, rows))
        return _ended(answer, (answer.many(), answer.data()))

    def read_values(
        self, kv_format: KvFormat, types: Types, data: bytes
    ) -> list[tuple[int, tuple[Any, ...]]]:
        """The (schema id, row) pairs of a value batch."""
        answer = self._ask(Question("read_values").name(kv_format).type(row_type(types)).data(data))
        assert answer.int8() == 0, "Fluss 0.9.1 knows only magic 0"
        assert answer.int32() == len(data), "Java finds another length in the batch"
        count = answer.int32()
        return _ended(answer, [(answer.int32(), answer.row(types)) for _ in range(count)])

    # --- segment index files --------------------------------------------------------------------

    def write_offset_index(self, base_offset: int, entries: Sequence[tuple[int, int]]) -> bytes:
        """An index file of (offset, file position) entries."""
        question = Question("write_index").flag(True).int64(base_offset).int32(len(entries))
        for offset, position in entries:
            question.int64(offset).int32(position)
        answer = self._ask(question)
        return _ended(answer, answer.data())

    def write_time_index(self, base_offset: int, entries: Sequence[tuple[int, int]]) -> bytes:
        """A time index file of (timestamp, offset) entries."""
        question = Question("write_index").flag(False).int64(base_offset).int32(len(entries))
        for timestamp, offset in entries:
            question.int64(timestamp).int64(offset)
        answer = self._ask(question)
        return _ended(answer, answer.data())

    def look_up_index(
        self,
        kind: Literal["offset", "time"],
        base_offset: int,
        data: bytes,
        targets: Sequence[int],
    ) -> list[tuple[int, int]]:
        """What an index file finds for each offset or timestamp: an entry as it was written."""
        question = Question("look_up_index").flag(kind == "offset").int64(base_offset).data(data)
        question.int32(len(targets))
        for target in targets:
            question.int64(target)
        answer = self._ask(question)
        return _ended(answer, [(answer.int64(), answer.int64()) for _ in range(answer.int32())])

    # --- enumerations ---------------------------------------------------------------------------

    def enumerations(self) -> Enumerations:
        """The error codes, API keys and change types that Java knows."""
        answer = self._ask(Question("enumerations"))
        errors = [
            (answer.int32(), answer.name(), answer.flag(), answer.flag())
            for _ in range(answer.int32())
        ]
        api_keys = [
            (answer.int32(), answer.name(), answer.int32(), answer.int32(), answer.flag())
            for _ in range(answer.int32())
        ]
        changes = [(answer.int32(), answer.name(), answer.name()) for _ in range(answer.int32())]
        found = Enumerations(errors=errors, api_keys=api_keys, change_types=changes)
        return _ended(answer, found)

    # --- the pipe -------------------------------------------------------------------------------

    def _many(self, question: Question) -> list[bytes]:
        answer = self._ask(question)
        return _ended(answer, answer.many())

    def _ask(self, question: Question) -> Answer:
        body = question.body()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(struct.pack(">i", len(body)) + body)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        (length,) = struct.unpack(">i", self._read(4))
        answer = self._read(length)
        if answer[:1] == b"\x01":
            raise JavaRefusedError(answer[1:].decode())
        return Answer(answer[1:])

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None
        found = self._process.stdout.read(count)
        if len(found) < count:
            raise self._died()
        return found

    def _died(self) -> OracleUnavailableError:
        code = self._process.wait()
        self._log.seek(0)
        output = self._log.read().decode(errors="replace")[-4_000:]
        return OracleUnavailableError(
            f"The Java oracle ended with code {code}. It needs Java {JAVA_FLOOR} or newer. "
            f"Its output:\n{output}"
        )


def start() -> Oracle:
    """Start the JVM.

    Raises:
        OracleUnavailableError: There is no Java or no jar on this machine.
    """
    try:
        java = find_java()
        jar = find_jar(FLUSS_SERVER)
    except MissingRuntimeError as error:
        raise OracleUnavailableError(
            f"{error}\nThe oracle needs a JDK of version {JAVA_FLOOR} or newer."
        ) from error
    if java.version < JAVA_FLOOR:
        raise OracleUnavailableError(
            f"The oracle is written for Java {JAVA_FLOOR}, and {java.executable} is version "
            f"{java.version}. Install a newer JDK, or point JAVA_HOME at one."
        )
    return Oracle(java=java, jar=jar)


def _read_log_batch(answer: Answer, types: Types) -> ReadLogBatch:
    magic, is_valid = answer.int8(), answer.flag()
    base_offset, next_offset, timestamp = answer.int64(), answer.int64(), answer.int64()
    leader_epoch, schema_id = answer.int32(), answer.int32()
    writer_id, sequence, size = answer.int64(), answer.int32(), answer.int32()
    records = [
        (answer.int64(), answer.int64(), answer.int8(), answer.row(types))
        for _ in range(answer.int32())
    ]
    return ReadLogBatch(
        magic=magic,
        is_valid=is_valid,
        base_offset=base_offset,
        next_offset=next_offset,
        timestamp=timestamp,
        leader_epoch=leader_epoch,
        schema_id=schema_id,
        writer_id=writer_id,
        sequence=sequence,
        size=size,
        records=records,
    )


def _names(positions: Sequence[int]) -> list[str]:
    return [f"f{each}" for each in positions]


def _ended(answer: Answer, found: T) -> T:
    answer.end()
    return found
