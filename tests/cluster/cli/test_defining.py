"""Databases, tables and partitions are made, changed and dropped from a terminal."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def made(run, session, database):
    """Return a function that creates a table and returns it."""

    def one(*words):
        done = run("create", f"{database}.t", *words)
        assert (done.returncode, done.stdout) == (0, b""), done.said
        assert done.said == f"created table {database}.t\n"
        return session.table("t")

    return one


def columns(table):
    return {each.name: str(each.data_type) for each in table.fluss_schema.columns}


def test_a_database_is_made_and_dropped(run, session, database):
    name = f"{database}_2"
    assert run("create", name, "--comment", "the second", "--set", "owner=ann").returncode == 0
    info = session.database_info(name).database_descriptor
    assert (info.comment, dict(info.custom_properties)) == ("the second", {"owner": "ann"})
    done = run("create", name)
    assert (done.returncode, "--if-not-exists leaves it as it is" in done.said) == (1, True)
    assert run("create", name, "--if-not-exists").returncode == 0
    text = run("describe", name).stdout.decode()
    assert "comment: the second" in text
    assert "owner = ann" in text
    assert any(json.loads(each)["name"] == name for each in run("ls", "-l").stdout.splitlines())
    done = run("alter", name, "--comment", "another", "--reset", "owner")
    if done.returncode:  # servers of 0.9.1
        assert "ALTER_DATABASE came with Fluss 1.0" in done.said
    else:
        info = session.database_info(name).database_descriptor
        assert (info.comment, dict(info.custom_properties)) == ("another", {})
    done = run("alter", name, "--add-column", "a INT")
    assert (done.returncode, "is a database" in done.said) == (2, True)
    done = run("drop", name)
    assert (done.returncode, "add --yes" in done.said) == (2, True)
    assert run("drop", name, "--yes").said == f"dropped database {name}\n"
    assert name not in session.databases()


def test_a_table_is_made_of_text(made):
    table = made(
        "id BIGINT, day STRING, price DECIMAL(9, 2) COMMENT 'in EUR', PRIMARY KEY (id, day)",
        "--partition-by", "day", "--bucket-key", "id", "--buckets", "3",
        "--set", "table.log.ttl=7d", "--comment", "what was bought",
    )  # fmt: skip
    assert columns(table) == {
        "id": "BIGINT NOT NULL",
        "day": "STRING NOT NULL",
        "price": "DECIMAL(9, 2)",
    }
    assert (table.primary_key, table.partition_by, table.buckets) == (("id", "day"), ("day",), 3)
    assert table.info.properties["table.log.ttl"] == "7d"
    assert table.info.comment == "what was bought"


def test_a_table_is_made_of_a_file(made, run, session, database, tmp_path):
    file = tmp_path / "schema.sql"
    file.write_text("-- mine\nid INT, -- the key\nname STRING,\n")
    assert columns(made("--schema-file", str(file), "--primary-key", "id")) == {
        "id": "INT NOT NULL",
        "name": "STRING",
    }
    sample = tmp_path / "rows.csv"
    sample.write_text("id,zip,price\n1,007,1.5\n")
    assert run("create", f"{database}.sampled", "--sample", str(sample)).returncode == 0
    expected = {"id": "BIGINT", "zip": "STRING", "price": "DOUBLE"}
    assert columns(session.table("sampled")) == expected
    assert session.table("sampled").count() == 0
    done = run("create", f"{database}.u", "--schema-file", str(tmp_path / "none.sql"))
    assert (done.returncode, "No such file" in done.said) == (1, True)


def test_a_table_is_made_like_another(made, run, session, database):
    made(
        "id INT, day STRING, PRIMARY KEY (id, day)",
        "--partition-by",
        "day",
        "--set",
        "table.log.ttl=3d",
    )
    assert (
        run("create", f"{database}.u", "--like", f"{database}.t", "--buckets", "5").returncode == 0
    )
    first, second = session.table("t").info, session.table("u").info
    assert second.schema == first.schema
    assert (second.partition_keys, second.num_buckets) == (first.partition_keys, 5)
    assert second.properties["table.log.ttl"] == "3d"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "{db}.x"], 2, "its columns are missing"),
        (["create", "nodb.x", "id INT"], 1, "`fluss create nodb` makes it"),
        (["create", "{db}.x", "id BIGNT"], 1, "did you mean 'BIGINT'"),
        (["create", "{db}.x", "id INT", "--primary-key", "ix"], 1, "ix"),
        (["create", "{db}.x", "id INT", "--set", "table.log.tl=1d"], 1, "table.log.ttl"),
        (["create", "{db}.x", "id INT", "--set", "ttl"], 2, "is not KEY=VALUE"),
        (["create", "{db}_3", "--buckets", "3"], 2, "is a database"),
        (["create", "{db}.x", "a INT PRIMARY KEY, b INT", "--primary-key", "b"], 1, "leave one"),
        (["create", "{db}.x", "--sample", "rows.xyz"], 1, "ends in .parquet"),
        (["drop", "{db}.x", "--yes"], 1, "does not exist"),
        (["drop", "{db}.x", "--yes", "--if-exists"], 0, "dropped table"),
        (["alter", "{db}.x", "--add-column", "b INT"], 1, "does not exist"),
        (["partitions", "ls", "{db}.x"], 1, "does not exist"),
    ],
)
def test_what_is_refused_is_one_message(run, database, words, code, said):
    done = run(*(each.format(db=database) for each in words))
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.said


def test_nothing_is_dropped_if_one_name_is_wrong(made, run, session, database):
    made("id INT")
    done = run("drop", f"{database}.t", f"{database}.nosuch", "--yes")
    assert done.returncode == 1
    assert session.tables(database) == ["t"]
    done = run("drop", database, "--yes")
    assert "--cascade drops the tables in it as well" in done.said


def test_a_table_is_changed(made, run, session):
    name = made("id INT", "--set", "table.log.ttl=7d").name
    done = run(
        "alter", name, "--add-column", "a STRING, b DECIMAL(9, 2)", "--set", "owner=ann",
    )  # fmt: skip
    assert (done.returncode, done.said) == (0, f"changed table {name}\n")
    table = session.table("t")
    assert columns(table) == {"id": "INT", "a": "STRING", "b": "DECIMAL(9, 2)"}
    assert table.info.custom_properties["owner"] == "ann"
    assert run("alter", name, "--reset", "owner").returncode == 0
    assert "owner" not in session.table("t").info.custom_properties
    done = run("alter", name, "--set", "table.log.tl=1d")
    assert (done.returncode, "did you mean 'table.log.ttl'" in done.said) == (1, True)
    done = run("alter", name, "--add-column", "c INT PRIMARY KEY")
    assert "cannot be changed" in done.said


def test_partitions_are_added_listed_and_dropped(made, run):
    name = made("id INT, day STRING", "--partition-by", "day").name
    assert run("partitions", "add", name, "day=1", "2").returncode == 0
    assert run("partitions", "ls", name).stdout == b"1\n2\n"
    assert run("partitions", "add", name, "1").returncode == 1
    assert run("partitions", "add", name, "1", "--if-not-exists").returncode == 0
    done = run("partitions", "ls", "-l", name, "-o", "csv")
    assert done.stdout.splitlines()[0] == b"name,id,buckets,log_rows"
    assert run("partitions", "drop", name, "day=1").returncode == 2
    assert run("partitions", "drop", name, "day=1", "--yes").said.startswith(
        "dropped partition day=1"
    )
    assert run("ls", name).stdout == b"2\n"
    for word, said in (("day=3/hour=1", "those are day"), ("dy=3", "'day'"), ("3$4", "hint: join")):
        done = run("partitions", "add", name, word)
        assert (done.returncode, said in done.said) == (1, True), done.said


def test_partitions_of_several_keys_are_named_with_all_of_them(made, run):
    name = made("id INT, y STRING, r STRING", "--partition-by", "y,r").name
    assert run("partitions", "add", name, "y=1/r=EU", "r=US,y=2", "3$EU").returncode == 0
    assert run("partitions", "ls", name).stdout.decode().split() == ["1$EU", "2$US", "3$EU"]
    done = run("partitions", "add", name, "y=1")
    assert "lacks the partition key 'r'" in done.said


def test_tables_are_listed_with_their_facts(made, run, database):
    made("id INT PRIMARY KEY, v INT", "--buckets", "2")
    (found,) = map(json.loads, run("ls", "-l", database).stdout.splitlines())
    assert found["kind"] == "primary key"
    assert (found["columns"], found["buckets"], found["partitions"]) == (2, 2, None)
    text = run("ls", "-l", database, "-o", "table").stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    assert "partitions" not in text  # NULL in every row
    assert [
        json.loads(each)["name"] for each in run("ls", "-o", "json", database).stdout.splitlines()
    ] == ["t"]


def test_a_table_is_described_with_its_properties_and_buckets(made, run):
    name = made("id INT", "--buckets", "2", "--set", "table.log.ttl=7d").name
    text = run("describe", name).stdout.decode()
    assert "  table.log.ttl = 7d" in text
    buckets = [json.loads(each) for each in run("describe", name, "--buckets").stdout.splitlines()]
    assert [each["bucket"] for each in buckets] == [0, 1]
    assert all(each["leader"] is not None and each["replicas"] for each in buckets)
    assert {each["end"] for each in buckets} == {0}
