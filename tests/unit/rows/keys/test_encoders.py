"""Key encodings; the expected bytes are Java's: of Fluss 0.9.1, for Hudi of 1.0."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import (
    ConfigError,
    InvalidValueError,
    UnsupportedTypeError,
    UnsupportedVersionError,
)
from fluss.model.types.data_type import (
    ArrayType,
    BigIntType,
    BinaryType,
    BooleanType,
    BytesType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    StringType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)
from fluss.rows.buffers.columns import Column
from fluss.rows.keys.bucketing import bucket_function
from fluss.rows.keys.encoders import (
    CompactedKeyEncoder,
    HudiKeyEncoder,
    IcebergKeyEncoder,
    PaimonKeyEncoder,
    bucket_key_encoder,
    primary_key_encoder,
)
from fluss.rows.keys.hudi_keys import HUDI_KEY_TYPES, string_hash
from fluss.rows.keys.iceberg_keys import ICEBERG_KEY_TYPES
from tests.support.generators.random_columns import columns_of
from tests.support.generators.random_values import KEY_TYPES, random_rows, values

KEY = (IntType().not_null(), StringType().not_null())
LAKES = ("paimon", "iceberg")
FORMATS = (None, "lance", "paimon", "iceberg", "hudi")

ICEBERG = [
    (IntType(), 5, "0500000000000000"),
    (IntType(), -1, "ffffffffffffffff"),
    (DateType(), 20455, "e74f000000000000"),
    (BigIntType(), 123456789012, "141a99be1c000000"),
    (TimeType(0), 1, "40420f0000000000"),
    (TimeType(9), 1_001_000_000, "28460f0000000000"),
    (TimestampType(0), -1, "c0bdf0ffffffffff"),
    (TimestampType(3), 1767323045678, "b04b57f65e470600"),
    (TimestampType(6), -1, "ffffffffffffffff"),
    (TimestampType(9), -1, "ffffffffffffffff"),
    (FloatType(), 1.5, "0000c03f"),
    (DoubleType(), -0.0, "0000000000000080"),
    (DecimalType(5, 2), -128, "80"),
    (DecimalType(38, 0), 10**37, "0785ee10d5da46d900f436a000000000"),
    (StringType(), "é", "c3a9"),
    (CharType(3), "ab", "6162"),
    (BytesType(), b"\x00", "00"),
    (BinaryType(2), b"\xff\x01", "ff01"),
    # Beyond 64 bits of microseconds Java's arithmetic wraps.
    (TimestampType(3), 2**62 + 1, "e803000000000000"),
]
# types, row, key, its bucket of 7 where it was recorded
HUDI = [
    ((IntType(),), (5,), "00000054", 0),
    ((IntType(),), (-1,), "000005c3", 5),
    ((BigIntType(),), (123456789012,), "616cc21b", 3),
    ((StringType(),), ("abc",), "00017881", 2),
    ((StringType(),), ("",), "0000001f", 3),
    ((StringType(), IntType()), ("x", 7), "00001280", 4),
    ((DoubleType(),), (1.5,), "0000bdd7", 5),
    ((DateType(),), (20455,), "02d732f5", 2),
    ((TimestampType(3),), (1767323045678,), "06d56a3d", 0),
    ((BooleanType(),), (True,), "003675ad", 0),
    ((StringType(),), (None,), "f0582fa6", 5),
    ((FloatType(), TimeType(6)), (3.4e10, 1_001_000), "44314c15", None),
    ((TimestampType(6), DecimalType(5, 2)), (-1, -5), "ccddcd90", None),
    # Far off, the days of a TIMESTAMP wrap, those of a TIMESTAMP_LTZ do not.
    ((TimestampType(3),), (2**63 - 1,), "79e82488", None),
    ((TimestampLtzType(3),), (2**63 - 1,), "a3c32b2d", None),
]


@pytest.mark.parametrize(
    ("lake_format", "version", "is_default", "primary", "bucket"),
    [
        (None, 1, True, CompactedKeyEncoder, CompactedKeyEncoder),
        (None, 1, False, CompactedKeyEncoder, CompactedKeyEncoder),
        (None, 2, True, CompactedKeyEncoder, CompactedKeyEncoder),
        (None, 2, False, CompactedKeyEncoder, CompactedKeyEncoder),
        ("lance", 1, True, CompactedKeyEncoder, CompactedKeyEncoder),
        ("lance", 2, False, CompactedKeyEncoder, CompactedKeyEncoder),
        ("paimon", 1, True, PaimonKeyEncoder, PaimonKeyEncoder),
        ("paimon", 1, False, PaimonKeyEncoder, PaimonKeyEncoder),
        ("paimon", 2, True, PaimonKeyEncoder, PaimonKeyEncoder),
        ("paimon", 2, False, CompactedKeyEncoder, PaimonKeyEncoder),
        ("iceberg", 1, True, IcebergKeyEncoder, IcebergKeyEncoder),
        ("iceberg", 1, False, IcebergKeyEncoder, IcebergKeyEncoder),
        ("iceberg", 2, True, IcebergKeyEncoder, IcebergKeyEncoder),
        ("iceberg", 2, False, CompactedKeyEncoder, IcebergKeyEncoder),
        ("hudi", 1, True, CompactedKeyEncoder, HudiKeyEncoder),
        ("hudi", 2, True, CompactedKeyEncoder, HudiKeyEncoder),
        ("hudi", 2, False, CompactedKeyEncoder, HudiKeyEncoder),
        ("PAIMON", 2, True, PaimonKeyEncoder, PaimonKeyEncoder),
    ],
)
def test_a_table_has_the_encoders_that_java_gives_it(
    lake_format, version, is_default, primary, bucket
):
    types = [StringType().not_null()]
    primary_encoder = primary_key_encoder(
        types,
        lake_format=lake_format,
        kv_format_version=version,
        is_default_bucket_key=is_default,
    )
    bucket_encoder = bucket_key_encoder(types, lake_format=lake_format)
    assert type(primary_encoder) is primary
    assert type(bucket_encoder) is bucket
    assert (primary_encoder == bucket_encoder) == (primary is bucket)
    assert len({primary_encoder, bucket_encoder}) == (1 if primary is bucket else 2)


def test_a_table_without_a_version_has_version_1():
    encoder = primary_key_encoder(KEY, lake_format="paimon", is_default_bucket_key=False)
    assert type(encoder) is PaimonKeyEncoder


def test_a_primary_key_takes_no_null_whatever_its_types_say():
    for lake_format in (None, "paimon", "iceberg"):
        encoder = primary_key_encoder(
            [IntType()], lake_format=lake_format, kv_format_version=2, is_default_bucket_key=True
        )
        with pytest.raises(InvalidValueError, match="NULL"):
            encoder.encode_row((None,))
        with pytest.raises(InvalidValueError, match=r"In row 1: .* NULL") as caught:
            encoder.encode_rows(columns_of([IntType()], [(1,), (None,)]))
        assert (caught.value.column, caught.value.row) == (0, 1)


def test_unknown_formats_and_versions_are_refused():
    with pytest.raises(ConfigError, match="'delta'"):
        bucket_key_encoder(KEY, lake_format="delta")
    with pytest.raises(UnsupportedVersionError, match="version 3"):
        primary_key_encoder(KEY, lake_format=None, kv_format_version=3, is_default_bucket_key=True)


@pytest.mark.parametrize(("data_type", "value", "key"), ICEBERG)
def test_an_iceberg_key_has_the_bytes_that_java_gives_it(data_type, value, key):
    encoder = bucket_key_encoder([data_type], lake_format="iceberg")
    assert encoder.encode_row((value,)).hex() == key
    keys = encoder.encode_rows(columns_of([data_type], [(value,)] * 3))
    assert [each.hex() for each in keys] == [key] * 3


@pytest.mark.parametrize(("types", "row", "key", "bucket"), HUDI)
def test_a_hudi_key_has_the_bytes_that_java_gives_it(types, row, key, bucket):
    encoder = bucket_key_encoder(types, lake_format="hudi")
    assert encoder.encode_row(row).hex() == key
    assert encoder.encode_rows(columns_of(types, [row]))[0].hex() == key
    assert bucket in {None, bucket_function("hudi").bucket(encoder.encode_row(row), 7)}


def test_null_counts_as_nothing_among_other_parts_of_a_hudi_key():
    types = (StringType(), StringType())
    encoder = bucket_key_encoder(types, lake_format="hudi")
    assert encoder.encode_row((None, None)) == (31 * 31).to_bytes(4, "big")
    assert encoder.encode_row((None, None)) == encoder.encode_row(("", ""))


@st.composite
def key_tables(draw):
    """A lake format, types it can encode, and rows."""
    lake_format = draw(st.sampled_from(FORMATS))
    supported = {"iceberg": ICEBERG_KEY_TYPES, "hudi": HUDI_KEY_TYPES}.get(lake_format)
    pool = [each for each in KEY_TYPES if supported is None or isinstance(each, supported)]
    columns = 1 if lake_format == "iceberg" else draw(st.integers(1, 3))
    takes_null = lake_format in {"paimon", "hudi"}
    types = draw(
        st.lists(
            st.sampled_from(pool if takes_null else [each.not_null() for each in pool]),
            min_size=columns,
            max_size=columns,
        )
    )
    rows = draw(st.lists(st.tuples(*map(values, types)), max_size=8))
    if lake_format == "hudi":
        rows = [row for row in rows if not any(isinstance(v, str) and "," in v for v in row)]
    return lake_format, types, rows


@given(key_tables())
def test_columns_and_single_rows_become_the_same_keys(table):
    lake_format, types, rows = table
    encoder = bucket_key_encoder(types, lake_format=lake_format)
    keys = encoder.encode_rows(columns_of(types, rows))
    assert list(keys) == [encoder.encode_row(row) for row in rows]


@pytest.mark.parametrize("lake_format", FORMATS)
def test_many_rows_become_the_keys_of_each_of_them(lake_format):
    rng = Random(3)
    supported = {"iceberg": ICEBERG_KEY_TYPES, "hudi": HUDI_KEY_TYPES}.get(lake_format)
    for data_type in KEY_TYPES:
        if supported is not None and not isinstance(data_type, supported):
            continue
        types = [data_type.not_null()]
        rows = random_rows(rng, types, 200)
        encoder = bucket_key_encoder(types, lake_format=lake_format)
        assert list(encoder.encode_rows(columns_of(types, rows))) == [
            encoder.encode_row(row) for row in rows
        ]


@pytest.mark.parametrize(
    ("text", "is_misread"),
    [("a,b", True), ("__null__", True), ("__empty__", True), ("a:b", False), ("_null_", False)],
)
def test_a_hudi_key_of_several_parts_refuses_what_hudi_would_misread(text, is_misread):
    types = (StringType(), IntType())
    encoder = bucket_key_encoder(types, lake_format="hudi")
    columns = columns_of(types, [("fine", 0), (text, 1)])
    alone = bucket_key_encoder(types[:1], lake_format="hudi")
    assert list(alone.encode_rows(columns[:1]))[1] == alone.encode_row((text,))
    if not is_misread:
        assert list(encoder.encode_rows(columns))[1] == encoder.encode_row((text, 1))
        return
    with pytest.raises(InvalidValueError, match="splits a key") as caught:
        encoder.encode_row((text, 1))
    assert caught.value.column == 0
    with pytest.raises(InvalidValueError, match="In row 1: ") as caught:
        encoder.encode_rows(columns)
    assert (caught.value.column, caught.value.row) == (0, 1)


def test_an_iceberg_table_has_one_bucket_key():
    with pytest.raises(UnsupportedTypeError, match="one bucket key column, not 2") as caught:
        bucket_key_encoder(KEY, lake_format="iceberg")
    assert "Set one bucket key" in caught.value.hint


@pytest.mark.parametrize(
    ("lake_format", "data_type"),
    [
        ("iceberg", BooleanType()),
        ("iceberg", TinyIntType()),
        ("iceberg", TimestampLtzType(3)),
        ("iceberg", ArrayType(IntType())),
        ("hudi", BytesType()),
        ("hudi", BinaryType(3)),
        ("hudi", ArrayType(IntType())),
        ("paimon", ArrayType(IntType())),
    ],
)
def test_a_type_the_lake_cannot_bucket_by_is_refused(lake_format, data_type):
    with pytest.raises(UnsupportedTypeError) as caught:
        bucket_key_encoder([data_type], lake_format=lake_format)
    assert caught.value.hint


@pytest.mark.parametrize("lake_format", [None, "iceberg"])
def test_a_bucket_key_that_has_no_null_refuses_it(lake_format):
    encoder = bucket_key_encoder([StringType()], lake_format=lake_format)
    with pytest.raises(InvalidValueError, match="NULL") as caught:
        encoder.encode_row((None,))
    assert caught.value.column == 0
    with pytest.raises(InvalidValueError, match=r"In row 2: .* NULL") as caught:
        encoder.encode_rows(columns_of([StringType()], [("a",), ("b",), (None,)]))
    assert caught.value.row == 2


@pytest.mark.parametrize("lake_format", ["paimon", "hudi"])
def test_a_bucket_key_that_has_a_null_takes_it_only_where_the_column_does(lake_format):
    nullable = bucket_key_encoder([IntType()], lake_format=lake_format)
    assert nullable.encode_rows(columns_of([IntType()], [(None,)]))[0] == nullable.encode_row(
        (None,)
    )
    required = bucket_key_encoder([IntType().not_null()], lake_format=lake_format)
    with pytest.raises(InvalidValueError, match="NULL"):
        required.encode_row((None,))
    with pytest.raises(InvalidValueError, match="NULL"):
        required.encode_rows(columns_of([IntType()], [(None,)]))


@pytest.mark.parametrize("lake_format", FORMATS)
def test_a_value_of_another_type_is_refused_with_its_column(lake_format):
    encoder = bucket_key_encoder([StringType().not_null()], lake_format=lake_format)
    with pytest.raises(InvalidValueError) as caught:
        encoder.encode_row((5,))
    assert caught.value.column == 0
    with pytest.raises(InvalidValueError):
        encoder.encode_row(("half a pair: \ud83d",))
    with pytest.raises(InvalidValueError):
        encoder.encode_row(("a", "b"))


@pytest.mark.parametrize("lake_format", FORMATS)
def test_columns_of_another_key_are_a_mistake_of_the_caller(lake_format):
    encoder = bucket_key_encoder([BigIntType()], lake_format=lake_format)
    with pytest.raises(ValueError, match="key column 0 is BIGINT, not INT"):
        encoder.encode_rows(columns_of([IntType()], [(1,)]))
    with pytest.raises(ValueError, match="1 columns was given 2"):
        encoder.encode_rows(columns_of([BigIntType(), BigIntType()], [(1, 2)]))


def test_hudi_refuses_text_that_is_no_utf_8():
    column = Column(
        type=StringType(),
        length=1,
        values=np.array([0xFF], np.uint8),
        offsets=np.array([0, 1], np.int32),
    )
    with pytest.raises(InvalidValueError, match="UTF-8") as caught:
        bucket_key_encoder([StringType()], lake_format="hudi").encode_rows([column])
    assert caught.value.column == 0


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("abc", 96354), ("true", 3569038), ("é€😀", 16752006)],
)
def test_a_text_hashes_as_in_java(text, code):
    assert string_hash(text) == code


def test_half_a_surrogate_pair_has_no_hash():
    with pytest.raises(UnicodeEncodeError):
        string_hash("\ud83d")
