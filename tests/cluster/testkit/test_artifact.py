"""The sources of jars, and the check of their bytes. No network."""

import hashlib
import stat

import pytest

from fluss.errors import ConfigError, MissingRuntimeError
from fluss_testkit.artifact import FLUSS_SERVER, LOG_BINDING, Artifact, find_jar

JAR = b"PK: a jar, as far as anybody can tell" * 100
ARTIFACT = Artifact(
    group="org.example.deep",
    name="thing",
    version="1.2.3-rc",
    sha256=hashlib.sha256(JAR).hexdigest(),
    size_bytes=len(JAR),
)


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine with an empty home, an empty cache and no Maven."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FLUSS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("FLUSS_MAVEN_REPOSITORY", raising=False)
    (tmp_path / "home" / ".m2").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    return tmp_path


def put(root, data=JAR):
    path = root / ARTIFACT.repository_path
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def install_maven(machine, script):
    program = machine / "bin" / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def cached(machine):
    return machine / "cache" / "jars" / ARTIFACT.file_name


def test_the_published_jars_are_pinned_by_sha_256():
    assert FLUSS_SERVER.coordinates == "org.apache.fluss:fluss-server:0.9.1-incubating"
    for artifact in (FLUSS_SERVER, LOG_BINDING):
        assert len(bytes.fromhex(artifact.sha256)) == 32


def test_a_jar_in_the_cache_is_used(machine):
    cached(machine).parent.mkdir(parents=True)
    cached(machine).write_bytes(JAR)
    assert find_jar(ARTIFACT) == cached(machine)


def test_a_jar_in_the_local_maven_repository_is_used_where_it_lies(machine):
    path = put(machine / "home" / ".m2" / "repository")
    assert find_jar(ARTIFACT) == path


def test_settings_may_name_another_local_repository(machine):
    settings = machine / "home" / ".m2" / "settings.xml"
    settings.write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">'
        "<localRepository>${user.home}/elsewhere</localRepository></settings>"
    )
    path = put(machine / "home" / "elsewhere")
    assert find_jar(ARTIFACT) == path


def test_the_repository_in_the_environment_is_asked_and_the_jar_is_kept(machine, monkeypatch):
    put(machine / "repository")
    monkeypatch.setenv("FLUSS_MAVEN_REPOSITORY", (machine / "repository").as_uri() + "/")
    assert find_jar(ARTIFACT) == cached(machine)
    assert cached(machine).read_bytes() == JAR
    assert [each.name for each in cached(machine).parent.iterdir()] == [ARTIFACT.file_name]


def test_maven_is_asked_for_exactly_this_jar(machine):
    source = put(machine / "central")
    install_maven(
        machine,
        f'for each in "$@"; do case "$each" in -DoutputDirectory=*) out="${{each#*=}}";; '
        f'-Dartifact={ARTIFACT.coordinates}) right=yes;; esac; done\n[ "$right" ] || exit 1\n'
        f'/bin/cp {source} "$out/"',
    )
    assert find_jar(ARTIFACT) == cached(machine)


def test_a_mirror_in_the_settings_serves_where_there_is_no_maven(machine):
    put(machine / "mirror")
    (machine / "home" / ".m2" / "settings.xml").write_text(
        "<settings><mirrors>"
        f"<mirror><mirrorOf>other</mirrorOf><url>{(machine / 'no').as_uri()}</url></mirror>"
        f"<mirror><mirrorOf>*</mirrorOf><url>{(machine / 'mirror').as_uri()}</url></mirror>"
        "</mirrors></settings>"
    )
    assert find_jar(ARTIFACT) == cached(machine)


@pytest.mark.parametrize("wrong", [JAR[:-1], JAR + b"!", b"x" * len(JAR), b""])
def test_other_bytes_than_the_pinned_ones_are_refused(machine, monkeypatch, wrong):
    put(machine / "repository", wrong)
    monkeypatch.setenv("FLUSS_MAVEN_REPOSITORY", (machine / "repository").as_uri())
    with pytest.raises(MissingRuntimeError, match="other bytes than the pinned SHA-256"):
        find_jar(ARTIFACT)
    assert not list((machine / "cache" / "jars").iterdir())


def test_a_damaged_jar_in_the_cache_is_replaced(machine, monkeypatch):
    cached(machine).parent.mkdir(parents=True)
    cached(machine).write_bytes(JAR[:100])
    put(machine / "repository")
    monkeypatch.setenv("FLUSS_MAVEN_REPOSITORY", (machine / "repository").as_uri())
    assert find_jar(ARTIFACT).read_bytes() == JAR


def test_where_no_source_has_it_the_error_names_what_was_tried_and_the_remedy(machine):
    install_maven(machine, "echo '[ERROR] Could not resolve it: offline' >&2; exit 1")
    with pytest.raises(MissingRuntimeError) as caught:
        find_jar(ARTIFACT)
    assert "the cache does not have it" in caught.value.message
    assert "mvn could not get it (Could not resolve it: offline)" in caught.value.message
    assert "\n" not in caught.value.message
    assert "FLUSS_MAVEN_REPOSITORY" in caught.value.hint
    assert ARTIFACT.file_name in caught.value.hint


def test_a_repository_that_is_no_url_is_refused_before_anything_is_fetched(monkeypatch):
    monkeypatch.setenv("FLUSS_MAVEN_REPOSITORY", "/just/a/path")
    with pytest.raises(ConfigError, match="not a URL"):
        find_jar(ARTIFACT)
