"""A frame of many partitions and buckets lies where Java's own code looks for it, row by row.

Once Java (the oracle) encodes the keys, hashes them, names the partitions and reads the values, and
the requests are made by hand; and once it is Java's own client that looks the rows up. Of our
client only the writing takes part.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import fluss
from fluss.lookup.frame_lookups import lookup_frame
from fluss.model.paths import PhysicalTablePath
from fluss.wire import messages as pb
from fluss.write.frame_writer import write_frame
from tests.support.generators.arrow_rows import rows_of
from tests.support.servers.frame_harness import FrameHarness
from tests.support.servers.java_client import look_up
from tests.support.servers.raw_client import RawClient

COUNT = 2_000


@pytest.fixture
def frames(cluster, database):
    harness = FrameHarness(cluster.bootstrap, database)
    yield harness
    harness.close()


def mixed_rows():
    rng = np.random.default_rng(7)
    texts = ["", "a", "é", "ключ", "x" * 40, "snow ☃"]
    return pa.table(
        {
            "note": [texts[each % 6] * (each % 3) for each in range(COUNT)],
            "day": pa.array([date(2026, 2, 1 + each % 4) for each in range(COUNT)]),
            "id": rng.integers(-(2**62), 2**62, COUNT),
            "code": [f"{texts[each % 6]}{each}" for each in range(COUNT)],
            "shop": ["north" if each % 3 else "south" for each in range(COUNT)],
            "price": pa.array([Decimal(each) / 100 for each in range(COUNT)], pa.decimal128(20, 2)),
            "flag": [None if each % 5 == 0 else each % 2 == 0 for each in range(COUNT)],
        }
    )


@pytest.mark.parametrize("bucket_key", [None, ["code"]], ids=["whole key", "part of the key"])
@pytest.mark.parametrize("lake", [None, "paimon"])
def test_java_finds_every_row_where_it_looks(frames, cluster, oracle, compare, lake, bucket_key):
    rows = mixed_rows()
    properties = {} if lake is None else {"table.datalake.format": lake}
    table = frames.table(
        rows,
        primary_key=["code", "day", "id", "shop"],
        partition_by=["day", "shop"],
        bucket_key=bucket_key,
        buckets=7,
        properties=properties,
    )
    write_frame(table, rows, mode="upsert")
    info = table.info
    types = info.schema.column_types
    (batch,) = rows.combine_chunks().to_batches()
    physical = rows_of(batch, types)
    keys = info.schema.column_indexes(info.physical_primary_keys)
    bucket_keys = info.schema.column_indexes(info.bucket_keys)
    key_bytes = oracle.primary_keys(
        types,
        keys,
        physical,
        lake=lake,
        kv_format_version=info.options.kv_format_version or 1,
        is_default_bucket_key=info.is_default_bucket_key,
    )
    hashed = oracle.bucket_keys(types, bucket_keys, physical, lake=lake)
    buckets = oracle.buckets(hashed, 7, lake=lake)
    days = oracle.partition_texts(types[1], [each[1] for each in physical])
    shops = [each[4] for each in physical]
    places: dict[tuple[str, int], list[int]] = {}
    for row, (day, shop, bucket) in enumerate(zip(days, shops, buckets, strict=True)):
        places.setdefault((f"{day}${shop}", bucket), []).append(row)
    found = [b""] * COUNT
    with RawClient(cluster.bootstrap) as raw:
        for (partition, bucket), members in places.items():
            path = PhysicalTablePath(info.table_path, partition)
            partition_id = frames.connection.cluster.view.partition_id(path)
            leader = raw.metadata().tablet_servers[0].node_id
            request = pb.LookupRequest(table_id=info.table_id)
            request.buckets_req.add(
                partition_id=partition_id,
                bucket_id=bucket,
                keys=[key_bytes[each] for each in members],
            )
            (answer,) = raw.call(request, to=leader, version=1).buckets_resp
            assert not answer.HasField("error_code"), answer.error_message
            for row, value in zip(members, answer.values, strict=True):
                assert value.HasField("values"), f"Java does not find row {row}"
                found[row] = value.values[2:]
    java = oracle.read_rows(info.options.kv_format.value, types, found)
    compare.rows("rows of a frame", types, physical, ours=physical, java=java)
    ours = lookup_frame(table, rows)
    assert ours.drop_columns(["_found"]).to_pylist() == rows.to_pylist()


EPOCH = date(1970, 1, 1)


def as_java_prints(value):
    match value:
        case bool():
            return str(value).lower()
        case date():
            return str((value - EPOCH).days)
        case None:
            return None
        case _:
            return str(value)


@pytest.mark.parametrize("bucket_key", [None, ["code"]], ids=["whole key", "part of the key"])
def test_the_java_client_finds_every_row_of_a_frame(cluster, database, java, bucket_key):
    rows = mixed_rows()
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}") as session:
        table = session.create_table(
            "mixed",
            rows,
            primary_key=["code", "day", "id", "shop"],
            partition_by=["day", "shop"],
            bucket_key=bucket_key,
            buckets=5,
        )
        table.upsert(rows.slice(0, COUNT - 1))
        keys = ["code", "day", "id", "shop"]
        written = rows.to_pylist()
        # As the table has them, which puts the key's columns in its own order.
        order = table.info.primary_keys
        asked = [[as_java_prints(row[each]) for each in order] for row in written]
        found = look_up(cluster.bootstrap, database, "mixed", asked)
    assert set(order) == set(keys)
    assert found[-1] is None  # it was not written
    for row, java_row in zip(written[:-1], found, strict=False):
        assert java_row == [as_java_prints(each) for each in row.values()], row
