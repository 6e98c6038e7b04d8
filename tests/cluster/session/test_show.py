"""What sessions, tables, scans and plans show in notebooks: all there is, escaped, in no colour."""

from html.parser import HTMLParser

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fluss
import fluss.pandas
import fluss_duckdb
import fluss_polars  # noqa: F401 - gives frames `fluss`
from fluss import col
from fluss.errors import FlussError
from fluss.session.show import Explanation, session_html, silent_html

HOSTILE = "<script>alert('x')</script>&"


class Checked(HTMLParser):
    """The text of well-formed HTML, and the tags in it."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text, self.styles = [], set(), [], []
        self.feed(html)
        self.close()
        assert not self.open, "every tag is closed"

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.styles += [value for name, value in attrs if name == "style"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


KNOWN_TAGS = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "pre"}


def checked(html):
    found = Checked(html)
    assert found.tags <= KNOWN_TAGS
    for style in found.styles:
        assert "color: #" not in style
        assert "background: none" in style or "background" not in style
    return found.text


def test_a_table_shows_columns_keys_buckets_partitions_and_rows(parted, keyed):
    text = checked(parted._repr_html_())
    assert text[0] == f"Table {parted.name}"
    assert text[text.index("day") :][:3] == ["day", "STRING", "partition key"]
    assert text[text.index("rows") + 1] == "at most 1,000"
    assert text[text.index("partitions") + 1] == "3 by day"
    assert "primary key" in checked(keyed._repr_html_())


def test_a_session_shows_its_databases_and_tables(session, database, events, keyed):
    text = checked(session._repr_html_())
    assert text[0] == repr(session)
    if database in text:  # at most twenty are shown
        assert text[text.index(database) + 1 :][:2] == ["2", "events, keyed"]
    else:
        assert any("more databases" in each for each in text)


def test_a_session_that_gets_no_answer_shows_the_rest(cluster, session, monkeypatch):
    monkeypatch.setattr(session, "databases", lambda: (_ for _ in ()).throw(FlussError("gone")))
    assert checked(session._repr_html_()) == [repr(session), "databases", "not known: gone"]
    with fluss.connect(f"fluss://{cluster.bootstrap}") as other:
        pass
    assert checked(other._repr_html_()) == [repr(other)]
    assert "closed" in repr(other)


def test_many_databases_and_tables_are_cut_and_counted():
    tables = {f"d{each}": [f"t{number}" for number in range(50)] for each in range(3)}
    text = checked(session_html("Session()", tables, more=7))
    assert "50" in text
    assert any(each.endswith(", …") for each in text)
    assert text[-2:] == ["and", "7 more databases"]


def test_a_scan_shows_its_options_and_asks_no_server(events):
    scan = events.scan(columns=["x", "_bucket"], filter=col("id") < 5, limit=3)
    text = checked(scan._repr_html_())
    assert text[0] == f"Scan of {events.name}"
    assert text[text.index("filter") + 1] == "id < 5"
    assert text[text.index("x") + 1] == "double"
    assert text[text.index("pinned") + 1] == "when it is first read"
    scan.to_arrow()
    text = checked(scan._repr_html_())
    assert text[text.index("read so far") + 1] == "3 rows"


def test_a_wide_scan_shows_how_many_columns_are_left_out(session):
    wide = pa.schema([(f"c{each}", pa.int32()) for each in range(250)])
    text = checked(session.create_table("wide", wide, buckets=1).scan()._repr_html_())
    assert text[text.index("and") + 1] == "50 more columns"


def test_an_explanation_is_text_and_shows_its_lines(events):
    explained = events.scan(filter=col("id") == 5).explain()
    assert isinstance(explained, str)
    assert explained.startswith("Scan of ")
    text = checked(explained._repr_html_())
    assert [text[0], *"".join(text[1:]).split("\n")] == explained.split("\n")

    class Printer:
        shown = ""

        def text(self, text):
            self.shown += text

    explained._repr_pretty_(printer := Printer(), cycle=False)
    assert printer.shown == explained


@pytest.mark.parametrize(
    "html",
    [
        lambda: Explanation(f"{HOSTILE}\n{HOSTILE}")._repr_html_(),
        lambda: session_html(HOSTILE, {HOSTILE: [HOSTILE]}),
        lambda: silent_html(HOSTILE, FlussError(HOSTILE)),
    ],
    ids=["plan", "session", "silent session"],
)
def test_what_comes_from_a_cluster_is_escaped(html):
    assert HOSTILE in "".join(checked(html()))


def test_comments_and_column_names_are_escaped(session):
    described = fluss.Schema.builder().column(HOSTILE, fluss.DataTypes.int()).build()
    table = session.create_table("marked", described, comment=HOSTILE, buckets=1)
    assert checked(table._repr_html_()).count(HOSTILE) == 2
    assert HOSTILE in checked(table.scan(filter=col(HOSTILE) > 1)._repr_html_())


def test_accessors_of_frames_show_their_calls():
    for shown in (
        pl.DataFrame({"a": [1]}).fluss,
        pl.LazyFrame({"a": [1]}).fluss,
        pd.DataFrame({"a": [1]}).fluss,
    ):
        text = checked(shown._repr_html_())
        assert text[0] == type(shown).__name__
        assert 'append("database.table")' in text
        assert "Append the rows to a log table, and wait until the servers have them." in text
        assert "upsert" in repr(shown)


def test_a_follower_and_a_connection_of_duckdb_are_shown(session, events):
    with events.follow(start="earliest") as following:
        next(iter(following))
        text = checked(following._repr_html_())
        assert text[0] == f"Follow of {events.name}"
        assert text[-1] != "0 rows"
        assert repr(following) == f"Follow({events.name})"
    assert repr(following).endswith(", closed)")
    with fluss_duckdb.connect(session=session) as con:
        text = checked(con._repr_html_())
        assert text[0] == "Connection of DuckDB"
        assert repr(session) in text
