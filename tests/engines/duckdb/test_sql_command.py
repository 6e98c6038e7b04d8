"""`fluss sql`: formats, sources of the query, and exit codes."""

import io
import json

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from fluss_duckdb.sql_command import app


@pytest.fixture
def ask(cluster):
    def run(*arguments, text=None):
        url = f"fluss://{cluster.bootstrap}"
        return CliRunner().invoke(app, [*arguments, "--url", url], input=text)

    return run


def test_rows_come_in_every_format(ask, events):
    sql = f"SELECT id, name, x FROM fluss('{events.name}') WHERE id IN (5, 6) ORDER BY id"
    assert ask(sql, "--format", "csv").stdout == "id,name,x\n5,n5,0.625\n6,,0.75\n"
    lines = ask(sql, "--format", "json").stdout.splitlines()
    assert [json.loads(each) for each in lines] == [
        {"id": 5, "name": "n5", "x": 0.625},
        {"id": 6, "name": None, "x": 0.75},
    ]
    assert "│ n5" in ask(sql, "--format", "table").stdout
    arrow = ask(sql, "--format", "arrow").stdout_bytes
    assert pa.ipc.open_stream(io.BytesIO(arrow)).read_all()["id"].to_pylist() == [5, 6]


def test_a_query_may_come_by_the_standard_input(ask, events):
    found = ask(text=f"SELECT count(*) AS n FROM fluss.{events.name};\n")
    assert (found.exit_code, found.stdout) == (0, "n\n1000\n")


def test_statements_without_rows_print_nothing(ask):
    found = ask("CREATE TABLE t (a INTEGER)")
    assert found.exit_code == 0


def test_errors_go_to_the_standard_error(ask, events):
    found = ask(f"FROM fluss('{events.name}s')")
    assert (found.exit_code, found.stdout) == (1, "")
    assert "TableNotFoundError" in found.stderr
    assert "did you mean" in found.stderr
    assert ask("SELEC 1").exit_code == 1
    assert ask(text="").exit_code == 2
