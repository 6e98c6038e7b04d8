"""Past states on the embedded server, of tables whose log has lost its beginning.

States are computed from SCAN_KV and the changes since, and where changes cannot be undone, from a
KV snapshot. A server that makes none refuses them.
"""

import pyarrow as pa
import pytest

import fluss
from fluss.errors import OffsetOutOfRangeError, UnsupportedOperationError
from tests.support.servers.embedded import Clock, running

TTL_MS = 3_600_000
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.string())])


class Trimmed:
    """A table whose log has lost its first rows, and a cursor from before."""

    def __init__(self, server, session, clock, **properties):
        self.table = session.create_table(
            "t", SCHEMA, primary_key=["id"], buckets=2,
            properties={"table.log.ttl": f"{TTL_MS} ms"} | properties,
        )  # fmt: skip
        self.write(range(20), "a")
        self.before = self.cursor()
        self.write(range(10), "b")
        clock.now_ms += TTL_MS + 1
        for tablet in server.node.tablets:
            server.on_loop(lambda tablet=tablet: server.node.in_storage(tablet.state.flush))
            server.on_loop(lambda tablet=tablet: server.server._maintenance._expire(tablet))
        self.write(range(5), "c")
        assert min(self.table.offsets().column("earliest").to_pylist()) > 0

    def write(self, ids, x):
        self.table.upsert({"id": list(ids), "x": [x for _ in ids]})

    def cursor(self):
        return self.table.scan(mode="changelog").cursor()

    def rows(self, **options):
        found = self.table.scan(**options).to_arrow().to_pydict()
        return dict(zip(found["id"], found["x"], strict=True))


@pytest.fixture(params=[0, 600_000], ids=["without snapshots", "with snapshots"])
def interval_ms(request):
    return request.param


@pytest.fixture
def trimmed(tmp_path, interval_ms):
    clock = Clock()
    with (
        running(tmp_path, clock=clock, kv_snapshot_interval_ms=interval_ms) as server,
        fluss.connect(f"fluss://{server.address}/fluss") as session,
    ):
        yield lambda **properties: Trimmed(server, session, clock, **properties)


def state():
    rows = dict.fromkeys(range(20), "a") | dict.fromkeys(range(10), "b")
    return rows | dict.fromkeys(range(5), "c")


def test_a_state_as_of_the_present_and_later_is_found(trimmed):
    made = trimmed()
    now = made.cursor()
    then = made.rows()
    assert then == state()
    assert made.rows(as_of=now) == then
    for round_number in range(3):
        made.write(range(3, 15), f"later {round_number}")
        made.table.delete({"id": [19 - round_number]})
        assert made.rows(as_of=now) == then
    later = made.cursor()
    after = made.rows()
    assert made.rows(as_of=later) == after != then


def test_a_moment_before_the_trim_is_refused_with_the_first_offset_there_is(trimmed):
    made = trimmed()
    with pytest.raises(OffsetOutOfRangeError, match="log begins at offset") as refused:
        made.rows(as_of=made.before)
    earliest = refused.value.earliest
    assert earliest in made.table.offsets().column("earliest").to_pylist()
    assert f"offset {earliest} or a later moment" in refused.value.hint


def test_without_images_a_snapshot_leads_to_an_earlier_state(trimmed, interval_ms):
    made = trimmed(**{"table.changelog.image": "wal"})
    assert made.rows() == state()
    now = made.cursor()
    assert made.rows(as_of=now) == state()
    made.write([3], "later")
    assert made.rows() == state() | {3: "later"}
    if interval_ms:
        assert made.rows(as_of=now) == state()
        return
    with pytest.raises(UnsupportedOperationError, match="'wal'") as refused:
        made.rows(as_of=now)
    assert refused.value.hint
