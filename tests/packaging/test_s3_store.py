"""Segments in an S3 store, read with what the recipe installs: s3fs, and a token of the cluster.

The store is moto, on this machine. The scripted server has moved most of its log there.
"""

import socket

import pyarrow as pa
import pytest

from fluss.model.schema.schema import Schema
from fluss.wire.api import ApiKey
from tests.support.scripted.remote_store import Store, token_answer
from tests.support.scripted.scripted_cluster import SERVED, ScriptedCluster

SCHEMA = Schema(pa.schema([("a", pa.int64())]))
KEYS = {"access_key_id": "id", "access_key_secret": "hidden", "security_token": "token"}
READ = """
import logging
import fsspec
import fluss
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel("ERROR")
store = ThreadedMotoServer(ip_address="127.0.0.1", port={port}, verbose=False)
store.start()
s3 = fsspec.filesystem("s3", key="id", secret="hidden", endpoint_url="http://127.0.0.1:{port}")
s3.mkdir("fluss")
s3.put({folder!r}, "fluss/log", recursive=True)
with fluss.connect("fluss://{servers}") as session:
    print(session.table("db.t").scan().to_arrow()["a"].to_pylist() == list(range(100)))
    print(len(s3.find("fluss/log")))
    s3.rm("fluss/log", recursive=True)
    try:
        session.table("db.t").scan().to_arrow()
    except fluss.FlussError as error:
        print("remote.data.dir" in error.hint, "hidden" in str(error))
store.stop()
"""


@pytest.fixture
def served_tokens():
    SERVED.append(ApiKey.GET_FILESYSTEM_SECURITY_TOKEN)
    yield
    SERVED.remove(ApiKey.GET_FILESYSTEM_SECURITY_TOKEN)


@pytest.mark.slow  # an environment with the clients of S3 is installed
@pytest.mark.usefixtures("served_tokens")
def test_segments_in_s3_are_read_with_the_token_of_the_cluster(new_environment, tmp_path):
    environment = new_environment()
    environment.install("fluss-core[fsspec]", "s3fs", "moto[server]")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def write(name, data):
        path = tmp_path / "log" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)

    with ScriptedCluster(SCHEMA) as cluster:
        for start in range(0, 100, 10):
            cluster.append({"a": list(range(start, start + 10))})
        store = Store(cluster, "s3://fluss/log")
        store.move(4, write=write)
        store.move(3, write=write)
        cluster._get_filesystem_security_token = token_answer(
            KEYS, fs__s3a__endpoint=f"http://127.0.0.1:{port}", fs__s3a__region="us-east-1"
        )
        program = READ.format(port=port, folder=f"{tmp_path / 'log'}/", servers=cluster.bootstrap)
        printed = environment.python(program, warnings="default")
    assert printed.split() == ["True", "2", "True", "False"]
