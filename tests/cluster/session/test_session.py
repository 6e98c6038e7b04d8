"""`fluss.connect`: databases and tables by plain calls, and what a session leaves behind."""

import asyncio

import polars as pl
import pyarrow as pa
import pytest

import fluss
from fluss.connection.config_sources import active_config
from fluss.errors import (
    ClosedError,
    ConfigError,
    ConnectError,
    DatabaseNotEmptyError,
    InvalidNameError,
    InvalidSchemaError,
    InvalidValueError,
    MissingExtraError,
    TableNotFoundError,
)
from fluss.session import open_table


def test_databases_and_tables_come_and_go(session, database, rows):
    other = f"{database}_other"
    session.create_database(other, comment="for a moment")
    session.create_database(other, ignore_if_exists=True)
    assert {database, other} <= set(session.databases())
    session.create_table(f"{other}.t", rows.schema, buckets=1)
    assert session.tables(other) == ["t"]
    with pytest.raises(DatabaseNotEmptyError):
        session.drop_database(other)
    session.drop_table(f"{other}.t")
    session.drop_table(f"{other}.t", ignore_if_not_exists=True)
    session.drop_database(other)
    assert other not in session.databases()


def test_the_url_names_the_database(session, database, events):
    assert session.tables() == ["events"]
    assert session.table("events").name == f"{database}.events"


def test_a_url_names_a_table_and_how_it_is_scanned(cluster, database, events):
    with fluss.connect(f"fluss://{cluster.bootstrap}/{database}.events?tail=5&columns=id") as s:
        assert s.table().scan().to_arrow().shape == (5, 1)
        assert s.table().scan(tail=7).count() == 7
        with pytest.raises(TableNotFoundError):
            s.table("other")


def test_the_error_of_a_missing_table_names_the_nearest(session, events):
    with pytest.raises(TableNotFoundError, match="did you mean 'events'"):
        session.table("event")


def test_a_view_behind_the_name_says_what_scans_give(session, keyed):
    changelog = session.table(f"{keyed.name}$changelog")

    assert changelog.scan().schema.field("_change_type").type == pa.string()
    assert changelog.count() > keyed.count()
    assert changelog.scan(mode="state").count() == keyed.count()
    assert {"before", "after"} <= set(session.table(f"{keyed.name}$binlog").scan().schema.names)
    with pytest.raises(InvalidNameError, match=r"did you mean '\$changelog'"):
        session.table(f"{keyed.name}$changelgo")


def test_keys_of_one_column_are_deleted_as_they_are_looked_up(session, database):
    name = f"{database}.deleted"
    people = {"id": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]}
    session.upsert(name, people, create=True, primary_key=["id"], buckets=2)
    table = session.table(name)

    assert table.delete([1]).counts == {"delete": 1}
    table.delete(pa.array([2, 3]))

    assert table.to_arrow().to_pylist() == [{"id": 4, "name": "d"}]


def test_a_table_is_altered(session, events):
    table = session.alter_table("events", add_columns=pa.schema([("y", pa.int32())]))
    assert table.schema.names == ["id", "day", "x", "y"]
    assert table.scan(columns=["y"]).to_arrow().column("y").null_count == 1_000
    events.refresh()
    assert events.schema == table.schema
    session.alter_table("events", set_properties={"owner": "me"})
    assert session.table("events").info.get_custom_properties() == {"owner": "me"}
    session.alter_table("events", reset_properties=["owner"])
    assert session.table("events").info.get_custom_properties() == {}


@pytest.mark.parametrize("change", [{"add_columns": {"y": "INT"}}, {"set_properties": {"a": "b"}}])
def test_altering_no_table_is_an_error_unless_that_is_ignored(session, change):
    with pytest.raises(TableNotFoundError):
        session.alter_table("nothing", **change)
    assert session.alter_table("nothing", ignore_if_not_exists=True, **change) is None


def test_a_table_is_made_by_writing_to_it(session, rows):
    assert session.append("made", rows, create=True, buckets=1).rows == 1_000
    assert session.append("made", rows.slice(0, 5)).rows == 5
    assert session.table("made").count() == 1_005
    report = session.upsert("made_keyed", rows, create=True, primary_key=["id"], buckets=1)
    assert report.rows == 1_000
    assert session.table("made_keyed").primary_key == ("id",)
    with pytest.raises(InvalidValueError, match="create=True"):
        session.append("made", rows, buckets=3)


def test_a_table_shows_itself(session, parted, keyed):
    text = repr(parted)
    assert "day  STRING  partition key" in text
    assert "partitions: 3 by day" in text
    assert "rows: at most 1,000" in text
    assert "primary key: id" in repr(keyed)
    html = session.create_table(
        "marked", fluss.Schema.builder().column("a", fluss.DataTypes.int()).build(),
        comment="<b>&", buckets=1,
    )._repr_html_()  # fmt: skip
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html


def test_a_table_that_is_gone_still_shows_what_is_known(session, events):
    session.drop_table("events")
    assert "rows: not known" in repr(events)


def test_partitions_and_offsets(parted):
    assert [each.partition_name for each in parted.partitions()] == [
        "2026-01-01", "2026-01-02", "2026-01-03",
    ]  # fmt: skip
    parted.create_partition({"day": "2026-01-04"})
    parted.create_partition({"day": "2026-01-04"}, ignore_if_exists=True)
    assert len(parted.partitions()) == 4
    parted.drop_partition({"day": "2026-01-04"})
    offsets = parted.offsets()
    assert offsets.column_names == ["partition", "bucket", "earliest", "end"]
    assert sum(offsets.column("end").to_pylist()) == 1_000


def test_sessions_share_a_connection_and_the_last_closes_it(cluster):
    settings = {"bootstrap.servers": cluster.bootstrap, "request-timeout": "61s"}
    first, second = fluss.connect(config=settings), fluss.connect(config=settings)
    connection = first._connection
    first.close()
    first.close()
    assert not connection.is_closed
    assert second.databases()
    second.close()
    assert connection.is_closed
    with pytest.raises(ClosedError):
        second.databases()
    with fluss.connect(config=settings) as third:
        assert third.databases()


def test_a_connection_that_an_adapter_uses_outlives_the_sessions(cluster, events):
    settings = {"bootstrap.servers": cluster.bootstrap, "request-timeout": "62s"}
    with fluss.connect(config=settings) as first:
        table = open_table(events.name, config=first.config)
    assert table.count() == 1_000
    with fluss.connect(config=settings) as second:
        assert second._connection is table.__fluss_table__().connection


def test_inside_with_a_session_is_the_active_one(session, cluster):
    active = active_config()
    assert active is not None
    assert active.bootstrap_servers == cluster.bootstrap
    with fluss.connect(writer_acks="all") as inner:  # the servers are those of the active session
        assert inner.config.bootstrap_servers == cluster.bootstrap


def test_a_session_works_inside_a_running_loop(session, events):
    async def main():
        return events.scan(tail=5).to_arrow().num_rows

    assert asyncio.run(main()) == 5


def test_servers_and_counters(session):
    assert {each.server_type for each in session.servers()} == {
        "CoordinatorServer", "TabletServer",
    }  # fmt: skip
    assert session.counters()
    assert "Session(" in repr(session)


def test_an_unreachable_server_and_a_mistyped_url_are_errors():
    with pytest.raises(ConnectError):
        fluss.connect("fluss://127.0.0.1:1")
    with pytest.raises(ConfigError, match="did you mean"):
        fluss.connect("fluss://127.0.0.1:1?writer.ackz=1")


def test_without_a_launcher_the_error_names_the_pip_command(monkeypatch):
    monkeypatch.setattr("fluss.connection.embedded_launcher.entry_points", lambda **_: ())
    with pytest.raises(MissingExtraError, match="pip install"):
        fluss.connect("embedded:./data")


def test_without_a_name_and_without_a_url_there_is_no_table(cluster):
    with fluss.connect(config={"bootstrap.servers": cluster.bootstrap}) as s:
        with pytest.raises(InvalidNameError):
            s.table()
        with pytest.raises(InvalidNameError):
            s.tables()


def test_a_password_is_used_and_never_shown(cluster):
    url = f"fluss://{cluster.user}@{cluster.sasl_bootstrap}"
    with fluss.connect(url, password=lambda: cluster.password) as s:
        assert s.databases()
        assert cluster.user in repr(s)
        assert cluster.password not in repr(s)
        assert cluster.password not in fluss.config.explain()


def test_a_schema_is_given_by_texts_or_by_types_of_any_library(session):
    expected = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("tags", pa.list_(pa.string()))]
    )
    for index, schema in enumerate(
        [
            {"id": "BIGINT", "tags": "ARRAY<STRING>"},
            {"id": int, "tags": list[str]},
            {"id": pa.int64(), "tags": pl.List(pl.String)},
            pl.Schema({"id": pl.Int64, "tags": pl.List(pl.Categorical)}),
            [("id", "BIGINT"), fluss.Column("tags", "ARRAY<STRING>")],
        ]
    ):
        table = session.create_table(f"given{index}", schema, primary_key=["id"], buckets=1)
        assert table.schema.equals(expected, check_metadata=False)
    with pytest.raises(InvalidSchemaError, match="BIGNT"):
        session.create_table("not_made", {"id": "BIGNT"})
    with pytest.raises(InvalidSchemaError, match="is none") as refused:
        session.create_table("not_made", {"id": "BIGINT", "name": 7})
    assert "[{...}]" in refused.value.hint
    assert "not_made" not in session.tables()
    # Rows are data, whatever they say.
    session.append("kinds", {"kind": "INT"}, create=True, buckets=1)
    assert session.table("kinds").to_arrow().to_pylist() == [{"kind": "INT"}]


def test_columns_are_added_by_texts_or_by_types_of_any_library(session, events):
    session.alter_table("events", add_columns={"a": "DECIMAL(9, 2)", "b": pa.int32(), "c": str})
    session.alter_table("events", add_columns=[("d", pl.Int16), fluss.Column("e", "INT")])
    table = session.alter_table("events", add_columns=fluss.Column("f", "BYTES"))
    assert [str(each) for each in table.fluss_schema.column_types[3:]] == [
        "DECIMAL(9, 2)", "INT", "STRING", "SMALLINT", "INT", "BYTES",
    ]  # fmt: skip
    with pytest.raises(InvalidSchemaError, match="no type of a column"):
        session.alter_table("events", add_columns={"g": 5})
