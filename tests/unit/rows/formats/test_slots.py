"""Eight-byte slots as columns: what goes into them, and what is believed of them."""

from __future__ import annotations

import numpy as np
import pytest

from fluss.model.types.data_type import DecimalType, StringType, TimestampType
from fluss.rows.buffers.byte_runs import join_parts, runs_of
from fluss.rows.formats.slots import (
    OpenSlots,
    inline_slot,
    number_slots,
    pack_halves,
    placed_slots,
    rounded_up,
    section_slots,
)
from fluss.rows.formats.stored import SplitTimestamp


class RefusedError(Exception):
    pass


def refuse(wrong, why):
    raise RefusedError(np.flatnonzero(wrong).tolist(), why)


def runs(*texts):
    data = np.frombuffer(b"".join(texts), np.uint8)
    lengths = np.array([len(each) for each in texts], np.int64)
    return runs_of(data, np.cumsum(lengths) - lengths, lengths)


def hex_slots(slots, offsets):
    words = slots.with_offsets(np.array(offsets, np.int64))
    return [int(word).to_bytes(8, "little").hex() for word in words]


def variable_part(slots):
    return list(join_parts([slots.variable], len(slots.words)))


def test_text_of_up_to_seven_bytes_is_inline():
    valid = np.array([True, True, True, False])
    slots = placed_slots(runs(b"", b"1234567", b"12345678", b""), StringType(), valid)
    assert hex_slots(slots, [24] * 4) == [
        "00" * 7 + "80",
        b"1234567".hex() + "87",
        "08000000" + "18000000",
        "00" * 8,
    ]
    assert variable_part(slots) == [b"", b"", b"12345678", b""]


def test_a_section_is_never_inline_and_is_filled_up_to_eight():
    slots = section_slots(runs(b"", b"abc", b""), np.array([True, True, False]))
    assert hex_slots(slots, [16, 16, 24]) == ["0000000010000000", "0300000010000000", "00" * 8]
    assert variable_part(slots) == [b"", b"abc" + bytes(5), b""]


def test_a_large_decimal_takes_sixteen_bytes():
    slots = placed_slots(runs(b"\xff\x7f", b""), DecimalType(38, 0), np.array([True, False]))
    assert hex_slots(slots, [16, 32]) == ["0200000010000000", "00" * 8]
    assert variable_part(slots) == [b"\xff\x7f" + bytes(14), b""]


def test_a_timestamp_keeps_its_nanoseconds_in_the_slot():
    split = SplitTimestamp(millis=np.array([-1, 0]), nanos=np.array([999_000, 0], np.int32))
    slots = placed_slots(split, TimestampType(6), np.array([True, False]))
    assert hex_slots(slots, [16, 24]) == ["583e0f0010000000", "00" * 8]
    assert variable_part(slots) == [b"\xff" * 8, b""]


def test_numbers_are_their_own_slots_with_zeros_above():
    slots = number_slots(np.array([-1], np.int16))
    assert hex_slots(slots, [99]) == ["ffff000000000000"]
    assert variable_part(slots) == [b""]


def test_single_slots_are_those_of_columns():
    for text in (b"", b"a", b"1234567"):
        assert (
            inline_slot(text).hex()
            == hex_slots(placed_slots(runs(text), StringType(), None), [0])[0]
        )
    assert pack_halves(8, 24).hex() == "0800000018000000"


def test_lengths_are_rounded_up_to_eight():
    assert rounded_up(np.array([0, 1, 8, 9])).tolist() == [0, 8, 8, 16]


def opened(*slots, section_lengths):
    count = len(slots)
    return OpenSlots(
        words=np.frombuffer(b"".join(slots), "<u8"),
        at=np.arange(count, dtype=np.int64) * 8 + 100,
        section_starts=np.array([100, 200][:count], np.int64),
        section_lengths=np.array(section_lengths, np.int64),
        refuse=refuse,
    )


def test_open_slots_say_where_the_bytes_are():
    slots = opened(inline_slot(b"ab"), pack_halves(9, 16), section_lengths=[8, 32])
    starts, lengths = slots.texts()
    assert (starts.tolist(), lengths.tolist()) == ([100, 216], [2, 9])
    starts, nanos = opened(pack_halves(7, 8), section_lengths=[16]).timestamps()
    assert (starts.tolist(), nanos.tolist()) == ([108], [7])


@pytest.mark.parametrize("slot", [pack_halves(9, 24), pack_halves(0, 33), pack_halves(2**31, 0)])
def test_a_slot_that_points_out_of_its_section_is_refused(slot):
    slots = opened(pack_halves(0, 0), slot, section_lengths=[32, 32])
    for read in (slots.texts, slots.sections):
        with pytest.raises(RefusedError) as caught:
            read()
        assert caught.value.args == ([1], "a slot points out of its section")


def test_no_slots_are_nothing():
    slots = opened(section_lengths=[])
    assert [len(each) for each in slots.texts()] == [0, 0]
