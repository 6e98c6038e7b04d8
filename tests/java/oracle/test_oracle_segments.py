"""Index files of a remote segment: our bytes are Java's, and both find the same entries."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from fluss_server.log.index_files import OffsetIndex, TimeIndex

BASES = (0, 1_000, 2**40)
LOOKUPS = 300


def ascending(rng, count, low, high):
    return sorted(rng.sample(range(low, high), count))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("count", [1, 2, 50])
def test_an_offset_index_agrees(oracle, compare, base, count):
    rng = Random(count)
    offsets = ascending(rng, count, base, base + 2**31 - 1)
    positions = ascending(rng, count, 0, 2**31 - 1)
    entries = list(zip(offsets, positions, strict=True))
    java = oracle.write_offset_index(base, entries)
    ours = OffsetIndex(
        first_offset=base, offsets=np.array(offsets), positions=np.array(positions)
    ).write()
    compare.others("offset indexes: our bytes", [entries], ours=[ours], java=[java])
    targets = [base, *offsets, *(rng.randrange(base, base + 2**31) for _ in range(LOOKUPS))]
    index = OffsetIndex.read(java, first_offset=base)
    found = [index.position_for(each) for each in targets]
    expected = [each[1] for each in oracle.look_up_index("offset", base, ours, targets)]
    compare.others("offset indexes: positions", targets, ours=found, java=expected)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("count", [1, 2, 50])
def test_a_time_index_agrees(oracle, compare, base, count):
    rng = Random(count)
    timestamps = ascending(rng, count, 0, 2**44)
    offsets = ascending(rng, count, base, base + 2**31 - 1)
    entries = list(zip(timestamps, offsets, strict=True))
    java = oracle.write_time_index(base, entries)
    ours = TimeIndex(
        first_offset=base, timestamps=np.array(timestamps), offsets=np.array(offsets)
    ).write()
    compare.others("time indexes: our bytes", [entries], ours=[ours], java=[java])
    targets = [0, 2**62, *timestamps, *(rng.randrange(2**44) for _ in range(LOOKUPS))]
    index = TimeIndex.read(java, first_offset=base)
    found = [index.offset_for(each) for each in targets]
    expected = [each[1] for each in oracle.look_up_index("time", base, ours, targets)]
    compare.others("time indexes: offsets", targets, ours=found, java=expected)
