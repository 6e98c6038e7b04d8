from __future__ import annotations

import pytest

from fluss.errors import ConfigError
from fluss.model.options.secrets import is_marker, parse_properties, resolve_secret

ENVIRON = {"PW": "geheim", "EMPTY": ""}
FILES = {
    "/run/secrets/pw": b"geheim\n",
    "/etc/creds.properties": b"user = me\npw: gro\\u00dfes Geheimnis \n# pw=no\n",
    "C:\\secrets/pw": b"fenster",
    "/bad": b"\xff",
    "/long": b"x" * 1_000_001,
}


def read_file(path):
    try:
        return FILES[path]
    except KeyError:
        raise FileNotFoundError(2, "No such file or directory", path) from None


@pytest.mark.parametrize(
    ("marker", "secret"),
    [
        ("${env:PW}", "geheim"),
        ("${env:EMPTY}", ""),
        ("${directory:/run/secrets:pw}", "geheim\n"),
        ("${directory:/run/secrets/:pw}", "geheim\n"),
        ("${directory:C:\\secrets:pw}", "fenster"),
        ("${file:/etc/creds.properties:user}", "me"),
        ("${file:/etc/creds.properties:pw}", "großes Geheimnis "),
        ("plain", "plain"),
        ("", ""),
        ("a ${env:PW} b", "a ${env:PW} b"),
        ("$${env:PW}", "${env:PW}"),
        ("${", "${"),
    ],
)
def test_a_marker_stands_for_what_it_names_and_other_text_for_itself(marker, secret):
    assert resolve_secret(marker, ENVIRON, read_file) == secret


@pytest.mark.parametrize(
    ("marker", "why"),
    [
        ("${env:NOPE}", "'NOPE', which ${env:NOPE} stands for, is not set"),
        ("${env:a:PW}", "not a marker that can be resolved"),
        ("${env:}", "not a marker"),
        ("${vault:x}", "not a marker"),
        ("${x}", "not a marker"),
        ("${directory:pw}", "not a marker"),
        ("${directory:/run/secrets:}", "not a marker"),
        ("${directory:/run/secrets:../passwd}", "not a file"),
        ("${directory:/run/secrets:..}", "not a file"),
        ("${directory:/run/secrets:nope}", "No such file"),
        ("${file:/etc/creds.properties:nope}", "no property 'nope'"),
        ("${file:/bad:x}", "not UTF-8"),
        ("${directory:/:long}", "too many"),
    ],
)
def test_a_marker_that_leads_nowhere_is_refused(marker, why):
    with pytest.raises(ConfigError) as caught:
        resolve_secret(marker, ENVIRON, read_file)
    assert why in caught.value.message


def test_what_is_a_marker():
    assert is_marker("${env:X}")
    assert not is_marker("${}")
    assert not is_marker("${env:X} ")
    assert not is_marker("$${env:X}")
    assert not is_marker(None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=1\nb = 2\nc:3\nd 4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("  a  =  1  ", {"a": "1  "}),
        ("a=1=2:3", {"a": "1=2:3"}),
        ("# a=1\n! b=2\n\n c=3", {"c": "3"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a = x\\\n   y\\\n   z", {"a": "xyz"}),
        ("a = x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=x\\", {"a": "x"}),
        ("a\\=b\\ c = \\t\\n\\q", {"a=b c": "\t\nq"}),
        ("key\\u0041=\\u00e9", {"keyA": "é"}),
        ("alone", {"alone": ""}),
        ("a\\\n=b", {"a": "b"}),
        ("a=b\\\n#c", {"a": "b#c"}),
    ],
)
def test_properties_files_are_read_as_java_reads_them(text, found):
    assert parse_properties(text) == found


def test_an_escape_that_is_cut_off_is_refused():
    for text in ("a=\\u12", "a=\\u12zz", "a=\\u"):
        with pytest.raises(ConfigError, match="four digits"):
            parse_properties(text)
