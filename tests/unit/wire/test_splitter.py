"""A stream gives the same frames however it is cut, and no peer can exhaust memory."""

import resource
import struct
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fluss.errors import ProtocolError
from fluss.wire import splitter as splitter_module
from fluss.wire.frame import FRAME_BYTES_MAX
from fluss.wire.receive_memory import ALIGNMENT
from fluss.wire.splitter import FrameSplitter


def framed(*frames):
    return b"".join(struct.pack(">i", len(each)) + each for each in frames)


def receive(splitter, data, piece=2**31):
    """Play a socket that has `piece` bytes at a time."""
    data = memoryview(data)
    frames = []
    while data:
        buffer = splitter.get_buffer()
        count = min(len(buffer), len(data), piece)
        assert count > 0
        buffer[:count] = data[:count]
        frames += splitter.buffer_updated(count)
        data = data[count:]
    return frames


frames_of_all_sizes = st.lists(
    st.one_of(st.binary(min_size=1, max_size=40), st.integers(1, 700).map(lambda n: b"\xa5" * n)),
    max_size=20,
)


@given(frames_of_all_sizes, st.integers(1, 400), st.integers(16, 256))
def test_a_stream_becomes_the_same_frames_however_it_is_cut(frames, piece, chunk_bytes):
    splitter = FrameSplitter(chunk_bytes=chunk_bytes)
    assert receive(splitter, framed(*frames), piece) == frames
    assert splitter.unfinished_bytes == 0


@given(frames_of_all_sizes, st.data())
def test_a_stream_that_ends_early_leaves_the_rest_unfinished(frames, data):
    stream = framed(*frames, b"last")
    length = data.draw(st.integers(0, len(stream) - 1))
    splitter = FrameSplitter(chunk_bytes=64)
    whole = receive(splitter, stream[:length], 100)
    assert splitter.unfinished_bytes == length - len(framed(*whole))


def test_every_place_to_cut_in_two():
    frames = [b"a", b"bc" * 20, b"d" * 100, b"e"]
    stream = framed(*frames)
    for place in range(len(stream) + 1):
        splitter = FrameSplitter(chunk_bytes=64)
        assert receive(splitter, stream[:place]) + receive(splitter, stream[place:]) == frames


def test_frames_handed_out_are_never_written_to_again():
    splitter = FrameSplitter(chunk_bytes=64)
    kept = []
    for number in range(500):
        kept += receive(splitter, framed(bytes([number % 251]) * (number % 90 + 1)), 7)
    assert kept == [bytes([number % 251]) * (number % 90 + 1) for number in range(500)]
    assert all(frame.readonly for frame in kept)


def test_many_small_frames_in_one_read_share_their_memory():
    splitter = FrameSplitter()
    frames = receive(splitter, framed(*[b"small"] * 1000))
    assert frames == [b"small"] * 1000
    assert len({id(frame.obj) for frame in frames}) == 1


def test_a_large_frame_is_received_where_it_stays():
    splitter = FrameSplitter()
    size = 1024 * 1024
    receive(splitter, struct.pack(">i", size) + bytes(100))
    places = []
    while splitter.unfinished_bytes:
        buffer = splitter.get_buffer()
        places.append(buffer.obj)
        count = min(len(buffer), 300_000)
        buffer[:count] = b"\x07" * count
        frames = splitter.buffer_updated(count)
    (frame,) = frames
    assert frame == bytes(100) + b"\x07" * (size - 100)
    assert all(place is frame.obj for place in places)


@pytest.mark.parametrize("at", range(9))
def test_a_large_frame_lies_so_that_a_byte_of_it_is_aligned(at):
    heads = []

    def aligned_at(head):
        heads.append(bytes(head))
        return at

    splitter = FrameSplitter(chunk_bytes=64, aligned_at=aligned_at)
    body = bytes(range(200)) * 5
    (frame,) = receive(splitter, framed(body), 20)
    assert frame == body
    assert (np.frombuffer(frame, np.uint8).ctypes.data + at) % ALIGNMENT == 0
    assert heads == [body[:16]], "asked once, with what had arrived"


def test_only_of_a_large_frame_it_is_known_how_much_is_missing():
    splitter = FrameSplitter(chunk_bytes=64)
    receive(splitter, struct.pack(">i", 40) + b"x" * 30)
    assert splitter.missing_bytes == 0
    receive(splitter, b"x" * 10 + struct.pack(">i", 1000) + b"y" * 3)
    assert splitter.missing_bytes == 997
    receive(splitter, b"y" * 900)
    assert splitter.missing_bytes == 97
    receive(splitter, b"y" * 97)
    assert splitter.missing_bytes == 0


def test_what_follows_a_large_frame_is_not_received_into_it():
    splitter = FrameSplitter(chunk_bytes=64)
    assert receive(splitter, framed(b"x" * 1000, b"y", b"z" * 1000)) == [
        b"x" * 1000,
        b"y",
        b"z" * 1000,
    ]


def test_the_buffer_to_receive_into_is_never_empty_nor_tiny():
    splitter = FrameSplitter(chunk_bytes=64)
    for _ in range(200):
        assert len(splitter.get_buffer()) >= 16
        receive(splitter, framed(b"abc"), 3)


def test_asking_for_a_buffer_twice_changes_nothing():
    splitter = FrameSplitter(chunk_bytes=64)
    for frame in (b"a" * 20, b"b" * 20, b"c" * 60):
        splitter.get_buffer()
        splitter.get_buffer()
        assert receive(splitter, framed(frame), 9) == [frame]


def test_peers_that_claim_large_frames_and_send_none_cost_no_memory():
    before = peak_bytes()
    splitters = []
    for _ in range(20):
        splitter = FrameSplitter()
        receive(splitter, struct.pack(">i", FRAME_BYTES_MAX) + b"x")
        assert len(splitter.get_buffer()) < splitter_module.TRUSTED_BYTES_MAX
        splitters.append(splitter)
    assert peak_bytes() - before < splitter_module.TRUSTED_BYTES_MAX


def peak_bytes():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def test_a_frame_beyond_trust_grows_as_it_arrives(monkeypatch):
    monkeypatch.setattr(splitter_module, "TRUSTED_BYTES_MAX", 1000)
    splitter = FrameSplitter(chunk_bytes=64)
    body = bytes(range(256)) * 40
    sizes = []
    data = memoryview(framed(body))
    frames = []
    while not frames:
        buffer = splitter.get_buffer()
        sizes.append(len(buffer))
        count = min(len(buffer), 333)
        buffer[:count] = data[:count]
        data = data[count:]
        frames = splitter.buffer_updated(count)
    assert frames == [body]
    assert max(sizes) <= len(body) / 2, "never more than twice of what has arrived"


@pytest.mark.parametrize("length", [0, -1, -(2**31), 101, 2**31 - 1])
def test_an_impossible_length_is_refused(length):
    splitter = FrameSplitter(frame_bytes_max=100)
    receive(splitter, framed(b"before"))
    with pytest.raises(ProtocolError, match=f"its length is {length}") as refusal:
        receive(splitter, struct.pack(">i", length) + b"garbage")
    assert refusal.value.at == len(framed(b"before"))
    with pytest.raises(ProtocolError):
        receive(splitter, framed(b"after"))


def test_the_error_for_a_long_frame_has_both_lengths_and_a_hint():
    splitter = FrameSplitter(frame_bytes_max=100)
    assert receive(splitter, framed(b"x" * 100)) == [b"x" * 100]
    with pytest.raises(ProtocolError, match=r"101, the limit is 100 bytes") as refusal:
        receive(splitter, struct.pack(">i", 101))
    assert "limit" in refusal.value.hint


def test_frames_before_the_damage_are_handed_out_first():
    splitter = FrameSplitter()
    assert receive(splitter, framed(b"good", b"too") + bytes(4)) == [b"good", b"too"]
    with pytest.raises(ProtocolError, match="its length is 0"):
        splitter.buffer_updated(0)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "an HTTP server"),
        (b"GET / HTTP/1.1\r\n", "an HTTP client"),
        (b"\x15\x03\x01\x00\x02\x02", "TLS"),
    ],
)
def test_a_peer_that_speaks_something_else_is_recognised(answer, name):
    with pytest.raises(ProtocolError) as refusal:
        receive(FrameSplitter(), answer)
    assert name in refusal.value.hint


@given(st.binary(max_size=300), st.integers(1, 50))
def test_garbage_is_frames_or_a_refusal_and_nothing_else(garbage, piece):
    splitter = FrameSplitter(frame_bytes_max=50, chunk_bytes=16)
    try:
        frames = receive(splitter, garbage, piece)
    except ProtocolError:
        return
    assert sum(4 + len(frame) for frame in frames) + splitter.unfinished_bytes == len(garbage)
