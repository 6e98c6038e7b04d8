"""URLs of clusters and tables: what they say, what is refused, and that none shows a password."""

import contextlib

import pytest
from hypothesis import given, strategies as st

from fluss.connection.url import FlussUrl, hidden, parse_url
from fluss.errors import FlussError
from fluss.model.paths import TablePath
from fluss.scan import TableSource, source_of


def test_a_url_may_have_every_part():
    url = parse_url(
        "fluss://me@host:9123,host2/db.table?partitions=dt=2026-01-01&tail=100&writer.acks=all"
    )
    assert url.servers == ("host:9123", "host2:9123")
    assert (url.user, url.password) == ("me", None)
    assert (url.database, url.table) == ("db", "table")
    assert url.options == {"partitions": "dt=2026-01-01", "tail": "100"}
    assert url.settings == {"writer.acks": "all"}
    assert url.to_settings()["bootstrap.servers"] == "host:9123,host2:9123"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fluss://h", FlussUrl(servers=("h:9123",))),
        ("FLUSS://h:1/", FlussUrl(servers=("h:1",))),
        ("fluss://h/db", FlussUrl(servers=("h:9123",), database="db")),
        ("fluss://[::1]:5", FlussUrl(servers=("[::1]:5",))),
        ("fluss://[::1]", FlussUrl(servers=("[::1]:9123",))),
        ("fluss://a%40b:p%3Aq@h", FlussUrl(servers=("h:9123",), user="a@b", password="p:q")),
        (
            "fluss://me:${env:SECRET}@h",
            FlussUrl(servers=("h:9123",), user="me", password="${env:SECRET}"),
        ),
        ("fluss://me:pa/ss@h/db", FlussUrl(
            servers=("h:9123",), user="me", password="pa/ss", database="db"
        )),
        ("localhost:9123", FlussUrl(servers=("localhost:9123",))),
        ("h:1,h2/db.t?tail=5", FlussUrl(
            servers=("h:1", "h2:9123"), database="db", table="t", options={"tail": "5"}
        )),
        ("me:pw@h:1", FlussUrl(servers=("h:1",), user="me", password="pw")),
        ("[::1]:5/db", FlussUrl(servers=("[::1]:5",), database="db")),
        ("embedded:./data", FlussUrl(embedded="./data")),
        ("embedded:", FlussUrl(embedded="")),
    ],
)  # fmt: skip
def test_every_part_may_be_missing_but_a_server(text, expected):
    assert parse_url(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flus://h", "did you mean 'fluss'"),
        ("h:port", "not a URL"),
        ("h:99999", "not between 1 and"),
        ("h:1,:2", "not the address"),
        ("fluss:/h", "not a URL"),
        ("fluss://", "no server"),
        ("fluss://h:port", "port"),
        ("fluss://:secret@h", "no user"),
        ("fluss://h/a/b", "neither a database nor a table"),
        ("fluss://h/a.b.c", "neither a database nor a table"),
        ("fluss://h/a.", "neither a database nor a table"),
        ("fluss://h?tali=5", "did you mean 'tail'"),
        ("fluss://h?writer.ack=all", "did you mean 'writer.acks'"),
        ("fluss://h?tail", "no value"),
        ("fluss://h?tail=1&tail=2", "twice"),
        ("fluss://" + "h" * 20_000, "too long"),
    ],
)
def test_a_mistake_is_refused_with_a_hint(text, expected):
    with pytest.raises(FlussError) as caught:
        parse_url(text)
    assert expected in str(caught.value)


SECRET = "hunter2"


@pytest.mark.parametrize(
    "text",
    [f"fluss://me:{SECRET}@h", f"fluss://me:{SECRET}@h:x", f"flus://me:{SECRET}@h/a/b?c",
     f"fluss://me:{SECRET}@", f"fluss://me:{SECRET}@h?tali=1",
     f"fluss://me@h/d.t?tail=1&security.sasl.password={SECRET}"],
)  # fmt: skip
def test_a_password_is_never_shown(text):
    assert SECRET not in hidden(text)
    shown = []
    try:
        shown.append(parse_url(text))
    except FlussError as error:
        shown += [error, error.facts]
    assert SECRET not in "".join(f"{each}{each!r}" for each in shown)


@pytest.mark.parametrize("scheme", [" fluss", "fluss+sasl", "fluss-2", ""])
def test_a_text_that_looks_like_a_url_is_parsed_and_shows_no_password(scheme):
    text = f"{scheme}://me:{SECRET}@h/d.t"
    shown = []
    for ask in (source_of, TablePath.parse):
        try:
            shown.append(ask(text))
        except FlussError as error:
            shown += [error, error.facts]
    assert SECRET not in "".join(f"{each}{each!r}" for each in shown)
    assert isinstance(shown[0], TableSource) is (scheme == " fluss")


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_is_refused(text):
    for each in (text, f"fluss://{text}"):
        with contextlib.suppress(FlussError):
            parse_url(each)


def test_a_filter_in_a_url_is_a_condition_in_sql():
    url = parse_url("fluss://host:9123/d.t?filter=id%20%3E%205%20AND%20day%20%3D%20%27x%27&tail=3")
    assert url.options == {"filter": "id > 5 AND day = 'x'", "tail": "3"}
    source = source_of("fluss://host:9123/d.t?filter=id%20%3E%205")
    assert str(source.options.filter) == "id > 5"
