"""A login that a server tells with a table's properties stands in nothing that shows the table."""

from __future__ import annotations

import logging
import traceback

import pytest

from fluss.errors import FlussError
from fluss.typed.class_source import class_source

SECRET = "hunter2-and-more"
# A user's own property takes the same way to the screen as one of the cluster's.
KEY = "datalake.iceberg.credential"


@pytest.fixture
def table(session):
    session.create_table("t", {"id": "INT"})
    session.alter_table("t", set_properties={KEY: SECRET, "team": "a"})
    found = session.table("t")
    assert found.info.custom_properties[KEY] == SECRET
    return found


def test_texts_of_a_table_hide_it(table):
    info = table.info
    shown = [repr(info), str(info), repr(table), table._repr_html_(), repr(info.options)]
    shown += [repr(info.custom_properties), class_source([info]), table.scan().explain()]
    assert not [each for each in shown if SECRET in each]
    assert "'team': 'a'" in repr(info)
    assert f"'{KEY}': '***'" in repr(info)


@pytest.mark.parametrize("words", [(), ("-o", "json"), ("--buckets",)])
def test_the_command_line_hides_it(run, table, database, words):
    done = run("describe", f"{database}.t", *words)
    assert done.returncode == 0, done.said
    assert SECRET.encode() not in done.stdout + done.stderr
    if not words:
        assert f"{KEY} = ***" in done.stdout.decode()


def test_a_copy_of_the_definition_leaves_it_out_and_says_so(run, session, table, database):
    copied = f"{database}.u"
    done = run("create", copied, "--like", f"{database}.t")
    assert done.returncode == 0, done.said
    assert dict(session.table("u").info.custom_properties) == {"team": "a"}
    assert f"without the property {KEY}" in done.said
    assert f"fluss alter {copied} --set {KEY}=..." in done.said
    assert SECRET not in done.said
    done = run("create", f"{database}.v", "--like", f"{database}.t", "--set", f"{KEY}=other")
    assert done.returncode == 0, done.said
    assert session.table("v").info.custom_properties[KEY] == "other"
    assert KEY not in done.said


def test_comparing_with_a_file_hides_it(run, table, database, tmp_path):
    file = tmp_path / "tables.py"
    text = class_source([table.info]).replace("'team': 'a'", f"'team': 'a', '{KEY}': 'new-secret'")
    file.write_text(text)
    done = run("diff", str(file))
    assert "***" in done.stdout.decode(), done.said
    for each in ("new-secret", SECRET):
        assert each.encode() not in done.stdout + done.stderr


def test_a_statement_that_creates_the_table_leaves_it_out(run, table, database):
    pytest.importorskip("duckdb")
    done = run("sql", f"SHOW CREATE TABLE {database}.t", "-o", "json")
    assert b"'team' = 'a'" in done.stdout, done.said
    assert SECRET.encode() not in done.stdout + done.stderr


def test_errors_and_logs_hide_it(session, table, caplog):
    caplog.set_level(logging.DEBUG, logger="fluss")
    shown = []
    for refused in (
        lambda: table.append([{"id": "x"}]),
        lambda: table.append([{"nothing": 1}]),
        lambda: table.upsert([{"id": 1}]),
        lambda: table.scan(columns=["nothing"]).to_arrow(),
        lambda: table.scan(filter="nothing > 1").to_arrow(),
        lambda: session.create_table("t", {"id": "INT"}),
        lambda: session.alter_table("t", set_properties={"table.log.tll": "1d"}),
        lambda: session.alter_table("t", add_columns={"id": "INT"}),
    ):
        with pytest.raises(FlussError) as error:
            refused()
        shown.append("".join(traceback.format_exception(error.value)))
        shown.append(repr(error.value.facts))
    table.append([{"id": 1}])
    assert table.scan().to_arrow().num_rows == 1
    session.drop_table("t")
    with pytest.raises(FlussError) as error:
        table.scan().to_arrow()
    shown += [repr(error.value), repr(error.value.facts), caplog.text]
    assert not [each for each in shown if SECRET in each]
