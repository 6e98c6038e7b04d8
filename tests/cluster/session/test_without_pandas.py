"""Who does not use pandas does not load it: it takes 60 MB and a second of the processor."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from datetime import datetime

import numpy as np
import pyarrow as pa

import fluss
from fluss.records.arrow.numpy_arrays import from_numpy, texts

rows = pa.table({"id": from_numpy(np.arange(4)), "name": texts(["a", None, "c", "d"])})
with fluss.connect(f"fluss://{sys.argv[1]}/{sys.argv[2]}") as session:
    log = session.create_table("log", rows.schema, buckets=2)
    log.append(rows)
    found = log.scan(filter=fluss.col("id") > 1, with_metadata=True)
    assert found.to_arrow().num_rows == 2
    keyed = session.create_table("keyed", rows.schema, primary_key=["id"], buckets=2)
    keyed.upsert(rows)
    keyed.upsert(rows.slice(2))
    keyed.delete(rows.slice(0, 1).select(["id"]))
    for options, count in (
        ({}, 3),
        ({"strategy": "changelog", "with_metadata": ["_bucket"]}, 3),
        ({"mode": "changelog"}, 9),
        ({"mode": "binlog"}, 7),
    ):
        assert keyed.scan(**options).to_arrow().num_rows == count, options
    assert keyed.lookup(rows.select(["id"])).num_rows == 4
    row = {"id": 7, "name": "x", "at": datetime(2026, 11, 18), "tags": ["a"]}
    typed = pa.schema([*rows.schema, ("at", pa.timestamp("us")), ("tags", pa.list_(pa.string()))])
    taken = session.create_table("taken", typed)
    columns = {name: [value] for name, value in row.items()}
    for given in (row, [row, {"id": 8}], [tuple(row.values())], columns | {"id": np.arange(1)}):
        taken.append(given)
    assert taken.count() == 5
    keyed.upsert([{"id": 7, "name": "x"}])
    assert keyed.lookup({"id": np.array([7])})["name"][0].as_py() == "x"
    keyed.delete([7])
    del row["tags"]  # what a list is says Arrow, and asks pandas
    for name, given in (("of_rows", [row, {"id": None}]), ("of_columns", {"id": np.arange(3)})):
        session.create_table(name, given).append(given)
assert "pandas" not in sys.modules, "pandas"
"""


def test_rows_are_written_and_read_without_pandas(cluster, database):
    subprocess.run([sys.executable, "-c", PROGRAM, cluster.bootstrap, database], check=True)
