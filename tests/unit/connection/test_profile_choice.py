"""Changing the default profile leaves the rest of the user's file as it is."""

import stat
import tomllib

import pytest

from fluss.connection.profiles import read_profiles, use_profile, with_default
from fluss.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('default = "a"\n[profiles.b]\n', 'default = "b"\n[profiles.b]\n'),
        ("[profiles.b]\n", 'default = "b"\n\n[profiles.b]\n'),
        ("# c\n\n[profiles.b]\n", 'default = "b"\n\n# c\n\n[profiles.b]\n'),
        ("", 'default = "b"\n'),
        ("[profiles.b]\ndefault = 1\n", 'default = "b"\n\n[profiles.b]\ndefault = 1\n'),
    ],
)
def test_only_the_line_of_the_default_changes(text, expected):
    assert with_default(text, "b") == expected


def test_a_name_is_quoted():
    name = 'a "b" \\ ü\n'
    assert tomllib.loads(with_default("", name))["default"] == name


def test_a_profile_is_chosen_and_the_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('default = "a"\n[profiles.a]\nbootstrap.servers = "a:1"\n[profiles.b]\n')
    path.chmod(0o640)
    environ = {"FLUSS_CONFIG": str(path)}
    assert use_profile(environ, "b").default == "b"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(read_profiles(environ).profiles) == ["a", "b"]
    assert [each.name for each in tmp_path.iterdir()] == ["config.toml"]


def test_a_profile_that_is_not_there_changes_nothing(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[profiles.prod]\n")
    with pytest.raises(ConfigError, match="did you mean 'prod'"):
        use_profile({"FLUSS_CONFIG": str(path)}, "prd")
    assert path.read_text() == "[profiles.prod]\n"


def test_without_a_file_there_are_no_profiles(tmp_path):
    found = read_profiles({"HOME": str(tmp_path)})
    assert (found.default, found.profiles) == (None, {})
    with pytest.raises(ConfigError, match=r"\[profiles\.x\]"):
        use_profile({"HOME": str(tmp_path)}, "x")
