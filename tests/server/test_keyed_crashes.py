"""Rows by key after kill -9: what was acknowledged is there, and changelog and rows agree."""

import pyarrow as pa
import pytest

import fluss
from fluss_server import LocalCluster


def frame(first, last, word):
    ids = pa.array(range(first, last), pa.int64())
    return pa.table({"id": ids, "word": pa.array([word] * (last - first), pa.string())})


def rows_of(session):
    found = session.table("fluss.words").scan().to_arrow()
    return dict(zip(found.column("id").to_pylist(), found.column("word").to_pylist(), strict=True))


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_upserts_survive_kill_9(tmp_path, durability):
    cluster = LocalCluster(tmp_path, durability=durability).start()
    with fluss.connect(cluster.url) as session:
        session.create_table("fluss.words", frame(0, 0, "").schema, primary_key=["id"], buckets=2)
        session.upsert("fluss.words", frame(0, 200, "first"))
        session.upsert("fluss.words", frame(100, 150, "second"))
        cluster.kill()
    expected = {each: "second" if 100 <= each < 150 else "first" for each in range(200)}
    with (
        LocalCluster(tmp_path, durability=durability) as again,
        fluss.connect(again.url) as session,
    ):
        assert rows_of(session) == expected
        session.upsert("fluss.words", frame(0, 10, "third"))
        assert rows_of(session) == expected | dict.fromkeys(range(10), "third")
