"""The environment with pyfluss: if it cannot be made, one line gives the reason."""

import sys

import pytest

from tools import peer


def test_an_interpreter_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("FLUSS_PEER_PYTHON", str(tmp_path / "python"))
    with pytest.raises(peer.PeerUnavailableError, match="does not exist"):
        peer.peer_python()


def test_an_interpreter_without_the_peer_is_refused(monkeypatch):
    monkeypatch.setenv("FLUSS_PEER_PYTHON", sys.executable)
    with pytest.raises(
        peer.PeerUnavailableError, match=r"pyfluss==1\.0\.0 cannot be had"
    ) as caught:
        peer.peer_python()
    assert "\n" not in str(caught.value)


def test_a_python_without_wheels_needs_another_one(monkeypatch):
    monkeypatch.delenv("FLUSS_PEER_PYTHON", raising=False)
    monkeypatch.setattr(peer.sys, "version_info", (3, 14, 0))
    monkeypatch.setattr(peer.shutil, "which", lambda *_, **__: None)
    with pytest.raises(peer.PeerUnavailableError, match=r"up to Python 3\.12 only"):
        peer.peer_python()


def test_nothing_of_our_environment_reaches_the_peer(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "packages/fluss-core/src")
    monkeypatch.setenv("VIRTUAL_ENV", "somewhere")
    assert not {"PYTHONPATH", "VIRTUAL_ENV"} & set(peer.peer_environment())


def test_both_sides_have_the_same_arrow():
    pins = peer._shared_pins()
    assert {pin.split("==")[0] for pin in pins} == {"pyarrow", "pandas", "numpy"}
