"""The names of segment files."""

from __future__ import annotations

from fluss.records.log.segment import segment_file_name


def test_a_file_is_named_after_its_first_offset():
    assert segment_file_name(0, "log") == "00000000000000000000.log"
    assert segment_file_name(2**63 - 1, "timeindex") == "09223372036854775807.timeindex"
