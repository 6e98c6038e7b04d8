"""Every command uses the cluster that an option names, before that of the environment."""

from __future__ import annotations

import pytest

NOWHERE = "fluss://127.0.0.1:1"
READING = [
    ["ls"],
    ["describe", "{table}"],
    ["head", "{table}"],
    ["tail", "{table}"],
    ["count", "{table}"],
    ["lookup", "{table}", "1"],
    ["export", "{table}", "-"],
    ["import", "{table}", "{file}"],
    ["sql", "FROM fluss('{table}')"],
    ["demo", "--rounds", "1"],
]


@pytest.fixture
def filled(people, tmp_path):
    """Return a function that fills table and file into the arguments of a command."""
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": 9, "name": "Nia", "price": null}\n')
    return lambda words: [each.format(table=people, file=file) for each in words]


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
def test_every_command_uses_the_cluster_of_the_options(run, filled, words, tmp_path):
    done = run("--url", NOWHERE, *filled(words))
    assert (done.returncode, done.stdout) == (1, b"")
    assert "127.0.0.1:1" in done.said
    path = tmp_path / "config.toml"
    path.write_text('[profiles.nowhere]\nbootstrap.servers = "127.0.0.1:1"\n')
    done = run("--profile", "nowhere", *filled(words))
    assert (done.returncode, done.stdout) == (1, b"")
    assert "127.0.0.1:1" in done.said


@pytest.mark.parametrize("words", READING[:-1], ids=lambda words: words[0])
def test_every_command_uses_the_cluster_of_the_environment(
    run, filled, words, monkeypatch, cluster
):
    monkeypatch.setenv("FLUSS_URL", NOWHERE)
    done = run(*filled(words))
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.said
    assert run("--url", f"fluss://{cluster.bootstrap}", *filled(words)).returncode == 0


def test_a_profile_overrides_the_environment(run, people, cluster, monkeypatch, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(f'[profiles.here]\nbootstrap.servers = "{cluster.bootstrap}"\n')
    monkeypatch.setenv("FLUSS_URL", NOWHERE)
    monkeypatch.setenv("FLUSS_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    for words in (["count", people], ["sql", f"FROM {people} SELECT count(*)", "-o", "csv"]):
        done = run("--profile", "here", *words)
        assert done.stdout.split()[-1] == b"3", done.said


def test_a_table_may_be_named_by_its_url_in_every_command(run, people, cluster, tmp_path):
    url = f"fluss://{cluster.bootstrap}/{people}"
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": 9, "name": "Nia", "price": null}\n')
    assert run("import", url, str(file)).returncode == 0
    assert run("count", url).stdout == b"4\n"
    done = run("--url", NOWHERE, "count", url)
    assert done.returncode == 2
    assert "both name a cluster" in done.said


@pytest.mark.parametrize("option", ["--url", "--profile"])
def test_a_command_without_a_cluster_refuses_the_option(run, option, tmp_path):
    done = run(option, NOWHERE, "server", "--data-dir", str(tmp_path / "data"), "--port", "0")
    assert done.returncode == 2
    assert "leave them out" in done.said
    assert not (tmp_path / "data").exists()


def test_options_that_contradict_each_other_are_refused(run, people, cluster, tmp_path):
    query = f"FROM fluss('{people}')"
    here = f"fluss://{cluster.bootstrap}"
    assert run("sql", query, "--url", here).returncode == 0
    assert run("--url", here, "sql", query, "--url", here).returncode == 0
    done = run("--url", NOWHERE, "sql", query, "--url", here)
    assert (done.returncode, done.stdout) == (2, b"")
    done = run("--url", here, "demo", "--data-dir", str(tmp_path / "shop"))
    assert (done.returncode, done.stdout) == (2, b"")


def tables_seen(session, own):
    """The tables of the databases that a demo may touch, and of this test's own.

    Other tests may use the same cluster meanwhile.
    """
    mine = own.partition(".")[0]
    near = ("fluss", "shop", mine)
    return {each: session.tables(each) for each in session.databases() if each.startswith(near)}


def test_the_demo_touches_only_the_database_that_it_makes(run, session, cluster, people):
    for name in ("shop", "fluss_demo"):
        session.create_database(name, ignore_if_exists=True)
    for name in ("shop.orders", "fluss_demo.orders", "fluss_demo.important"):
        session.upsert(name, [{"id": 1}], create=True, primary_key=["id"], buckets=1)
    before = tables_seen(session, people)
    try:
        done = run("--url", f"fluss://{cluster.bootstrap}", "demo", "--rounds", "1")
        assert done.returncode == 0, done.said
        assert b"all as in the books" in done.stdout
        after = tables_seen(session, people)
        assert {each: after.get(each) for each in before} == before
        assert set(after) == set(before)
        assert session.table("fluss_demo.important").count() == 1
        assert session.table("shop.orders").count() == 1
    finally:
        for name in ("shop", "fluss_demo", "fluss_demo_2"):
            session.drop_database(name, ignore_if_not_exists=True, cascade=True)


def test_the_demo_describes_itself(run):
    help_text = " ".join(run("demo", "--help").stdout.decode().split())
    assert "creates a database of its own" in help_text
    assert "drops only that database" in help_text
