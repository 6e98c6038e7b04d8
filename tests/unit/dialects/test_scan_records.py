import pytest

from fluss.dialects.scan_records import COLUMNS_MAX, row_dicts


@pytest.mark.parametrize("count", [1, 2, 7, COLUMNS_MAX, COLUMNS_MAX + 1])
def test_rows_are_dictionaries_in_the_order_of_the_columns(count):
    names = [f"c{each}" for each in range(count)]
    columns = [[each, -each, None] for each in range(count)]
    rows = row_dicts(names, columns)
    assert rows == [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    assert list(rows[0]) == names


def test_names_are_taken_as_they_are():
    rows = row_dicts(["n1", 'quote"d', "class"], [[1], [2], [3]])
    assert rows == [{"n1": 1, 'quote"d': 2, "class": 3}]


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        row_dicts(["a", "b"], [[1, 2], [3]])
