"""A login that a server tells with a table's properties stands in nothing that shows the table."""

from __future__ import annotations

import pytest

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
