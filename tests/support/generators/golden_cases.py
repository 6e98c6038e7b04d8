"""The cases of the golden files as plain values; the recorded answers are in tests/java/golden.

A case has a name that is unique in its file. `tools/record_golden.py` asks Java, and the tests in
tests/java/golden ask our codecs; both take the cases from here. A file stores the text of each case
beside its answer, so that a case that changes without being recorded again is detected.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from fluss.model.types.data_type import (
    BigIntType,
    BooleanType,
    BytesType,
    CharType,
    DataField,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    MapType,
    RowType,
    SmallIntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TinyIntType,
)
from tests.support.differential.oracle_types import BatchHeader, KvFormat, LogFormat
from tests.support.generators.seeded_values import (
    KEY_TYPES,
    LEAF_TYPES,
    NESTED_TYPES,
    corners,
    random_rows,
    with_field_ids,
)

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCase:
    """Rows of one shape."""

    name: str
    types: tuple[DataType, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCase:
    """One log batch; `records` are (change type, row)."""

    name: str
    log_format: LogFormat
    types: tuple[DataType, ...]
    header: BatchHeader
    records: tuple[tuple[int, Row], ...]
    compression: tuple[str, int] = ("NONE", -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCase:
    """One KV batch; `records` are (key, row or None)."""

    name: str
    kv_format: KvFormat
    types: tuple[DataType, ...]
    records: tuple[tuple[bytes, Row | None], ...]
    schema_id: int = 1
    writer_id: int = -1
    sequence: int = -1


def _leaf_case(data_type: DataType) -> RowCase:
    values = (*corners(data_type), None)
    return RowCase(name=str(data_type), types=(data_type,), rows=tuple((v,) for v in values))


def _nested_case(data_type: DataType) -> RowCase:
    rows = random_rows(Random(str(data_type)), (data_type,), 6)
    return RowCase(name=str(data_type), types=(data_type,), rows=tuple(rows))


def _wide_case(width: int) -> RowCase:
    """Rows with a column of each type: without NULL, all NULL, and every third value NULL."""
    kinds = (*LEAF_TYPES[3:5], StringType(), *LEAF_TYPES[12:16], BooleanType(), *NESTED_TYPES[:1])
    types = tuple(kinds[index % len(kinds)] for index in range(width))
    full = random_rows(Random(width), types, 1, null_rate=0)[0]
    sparse = (
        tuple(None if index % 3 == start else value for index, value in enumerate(full))
        for start in range(3)
    )
    return RowCase(name=f"{width} columns", types=types, rows=(full, (None,) * width, *sparse))


ROW_CASES = (
    *map(_leaf_case, LEAF_TYPES),
    *map(_nested_case, NESTED_TYPES),
    *map(_wide_case, (2, 7, 8, 9, 16, 17)),
)

# An Iceberg key is one column; BOOLEAN, the small integers and TIMESTAMP_LTZ cannot be one.
_NO_ICEBERG_KEY = (BooleanType, TinyIntType, SmallIntType, TimestampLtzType)
KEY_CASES = tuple(
    RowCase(
        name=str(each.not_null()),
        types=(each.not_null(),),
        rows=tuple((value,) for value in corners(each)),
    )
    for each in KEY_TYPES
)
ICEBERG_KEY_CASES = tuple(
    each for each in KEY_CASES if not isinstance(each.types[0], _NO_ICEBERG_KEY)
)
WIDE_KEY_CASES = tuple(
    RowCase(
        name=str(RowType(tuple(DataField(f"k{i}", t) for i, t in enumerate(types)))),
        types=types,
        rows=tuple(random_rows(Random(len(types)), types, 5)),
    )
    for types in (
        (IntType().not_null(), StringType().not_null()),
        (StringType().not_null(), StringType().not_null(), BigIntType().not_null()),
        (
            CharType(3).not_null(),
            DecimalType(30, 5).not_null(),
            TimestampType(9).not_null(),
            DoubleType().not_null(),
            BytesType().not_null(),
        ),
    )
)

# All lengths of the last word, with bytes below and above 0x80: Paimon's keys use 8-byte words.
BUCKET_KEYS = tuple(
    bytes((7 * i + start) & 0xFF for i in range(length))
    for length in (1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 31)
    for start in (0, 0x7D, 0xF0)
) + tuple(
    bytes.fromhex(each)
    for each in ("8001", "ffffffffffffffffff01", "808080808020", "04", "000a", "c3a9")
)
PAIMON_BUCKET_KEYS = tuple(each * 8 for each in BUCKET_KEYS[:24])
BUCKET_COUNTS = (1, 3, 7, 128)

PARTITION_CASES = tuple(each for each in KEY_CASES if not isinstance(each.types[0], DecimalType))

_ORDER = (BigIntType().not_null(), StringType(), DecimalType(10, 2), TimestampType(3))
_ORDER_ROWS: tuple[Row, ...] = (
    (1, "first", 1_050, 1_700_000_000_000),
    (-2, None, None, None),
    (300, "größer \U0001f600", -99, -1),
)
_NESTED = (
    IntType(),
    MapType(StringType(), FloatType()),
    RowType((DataField("d", DateType()), DataField("b", BytesType()))),
)
_NESTED_ROWS: tuple[Row, ...] = (
    (7, [("a", 1.5), ("b", None)], (19_000, b"\x00\xff")),
    (None, None, None),
    (8, [], (None, b"")),
)
_APPENDED = BatchHeader(schema_id=1, base_offset=0, timestamp=0)
_CHANGED = BatchHeader(
    append_only=False,
    schema_id=7,
    base_offset=1_000_000_000_000,
    timestamp=1_700_000_000_123,
    writer_id=2**62 + 5,
    sequence=41,
)


def _log_cases(log_format: LogFormat) -> list[LogCase]:
    def case(name: str, types: Any, rows: Any, header: BatchHeader, changes: Any) -> LogCase:
        records = tuple(zip(changes, rows, strict=True))
        return LogCase(
            name=f"{log_format} {name}",
            log_format=log_format,
            types=types,
            header=header,
            records=records,
        )

    old = BatchHeader(magic=1, append_only=False, schema_id=2, base_offset=5, timestamp=6)
    return [
        case("appended", _ORDER, _ORDER_ROWS, _APPENDED, (0, 0, 0)),
        case("changed", _ORDER, _ORDER_ROWS, _CHANGED, (1, 2, 4)),
        case("updated", _ORDER, _ORDER_ROWS[:2], _CHANGED, (2, 3)),
        case("nested", _NESTED, _NESTED_ROWS, _APPENDED, (0, 0, 0)),
        case("empty", _ORDER, (), _CHANGED, ()),
        case("with a leader epoch", _ORDER, _ORDER_ROWS, old, (1, 1, 1)),
    ]


LOG_CASES = (
    *_log_cases("ARROW"),
    *_log_cases("INDEXED"),
    *_log_cases("COMPACTED"),
    *(
        LogCase(
            name=f"ARROW compressed with {codec}",
            log_format="ARROW",
            types=_ORDER,
            header=_APPENDED,
            records=tuple((0, row) for row in _ORDER_ROWS * 40),
            compression=(codec, level),
        )
        for codec, level in (("ZSTD", 3), ("LZ4_FRAME", -1))
    ),
)

KV_CASES = tuple(
    KvCase(
        name=f"{kv_format} {name}",
        kv_format=kv_format,
        types=types,
        records=records,
        **header,
    )
    for kv_format in ("COMPACTED", "INDEXED")
    for name, types, records, header in (
        (
            "puts and deletes",
            _ORDER,
            ((b"\x01", _ORDER_ROWS[0]), (b"\x02", None), (b"k" * 200, _ORDER_ROWS[2])),
            {"schema_id": 3, "writer_id": 9, "sequence": 4},
        ),
        ("nested", _NESTED, tuple((b"\xff\x00", row) for row in _NESTED_ROWS), {}),
        ("empty", _ORDER, (), {"writer_id": 2**63 - 1, "sequence": 2**31 - 1}),
    )
)

VALUE_CASES = (
    RowCase(name="orders", types=_ORDER, rows=_ORDER_ROWS),
    RowCase(name="nested", types=_NESTED, rows=_NESTED_ROWS),
    RowCase(name="nothing", types=_ORDER, rows=()),
)
VALUE_SCHEMA_ID = 258

INDEX_BASE_OFFSET = 1_000
OFFSET_INDEX_ENTRIES = ((1_000, 0), (1_017, 4_196), (1_018, 70_000), (1_000_000, 2**31 - 1))
TIME_INDEX_ENTRIES = ((0, 1_000), (1_700_000_000_000, 1_017), (1_700_000_000_001, 1_000_000))

TYPE_CASES: tuple[DataType, ...] = tuple(
    with_field_ids(each)
    for each in (
        *LEAF_TYPES,
        *NESTED_TYPES,
        *(each.not_null() for each in (*LEAF_TYPES[:3], *NESTED_TYPES[:2])),
        RowType((DataField("a b", IntType(), 'what "it" is'), DataField("é", StringType()))),
    )
)
