"""Offsets, cursors, settings and the examination of a cluster, in a terminal."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import pytest

from fluss.cli import main


def records(done):
    assert done.returncode == 0, done.said
    return [json.loads(each) for each in done.stdout.splitlines()]


@pytest.fixture
def log(session, database):
    table = session.create_table("log", {"id": "BIGINT"}, buckets=1)
    table.append({"id": [1, 2, 3]})
    return f"{database}.log"


def test_offsets_are_shown_now_and_at_a_time(run, session, log):
    assert records(run("offsets", log)) == [{"bucket": 0, "earliest": 0, "end": 3}]
    later = (datetime.now(UTC) + timedelta(seconds=-3600)).isoformat()
    assert records(run("offsets", log, "--at", later))[0]["at"] == 0
    assert records(run("offsets", log, "--at", "latest"))[0]["at"] == 3
    done = run("offsets", log, "--at", "yesterday")
    assert (done.returncode, "hint: write earliest, latest" in done.said) == (1, True)


def test_a_job_reads_what_is_new_by_two_cursors(run, session, log, tmp_path):
    job, following = str(tmp_path / "job.cursor"), str(tmp_path / "next.cursor")
    assert run("cursor", "save", log, job, "--at", "earliest").returncode == 0
    seen = []
    for rows in ([], [4, 5], []):
        if rows:
            session.table("log").append({"id": rows})
        assert run("cursor", "save", log, following).returncode == 0
        session.table("log").append({"id": [max(seen, default=0) + 100]})  # while the job runs
        done = run("export", log, "-", "--start", f"@{job}", "--end", f"@{following}")
        seen += [each["id"] for each in records(done)]
        job, following = following, job
    assert seen == [1, 2, 3, 100, 4, 5, 103]
    (found,) = records(run("offsets", log, "--cursor", job))
    assert (found["cursor"], found["lag"]) == (7, 1)
    done = run("cursor", "show", job, log)
    assert (records(done)[0]["lag"], done.said) == (1, "the cursor lags behind by 1\n")
    (shown,) = records(run("cursor", "show", job))
    assert (shown["bucket"], shown["offset"], shown["partition_id"]) == (0, 7, None)


def test_cursors_of_key_tables_and_partitions(run, session, people, database, tmp_path):
    file = str(tmp_path / "c")
    assert run("cursor", "save", people, file).returncode == 0
    run("upsert", people, "id=4", "name=D")
    done = run("head", people, "--mode", "changelog", "--start", f"@{file}")
    assert [each["id"] for each in records(done)] == [4]
    session.create_table("parts", {"id": "INT", "day": "STRING"}, partition_by=["day"], buckets=1)
    run("insert", f"{database}.parts", "id=1", "day=1")
    assert run("cursor", "save", f"{database}.parts", file).returncode == 0
    run("insert", f"{database}.parts", "id=2", "day=2")
    found = {
        each["partition"]: each["lag"]
        for each in records(run("cursor", "show", file, f"{database}.parts"))
    }
    assert found == {"1": 0, "2": 1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cursor", "show", "{dir}/none"], "No such file"),
        (["cursor", "show", "{dir}/bad"], "does not hold a cursor"),
        (["head", "{log}", "--start", "@{dir}/none"], "`fluss cursor save database.table"),
        (["head", "{log}", "--start", "@{dir}/bad"], "does not say where a scan begins"),
        (["cursor", "save", "{log}", "{dir}/no/c"], "No such file or directory"),
        (["cursor", "save", "{log}", "{dir}/c", "--at", "sometime"], "hint: "),
        (["cursor", "save", "{log}", "{dir}"], "Is a directory"),
    ],
)
def test_a_wrong_cursor_is_one_message(run, log, tmp_path, words, said):
    (tmp_path / "bad").write_text("not a cursor")
    done = run(*(each.format(dir=tmp_path, log=log) for each in words))
    assert (done.returncode, done.stdout) == (1, b"")
    assert said in done.said


def test_the_doctor_names_what_is_local_without_a_server(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fluss", "doctor", "--url", "127.0.0.1:1"])
    assert main() == 1
    done = capsys.readouterr()
    packages, engines = done.out.splitlines()
    assert packages.startswith(f"fluss-core {version('fluss-core')}, ")
    assert "; native code " in packages
    assert engines.startswith(f"Python {platform.python_version()}, pyarrow {version('pyarrow')}")
    assert "Cannot connect to 127.0.0.1:1" in done.err


def test_the_doctor_examines_every_server_and_bucket(run, people):
    done = run("doctor")
    assert (done.returncode, done.said) == (0, "")
    text = done.stdout.decode()
    assert "all is well" in text
    assert "native code" in text
    servers = records(run("doctor", "-o", "json"))
    assert {each["server"][:2] for each in servers} == {"cs", "ts"}
    assert all(each["answers"] and each["latency_ms"] > 0 for each in servers)
    tablets = [each for each in servers if each["server"].startswith("ts")]
    assert sum(each["leads"] for each in tablets) >= 2
    leading = [each for each in tablets if each["leads"]]
    assert all(abs(each["clock_skew_ms"]) < 1_000 for each in leading)  # the same machine


def test_settings_are_explained_and_profiles_chosen(run, cluster, monkeypatch, tmp_path):
    path = tmp_path / "profiles.toml"
    path.write_text(
        f'[profiles.here]\nbootstrap.servers = "{cluster.bootstrap}"\n[profiles.prod]\n'
    )
    monkeypatch.setenv("FLUSS_CONFIG", str(path))
    text = run("config", "explain", "--profile", "here").stdout.decode()
    assert text.startswith(f"bootstrap.servers = {cluster.bootstrap}    # profile 'here' of")
    shown = records(run("config", "explain", "--url", "me@h:1", "-o", "json"))
    assert ("bootstrap.servers", "h:1", "--url") in [tuple(each.values()) for each in shown]
    monkeypatch.delenv("FLUSS_BOOTSTRAP_SERVERS")
    done = run("config", "use", "here")
    assert (done.returncode, "is here" in done.said) == (0, True)
    assert run("ls").returncode == 0
    found = {each["name"]: each["default"] for each in records(run("config", "profiles"))}
    assert found == {"here": True, "prod": False}
    monkeypatch.setenv("FLUSS_URL", "h:1")
    assert "FLUSS_URL is set, and counts before it" in run("config", "use", "prod").said
    done = run("config", "use", "prd")
    assert (done.returncode, "did you mean 'prod'" in done.said) == (1, True)


def test_a_device_is_written_to_and_not_replaced(run, log, tmp_path):
    reading, writing = os.pipe()
    done = run("cursor", "save", log, f"/dev/fd/{writing}")
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert (done.returncode, json.loads(pipe.read())["offsets"]) == (0, [[None, 0, 3]])
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    done = run("cursor", "save", log, str(link))
    assert (done.returncode, "No space left on device" in done.said) == (1, True)
    assert link.is_symlink()
