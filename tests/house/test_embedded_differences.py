"""Each listed difference of the embedded server belongs to a test that exists."""

from pathlib import Path

import pytest

from tests.support.servers.embedded_differences import DIFFERENCES

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_names_a_test(name):
    file, _, function = name.partition("::")
    assert any(f"def {function}(" in path.read_text() for path in TESTS.rglob(file))
