"""The ways to start a server: the command, `embedded:`, `LocalCluster`, the pytest plugin."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import fluss
from fluss.errors import ConfigError, LocalServerError, MissingExtraError
from fluss_server import LocalCluster
from fluss_server.directory_lock import is_served
from fluss_server.launcher import launch
from fluss_server.local_cluster import ENTRY_POINT_GROUP
from fluss_server.server_command import app
from fluss_server.server_config import Durability, ServerConfig

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def test_embedded_starts_a_server_and_the_rows_are_kept(tmp_path):
    folder = tmp_path / "data"
    with fluss.connect(f"embedded:{folder}") as session:
        session.create_table("fluss.numbers", ROWS.schema)
        session.append("fluss.numbers", ROWS)
        assert is_served(folder)
    assert not is_served(folder)
    with fluss.connect(f"embedded:{folder}") as session:
        found = session.table("fluss.numbers").scan().to_arrow()
        assert sorted(found.column("id").to_pylist()) == [1, 2, 3]


def test_sessions_of_one_process_share_a_server_until_the_last_is_closed(tmp_path):
    first, give_up_first = launch(str(tmp_path))
    second, give_up_second = launch(str(tmp_path))
    assert first == second
    give_up_first()
    give_up_first()  # idempotent
    assert is_served(tmp_path)
    give_up_second()
    assert not is_served(tmp_path)


TEMPORARY = """
import fluss, os
first, second = fluss.connect("embedded:"), fluss.connect("embedded:")
first.append("fluss.numbers", {{"id": [1, 2, 3]}}, create=True)
print(second.table("fluss.numbers").count(), len(os.listdir(os.environ["TMPDIR"])))
{end}
"""


@pytest.mark.parametrize(
    "end",
    [
        "first.close(); second.close(); assert not os.listdir(os.environ['TMPDIR'])",
        "fluss.connect('embedded:')  # the process ends with open sessions",
    ],
)
def test_embedded_without_a_folder_is_temporary_and_shared_by_a_process(tmp_path, end):
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TEMPORARY.format(end=end)],
        cwd=here,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("3 1\n", "")
    assert not list(here.iterdir()), "nothing is written into the working directory"
    assert not list(temporary.iterdir()), "nothing stays"


def test_embedded_attaches_to_a_server_that_runs(tmp_path):
    with LocalCluster(tmp_path) as cluster:
        servers, give_up = launch(str(tmp_path))
        assert servers == cluster.bootstrap_servers
        give_up()
        assert is_served(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--user", "ali"], "is not a user and the name of a variable"),
        (["--user", "ali:NOT_SET_ANYWHERE", "--sasl-port", "0"], "is not set"),
        (["--host", "0.0.0.0"], "on this machine only"),
        (["--segment-size", "many"], "many"),
        (["--port", "99999"], "ports go from 0"),
    ],
)
def test_the_command_reports_the_error_and_exits_with_one(tmp_path, options, message):
    done = CliRunner().invoke(app, ["--data-dir", str(tmp_path / "data"), *options])
    assert done.exit_code == 1
    assert message in done.output
    assert not (tmp_path / "data").exists(), "nothing was begun"


def test_every_option_of_the_command_is_passed_on(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(
        "fluss_server.server_command.serve", lambda config, **_: told.append(config)
    )
    monkeypatch.setenv("ALI_PASSWORD", "secret")
    options = {
        "--data-dir": str(tmp_path),
        "--port": "9124",
        "--sasl-port": "9125",
        "--host": "0.0.0.0",
        "--user": "ali:ALI_PASSWORD",
        "--super-user": "ali",
        "--durability": "disk",
        "--segment-size": "4mb",
        "--retention-size": "1gb",
    }
    done = CliRunner().invoke(app, [word for option in options.items() for word in option])
    assert done.exit_code == 0, done.output
    assert told == [
        ServerConfig(
            directory=tmp_path,
            port=9124,
            sasl_port=9125,
            sasl_host="0.0.0.0",
            users={"ali": "secret"},
            super_users=["ali"],
            durability=Durability.DISK,
            segment_bytes=4 << 20,
            retention_bytes=1 << 30,
        )
    ]


def test_without_fluss_testkit_the_error_names_the_pip_command(monkeypatch):
    monkeypatch.setattr("fluss_server.local_cluster.entry_points", lambda **_: ())
    with pytest.raises(MissingExtraError, match="not installed") as caught:
        LocalCluster(kind="real").start()
    assert "pip install --find-links dist fluss-testkit" in caught.value.hint


def test_the_real_fluss_is_found_by_its_entry_point():
    (found,) = entry_points(group=ENTRY_POINT_GROUP, name="real")
    assert found.value == "fluss_testkit.real_server:RealServer"
    assert found.dist.name == "fluss-testkit"


@pytest.mark.usefixtures("java")
def test_the_real_fluss_is_started_the_same_way():
    with LocalCluster(kind="real", users={"ali": "secret"}) as cluster:
        assert not cluster.is_attached
        with fluss.connect(cluster.url) as session:
            assert session.databases() == ["fluss"]
        guarded = f"fluss://ali:secret@{cluster.sasl_bootstrap_servers}"
        with fluss.connect(guarded) as session:
            assert session.databases() == ["fluss"]
        pid = cluster.pid
        cluster.kill()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "rust"}, "no server of the kind 'rust'"),
        ({"kind": "real", "durability": "disk"}, "knows no durability"),
        ({"kind": "real", "in_thread": True}, "a process of its own"),
    ],
)
def test_invalid_options_of_a_cluster_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        LocalCluster(**options)


def test_a_cluster_that_does_not_run_raises_an_error():
    cluster = LocalCluster(in_thread=True)
    with pytest.raises(LocalServerError, match="does not run"):
        _ = cluster.url
    with cluster:
        with pytest.raises(LocalServerError, match="runs already"):
            cluster.start()
        with pytest.raises(LocalServerError, match="Only a child process"):
            cluster.kill()
    cluster.stop()


def test_the_help_describes_what_each_durability_promises():
    done = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "400", "TERM": "dumb"})
    message = " ".join(done.output.split())
    assert "acknowledged rows survive kill -9; a power cut may take the last second" in message
    assert "survive a power cut" in message


PROGRAM = """
import pyarrow as pa

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})

def test_one(fluss):
    fluss.create_table("numbers", ROWS.schema)
    fluss.append("numbers", ROWS)
    assert fluss.table("numbers").scan().to_arrow().num_rows == 3

def test_two(fluss, fluss_cluster):
    assert fluss.tables() == []
    assert fluss_cluster.bootstrap_servers
"""


def run_program(tmp_path, *options):
    """Run the program as a user would, with the plugin that is installed."""
    (tmp_path / "test_program.py").write_text(PROGRAM)
    command = [
        *(sys.executable, "-m", "pytest", "-q", *options),
        *("-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_the_plugin_gives_each_test_its_own_database(tmp_path):
    run_program(tmp_path)


@pytest.mark.usefixtures("java")
def test_the_plugin_starts_the_real_fluss_on_request(tmp_path):
    run_program(tmp_path, "--fluss-server", "real")
