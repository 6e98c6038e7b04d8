"""Users that are added while the embedded server runs; refused as Fluss refuses."""

import pytest

from fluss.errors import FlussError
from fluss_server.access.user_passwords import (
    UserPasswords,
    read_entries,
    shown,
    with_entries,
    without_entries,
)

CONFIG_EXCEPTION = 64


class Settings:
    """A catalog's settings."""

    def __init__(self):
        self.stored = {}

    def setting(self, name):
        return self.stored.get(name)

    def put_setting(self, name, text):
        self.stored[name] = text


def test_added_users_come_to_those_of_the_start_and_hide_their_passwords():
    catalog = Settings()
    passwords = UserPasswords(catalog, {"admin": "a", "alice": "b"})
    assert (passwords.setting, dict(passwords)) == (None, {"admin": "a", "alice": "b"})
    passwords.store({"zoe": "c", "alice": "new"})
    for known in (passwords, UserPasswords(catalog, {"admin": "a", "alice": "b"})):
        assert dict(known) == {"admin": "a", "alice": "new", "zoe": "c"}
        assert known.setting == {"zoe": "c", "alice": "new"}
    passwords.store(None)
    for known in (passwords, UserPasswords(catalog, {"admin": "a"})):
        assert (known.setting, known["admin"]) == (None, "a")
    assert "alice" in passwords
    assert passwords["alice"] == "b"


def test_entries_are_appended_and_taken_away_by_name():
    assert read_entries("") == {}
    assert read_entries("a:1,b:2") == {"a": "1", "b": "2"}
    assert with_entries({"a": "1"}, "b:2,c:3") == {"a": "1", "b": "2", "c": "3"}
    assert without_entries({"a": "1", "b": "2"}, "a:other,other:x") == {"b": "2"}
    assert without_entries({"a": "1"}, "a:1") is None
    assert without_entries({}, "a:1") == {}
    assert shown({"a": "secret", "b": "other"}) == "a:******,b:******"


@pytest.mark.parametrize("text", ["bad", "x:", ":x", "a:b:c", "a:1,", "a:1,a:2", "a:1,bad"])
def test_what_is_no_map_is_refused_without_showing_it(text):
    for change in (read_entries, lambda each: with_entries({}, each)):
        with pytest.raises(FlussError) as refused:
            change(text)
        assert refused.value.error_code == CONFIG_EXCEPTION
        assert "bad" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "a:2", "b:1,a:2"])
def test_nothing_and_names_that_are_there_cannot_be_appended(text):
    with pytest.raises(FlussError) as refused:
        with_entries({"a": "1"}, text)
    assert refused.value.error_code == CONFIG_EXCEPTION
