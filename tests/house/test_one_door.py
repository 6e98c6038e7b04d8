"""Adapters come in by the door of scans, and the rules of a scan are decided behind it alone.

An adapter imports what `ALLOWED` lists, each for the reason beside it, and nothing else.
"""

import ast
import re

import pytest

from tests.house.sources import ROOT, package_files, text_of, tree_of

ADAPTERS = {
    "fluss_polars": "packages/fluss-polars/src",
    "fluss_duckdb": "packages/fluss-duckdb/src",
    "fluss_spark": "packages/fluss-spark/src",
    "fluss.pandas": "packages/fluss-core/src/fluss/pandas",
    "fluss.fsspec": "packages/fluss-core/src/fluss/fsspec",
    "fluss.cli": "packages/fluss-core/src/fluss/cli",
    "examples": "examples/adapters",
}

# A module, or with a dot at its end all modules of a room.
ALLOWED = {
    "fluss": "the public names",
    "fluss.scan": "the door: everything about reading",
    "fluss.session": "sessions and tables: writes, lookups, administration",
    "fluss.session.frame_verbs": "the verbs of writes that accessors of frames share",
    "fluss.exactly_once": "writes of tasks that are repeated",
    "fluss.errors": "the classes of errors",
    "fluss.error_codes": "the codes of errors",
    "fluss.hints": "an adapter is a door, and names itself where errors leave it",
    "fluss.doors": "marks the functions at which errors leave an adapter",
    "fluss.install_hints": "how to install what is missing",
    "fluss.net.cancellation": "the token by which a caller ends what an adapter waits for",
    "fluss.waiting": "a thread that waits must end on a signal, in adapters as well",
    "fluss.connection.config_sources": "settings from URLs, profiles and the environment",
    "fluss.admin.health": "what `fluss doctor` shows",
    "fluss.admin.name_lists": "names for completion, found without loading Arrow",
    "fluss.connection.profiles": "the profile file, which the command line lists and changes",
    "fluss.connection.url": "what a URL says, before anything is opened",
    "fluss.native": "whether native code is used, which `fluss doctor` reports",
    "fluss.model.options.config": "the class of settings",
    "fluss.model.options.secrets": "secrets that stay markers where settings travel",
    "fluss.model.did_you_mean": "the nearest of several names, for an adapter's own arguments",
    "fluss.model.types.": "types of columns, to map them to those of a library",
    "fluss.model.values.": "zones and values, to map them to those of a library",
    "fluss.model.schema.": "columns of tables that an adapter creates",
    "fluss.model.tables.": "descriptions of tables that an adapter creates",
    "fluss.typed.": "classes of rows, of which the command line reads and prints files",
    "fluss.write.": "how frames of a library are written",
    "fluss.cli.": "the group of commands, which the commands of other packages join",
    "fluss.rows.formats.civil": "days of the calendar, which texts of the command line name",
}

# Names of decisions about scans. Outside of the room a name is a rule that is decided again.
RULES = re.compile(
    r"\b(takes_filter|filter_prunes|repeatable_order|plan_scan|shape_of|ScanShape|SplitReader|"
    r"plan_filter|split_schema|narrow_splits|split_arrow|fields_of|decide_(mode|output|range))\b"
)
# Where their parts are defined, beneath the room.
RULES_BENEATH = ("records/filter/", "model/options/")


def files_of(adapter):
    return sorted((ROOT / ADAPTERS[adapter]).rglob("*.py"))


def imported_by(path):
    """The modules of ours that a file imports, wherever in the file."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def is_allowed(module, adapter):
    own = adapter if adapter.startswith("fluss.") else "-"
    if module.partition(".")[0] != "fluss" or module == own or module.startswith(own + "."):
        return True
    rooms = tuple(name for name in ALLOWED if name.endswith("."))
    return module in ALLOWED or module.startswith((*rooms, "fluss.pandas"))


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_imports_the_door_and_nothing_beneath(adapter):
    beneath = {
        f"{module} ({path.name})"
        for path in files_of(adapter)
        for module in imported_by(path)
        if not is_allowed(module, adapter)
    }
    assert not beneath, f"{adapter} imports from beneath the door: {beneath}"


def test_a_rule_of_a_scan_is_named_in_its_room_alone():
    found = []
    for path in package_files():
        place = path.as_posix().partition("/src/")[2]
        inside = place.removeprefix("fluss/")
        if inside.startswith(("scan/", *RULES_BENEATH)):
            continue
        found += [f"{place}: {rule.group()}" for rule in RULES.finditer(text_of(path))]
    assert not found, found


def test_what_is_planted_is_found(tmp_path):
    planted = tmp_path / "planted.py"
    planted.write_text(
        "from fluss.scan.narrow import narrow\nimport fluss.log.fetcher\n"
        "def f():\n    from fluss.records.filter import row_filter\n"
        "from fluss.scan import Scan\nimport polars\n"
    )
    refused = {module for module in imported_by(planted) if not is_allowed(module, "fluss_polars")}
    assert refused == {"fluss.log.fetcher", "fluss.scan.narrow", "fluss.records.filter"}
    assert RULES.search("if options.takes_filter:")
    assert not RULES.search("plan_scanner, shapes_of")
