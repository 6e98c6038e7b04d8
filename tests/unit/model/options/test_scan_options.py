"""The one table of scan options: what each takes, as values and as text, and what contradicts."""

import pytest

from fluss import col
from fluss.errors import ConfigError, InvalidValueError
from fluss.model.options.bounds import BoundKind
from fluss.model.options.scan_options import (
    METADATA_COLUMNS,
    SCAN_OPTIONS,
    Mode,
    Order,
    ScanOptions,
    scan_options,
)


def test_every_option_stands_in_the_table_and_says_what_it_does():
    assert set(SCAN_OPTIONS) == set(ScanOptions.__dataclass_fields__)
    assert all(each.doc.endswith(".") for each in SCAN_OPTIONS.values())


def test_values_and_texts_mean_the_same():
    by_value = scan_options(
        {"columns": ["a", "b"], "tail": 5, "limit": 7, "order": "bucket", "mode": "changelog"}
    )
    by_text = scan_options(
        {"columns": "a, b", "tail": "5", "limit": "7", "order": "BUCKET", "mode": "Changelog"}
    )
    assert by_value == by_text
    assert (by_value.order, by_value.mode) == (Order.BUCKET, Mode.CHANGELOG)


def test_what_is_none_is_not_set():
    assert scan_options({"columns": None, "limit": None}) == ScanOptions()


def test_partitions_are_named_or_described():
    options = scan_options({"partitions": "EU,year=2026/region=US"})
    assert options.partitions == ("EU", (("year", ("2026",)), ("region", ("US",))))
    options = scan_options({"partitions": {"region": ["EU", "US"]}})
    assert options.partitions == ((("region", ("EU", "US")),),)


def test_all_metadata_or_some():
    assert scan_options({"with_metadata": True}).with_metadata == METADATA_COLUMNS
    assert scan_options({"with_metadata": "true"}).with_metadata == METADATA_COLUMNS
    assert scan_options({"with_metadata": False}).with_metadata == ()
    assert scan_options({"with_metadata": ["_bucket"]}).with_metadata == ("_bucket",)


def test_as_of_is_a_bound_like_the_others():
    bound = scan_options({"as_of": "-1h"}).as_of
    assert bound is not None
    assert bound.kind is BoundKind.AGO


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tali": 5}, "did you mean 'tail'"),
        ({"order": "buckets"}, "did you mean 'bucket'"),
        ({"with_metadata": ["_ofset"]}, "no metadata column"),
        ({"limit": -1}, "not a number of rows"),
        ({"limit": True}, "not a number of rows"),
        ({"tail": 1.5}, "not a number of rows"),
        ({"max_parallel": 0}, "from 1 to"),
        ({"columns": ["a", "a"]}, "twice"),
        ({"columns": [1]}, "no text"),
        ({"columns": 5}, "not a list"),
        ({"filter": 5}, "SQL or a predicate"),
        ({"filter": "id >"}, "position 5"),
        ({"filter": ""}, "position 1"),
        ({"partitions": [5]}, "partition"),
        ({"missing_partitions": "ignore"}, "'skip'"),
        ({"on_trimmed": "skip"}, "'earliest'"),
        ({"as_of": 5, "end": 6}, "both given"),
        ({"as_of": 5, "start": 3}, "both given"),
        ({"start": 9, "end": 3}, "ends before"),
        ({"start": "-1m", "end": "-2m"}, "ends before"),
        ({"start": {0: 5, 1: 7}, "end": {1: 6}}, "bucket 1 begins at offset 7"),
        ({"mode": "state", "tail": 3}, "mode='state'"),
        ({"metadata_prefix": ""}, "beginning"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, said):
    with pytest.raises((ConfigError, InvalidValueError), match=said):
        scan_options(given)


def test_a_filter_is_kept_as_it_is():
    predicate = col("id") > 5
    assert scan_options({"filter": predicate}).filter is predicate
