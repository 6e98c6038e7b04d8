"""The rule for time zones, by type."""

import pyarrow as pa
import pytest

from fluss.model.values.time_zones import lacks_zone, loses_zone

PLAIN = pa.timestamp("us")
ZONED = pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda kind: kind,
        pa.list_,
        lambda kind: pa.struct([("a", pa.int64()), ("t", kind)]),
        lambda kind: pa.map_(pa.string(), kind),
        lambda kind: pa.list_(pa.struct([("t", pa.list_(kind))])),
    ],
    ids=["plain", "list", "struct", "map", "nested"],
)
def test_a_zone_that_is_missing_or_lost_is_seen_in_every_depth(wrap):
    plain, zoned = wrap(PLAIN), wrap(ZONED)
    assert lacks_zone(plain, zoned)
    assert loses_zone(zoned, plain)
    for other in ((plain, plain), (zoned, zoned), (zoned, plain)):
        assert not lacks_zone(*other)
    for other in ((plain, plain), (zoned, zoned), (plain, zoned)):
        assert not loses_zone(*other)


def test_other_types_have_no_zones():
    assert not lacks_zone(pa.int64(), ZONED)
    assert not loses_zone(pa.struct([("t", ZONED)]), pa.list_(PLAIN))
    wider = pa.struct([("u", PLAIN), ("t", PLAIN)])
    assert loses_zone(pa.struct([("t", ZONED)]), wider), "fields belong together by name"
    assert not loses_zone(pa.struct([("other", ZONED)]), wider)
