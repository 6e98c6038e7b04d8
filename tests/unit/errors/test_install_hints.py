"""Hints about missing packages name what can be installed today."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from fluss.install_hints import how_to_install

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("fluss-core[cli]", "pip install 'rich>=14' 'typer>=0.24'"),
        ("fluss-core[pandas]", "pip install 'pandas>=3'"),
        ("fluss-core[fsspec]", "pip install 'fsspec>=2025.2'"),
        ("fluss-core[snapshot]", "pip install 'rocksdict>=0.3.29'"),
    ],
)
def test_an_extra_is_what_it_brings(name, command):
    declared = tomllib.loads((ROOT / "packages/fluss-core/pyproject.toml").read_text())
    extra = re.search(r"\[(\w+)\]", name).group(1)
    for requirement in declared["project"]["optional-dependencies"][extra]:
        assert requirement.partition(";")[0] in command
    assert how_to_install(name) == command


@pytest.mark.parametrize("name", ["fluss-server", "fluss-duckdb", "fluss-testkit", "fluss-native"])
def test_a_package_of_ours_comes_from_a_checkout(name):
    assert how_to_install(name) == (
        "run `./dev build` in a checkout of Fluss for Python, then: "
        f"pip install --find-links dist {name}"
    )


@pytest.mark.parametrize("extra", ["fast", "lake"])
def test_an_extra_that_brings_a_package_of_ours_comes_from_a_checkout(extra):
    name = f"fluss-core[{extra}]"
    assert how_to_install(name).endswith(f"pip install --find-links dist '{name}'")


def test_an_extra_of_a_package_without_metadata_comes_from_a_checkout(monkeypatch):
    def missing(_):
        raise PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.requires", missing)
    assert how_to_install("fluss-core[cli]").endswith("--find-links dist 'fluss-core[cli]'")
