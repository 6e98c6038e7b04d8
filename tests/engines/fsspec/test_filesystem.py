"""Fluss as files: listed, read as streams, and never written."""

import errno
import io
import json
import pickle

import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fluss.errors import ConfigError, ConnectError, UnsupportedOperationError
from fluss.fsspec import FlussFileSystem
from tests.engines.fsspec.conftest import DAYS, ROWS


def read(file):
    with pa.ipc.open_stream(file) as stream:
        return stream.read_all()


def test_the_entry_point_leads_here(cluster, url, tables):
    assert isinstance(fsspec.filesystem("fluss", servers=cluster.bootstrap), FlussFileSystem)
    with fsspec.open(f"{url}/events/data.arrow") as file:
        assert read(file).num_rows == 1_000
    files, path = fsspec.url_to_fs(f"{url}/events")
    assert files.ls(path) == files.ls(f"{url}/events")


def test_directories_are_databases_tables_and_partitions(files, database):
    assert database in files.ls("", detail=False)
    assert files.ls(database, detail=False) == [
        f"{database}/{each}" for each in ("events", "keyed", "parted")
    ]
    assert [(each["name"], each["type"]) for each in files.ls(f"{database}/parted")] == [
        (f"{database}/parted/schema.json", "file"),
        (f"{database}/parted/data.arrow", "file"),
        (f"{database}/parted/{DAYS[0]}", "directory"),
        (f"{database}/parted/{DAYS[1]}", "directory"),
    ]
    (rows,) = files.ls(f"{database}/parted/{DAYS[0]}")
    assert rows == {"name": f"{database}/parted/{DAYS[0]}/data.arrow", "type": "file", "size": None}
    assert files.ls(rows["name"]) == [rows]


def test_it_is_walked_globbed_and_found(files, database):
    walked = {path: (sorted(dirs), sorted(names)) for path, dirs, names in files.walk(database)}
    assert walked[database] == (["events", "keyed", "parted"], [])
    assert walked[f"{database}/parted/{DAYS[1]}"] == ([], ["data.arrow"])
    assert len(files.glob(f"{database}/*/schema.json")) == 3
    assert len(files.glob(f"{database}/**/data.arrow")) == 5
    assert len(files.find(database)) == 8


def test_databases_and_tables_are_listed(files, database):
    assert files.isdir("")
    assert files.isdir(database)
    assert files.isdir(f"{database}/parted/{DAYS[0]}")
    assert files.isfile(f"{database}/events/data.arrow?columns=id")
    assert not files.isfile(f"{database}/events")
    assert not files.exists(f"{database}/event")
    assert files.info(f"{database}/events/data.arrow")["size"] is None
    schema = f"{database}/keyed/schema.json"
    assert files.info(schema)["size"] == len(files.cat(schema)) == files.size(schema)


def test_the_schema_is_json(files, database):
    told = json.loads(files.cat(f"{database}/keyed/schema.json"))
    assert told == {
        "table": f"{database}.keyed",
        "columns": [
            {"name": "id", "type": "BIGINT", "nullable": False, "comment": None},
            {"name": "day", "type": "STRING", "nullable": True, "comment": None},
        ],
        "primary_key": ["id"],
        "partition_by": [],
        "bucket_key": ["id"],
        "buckets": 1,
        "comment": "by id",
    }


def test_rows_are_a_stream_for_other_arrow_readers(files, database, tables, tmp_path):
    path = f"{database}/events/data.arrow"
    meant = tables.table("events").to_arrow().sort_by("id")
    with files.open(path) as file:
        assert read(file).sort_by("id") == meant
    with files.open(path) as file:
        assert pl.read_ipc_stream(file).height == 1_000
    assert read(files.cat(path)).num_rows == 1_000
    files.get(path, str(tmp_path / "rows.arrow"))
    assert read((tmp_path / "rows.arrow").read_bytes()).sort_by("id") == meant
    assert read(files.cat(f"{database}/events/data.arrow?limit=0")).schema == meant.schema


def test_options_of_the_scan_stand_in_the_url(files, database, url):
    path = f"{database}/events/data.arrow?columns=id,_bucket&tail=10"
    rows = read(files.cat(path))
    assert rows.schema.names == ["id", "_bucket"]
    assert rows.num_rows == 10
    with fsspec.open(f"{url}/events/data.arrow?limit=7") as file:
        assert read(file).num_rows == 7
    changes = read(files.cat(f"{database}/keyed$changelog/data.arrow"))
    assert "_change_type" in changes.schema.names
    one_day = read(files.cat(f"{database}/parted/{DAYS[0]}/data.arrow"))
    assert set(one_day.column("day").to_pylist()) == {DAYS[0]}


def test_a_stream_is_made_while_it_is_read(files, database, tables):
    table = tables.create_table("large", pa.schema([("id", pa.int64())]), buckets=1)
    for _ in range(8):
        table.append({"id": list(range(100_000))})
    with files.open(f"{database}/large/data.arrow") as file:
        stream = pa.ipc.open_stream(file)
        assert stream.read_next_batch().num_rows < 400_000
        assert file.raw._pieces.gi_frame is not None
    assert file.raw._pieces.gi_frame is None  # a reader that stops also stops the scan


def test_a_stream_refuses_to_seek(files, database):
    with files.open(f"{database}/events/data.arrow") as file:
        assert not file.seekable()
        with pytest.raises(io.UnsupportedOperation, match=r"open_stream"):
            file.seek(5)
    whole = files.cat(f"{database}/events/data.arrow")
    assert files.cat_file(f"{database}/events/data.arrow", 4, 10) == whole[4:10]
    with pytest.raises(OSError, match="seek"):
        pd.read_feather(files.open(f"{database}/events/data.arrow"))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("{db}/event", "did you mean 'events'"),
        ("{db}/event/data.arrow", "did you mean 'events'"),
        ("{db}x/events", "did you mean '{db}'"),
        ("{db}/events/data.arow", "did you mean 'data.arrow'"),
        ("{db}/events/data.parquet", "did you mean 'data.arrow'"),
        ("{db}/events/x.y", "it has schema.json and data.arrow"),
        ("{db}/parted/2026-01-03", "did you mean '2026-01-0"),
        ("{db}/events/2026-01-01/data.arrow", "no partition"),
        ("{db}/parted/2026-01-01/x/data.arrow", "no directories"),
        ("{db}/parted/2026-01-01/schema.json", "did you mean|it has data.arrow"),
        ("{db}.events", "a table is named '{db}/events' here"),
        ("{db}/ev ents/data.arrow", "only ASCII"),
        ("{db}/keyed$changes/data.arrow", "changelog"),
    ],
)
def test_a_missing_path_is_reported_with_the_nearest(files, database, path, said):
    for look in (files.info, files.ls, files.open):
        with pytest.raises(FileNotFoundError, match=said.replace("{db}", database)) as raised:
            look(path.replace("{db}", database))
        assert raised.value.errno == errno.ENOENT
    assert not files.exists(path.replace("{db}", database))


def test_wrong_options_are_reported(files, database):
    for query, said in (
        ("colums=id", "did you mean 'columns'"),
        ("filters=x", "did you mean 'filter'"),
        ("tail", "no value"),
        ("tail=1&tail=2", "twice"),
    ):
        with pytest.raises(ConfigError, match=said):
            files.open(f"{database}/events/data.arrow?{query}")
    with pytest.raises(ConfigError, match="directory"):
        files.ls(f"{database}/events?tail=5")
    with pytest.raises(UnsupportedOperationError, match="one partition"):
        files.open(f"{database}/parted/{DAYS[0]}/data.arrow?partitions={DAYS[1]}")
    with pytest.raises(IsADirectoryError):
        files.open(f"{database}/events")


def test_every_write_is_refused(files, database, tmp_path):
    (tmp_path / "x").write_bytes(b"x")
    place = f"{database}/events/data.arrow"
    refused = [
        lambda: files.open(place, "wb"),
        lambda: files.open(place, "w"),
        lambda: files.open(place, "ab"),
        lambda: files.mkdir(f"{database}/new"),
        lambda: files.makedirs(f"{database}/new"),
        lambda: files.rmdir(f"{database}/events"),
        lambda: files.rm(place),
        lambda: files.rm_file(place),
        lambda: files.touch(place),
        lambda: files.pipe(place, b"x"),
        lambda: files.put(str(tmp_path / "x"), place),
        lambda: files.cp(place, f"{database}/y"),
        lambda: files.mv(place, f"{database}/y"),
        lambda: files.rename(place, f"{database}/y"),
        lambda: files.upload(str(tmp_path / "x"), place),
        lambda: files.delete(place),
    ]
    for each in refused:
        with pytest.raises(OSError, match=r"read-only\. Rows are written") as raised:
            each()
        assert raised.value.errno == errno.EROFS
    assert read(files.cat(place)).num_rows == ROWS.num_rows


def test_a_cluster_that_gives_no_answer_is_no_missing_file():
    files = fsspec.filesystem("fluss", servers="127.0.0.1:1")
    with pytest.raises(ConnectError):
        files.exists("db")


def test_a_password_is_in_no_path_pickle_or_text(cluster, tables, database):
    if cluster.sasl is None:
        pytest.skip("the cluster has no known SASL address")
    login = f"{cluster.user}:{cluster.password}@{cluster.sasl_bootstrap}"
    files, path = fsspec.url_to_fs(f"fluss://{login}/{database}")
    assert files.ls(path, detail=False)[0] == f"{database}/events"
    shown = [
        files.unstrip_protocol(path), files.to_json(), repr(files), str(files.storage_options),
        repr(pickle.dumps(files)), path,
    ]  # fmt: skip
    assert not [each for each in shown if cluster.password in each]
    assert files.unstrip_protocol(path).endswith(f"@{cluster.sasl_bootstrap}/{database}")


def test_it_travels(files, database):
    copy = pickle.loads(pickle.dumps(files))  # noqa: S301 - our own bytes
    assert copy.ls(database) == files.ls(database)
    assert files.unstrip_protocol(f"{database}/events").startswith("fluss://127.0.0.1:")
