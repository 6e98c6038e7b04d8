"""Arrays over buffers are those that pyarrow would make, and pandas stays where it is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from fluss.records.arrow.numpy_arrays import empty_batch, from_numpy, texts, to_numpy

DTYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "?")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1_000])
def test_numbers_are_those_that_pyarrow_would_make(dtype, count):
    values = np.arange(count).astype(dtype)
    valid = np.arange(count) % 3 != 1
    made = from_numpy(values)
    made.validate(full=True)
    assert made.equals(pa.array(values))
    assert from_numpy(values, valid=valid).equals(pa.array(values, mask=~valid))
    assert from_numpy(values[::2]).equals(pa.array(values[::2]))
    if dtype[0] != "f":
        for start in (0, 1, 5, 9):
            back = to_numpy(made.slice(start))
            assert back.dtype == values.dtype
            assert np.array_equal(back, values[start:])


def test_texts_are_those_that_pyarrow_would_make():
    for given in ([], ["a"], ["", None, "größer", "日本"]):
        made = texts(given)
        made.validate(full=True)
        assert made.equals(pa.array(given, pa.string()))


def test_null_is_no_number():
    with pytest.raises(AssertionError, match="NULL"):
        to_numpy(pa.nulls(3, pa.int64()))


def test_a_batch_without_rows_has_its_columns():
    schema = pa.schema(
        [
            ("a", pa.int64()),
            pa.field("s", pa.struct([("x", pa.list_(pa.string()))]), nullable=False),
        ]
    )
    made = empty_batch(schema)
    made.validate(full=True)
    assert (made.schema, made.num_rows) == (schema, 0)


def test_pandas_is_not_imported():
    program = (
        "import sys, numpy as np\n"
        "from fluss.records.arrow.numpy_arrays import *\n"
        "made = from_numpy(np.arange(5), valid=np.ones(5, bool))\n"
        "assert to_numpy(made).sum() == 10 and len(texts(['a'])[:1]) == 1\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
