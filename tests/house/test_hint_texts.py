"""Hints of the core that differ by door are found by key (decision 0011).

A text beside its error must be right at every door: for users of Polars, of Spark and of the shell.
What names a method, an option or a type belongs into the tables of `fluss.hints`, under a key.
"""

import ast
import re

from tests.house.sources import CORE, ROOT, package_files, tree_of

# Rooms that are a door of their own, or beneath one door only: their texts are in its words.
AT_ONE_DOOR = (
    "aio/", "cli/", "fsspec/", "pandas/", "session/", "dialects/", "exactly_once/", "log/log_scan.py",
    "state/limit_scan.py", "admin/admin.py", "write/pandas_frames.py", "write/polars_frames.py",
    "model/types/polars_types.py", "connection/arguments.py", "model/offsets.py",
    "scan/dataset.py", "scan/follow.py", "scan/followed_table.py", "scan/scan.py", "scan/table_source.py",
)  # fmt: skip
# A method, an option as an argument, or a type of one library.
OF_A_DOOR = re.compile(r"\b[a-z_]\w*\(|\b(?:pa|pl|pd|pyarrow)\.|\b[a-z_]+=(?![:'\w]*\.)|_OFFSET\b")
# Right everywhere: types and descriptors are made with `fluss` at every door that makes tables.
RIGHT_EVERYWHERE = re.compile(
    r"DataTypes|fluss\.Schema|Schema\.builder|TablePath\(|call schema|close\(\)|is_in\(\)|"
    r"custom_properties|pyarrow\.Schema|pip install|float\(|key=value|name=value|errors=|resolved|bucket_key_encoder|from_pylist|NAME=|chmod|export "
)


def texts_of(node):
    return [
        "".join(
            getattr(part, "value", "")
            for part in ast.iter_child_nodes(each)
            if isinstance(part, ast.Constant)
        )
        if isinstance(each, ast.JoinedStr)
        else each.value
        for each in ast.walk(node)
        if isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
    ]


# What scans of every door call in fluss_lake; the rest is called by the commands of tiering.
READ_BY_SCANS = (
    "catalogs", "file_plan", "file_reader", "iceberg", "iceberg_parts", "read_errors", "table_checks",
)  # fmt: skip


def test_a_text_of_the_core_that_names_a_method_has_a_key():
    names = {
        path: path.relative_to(CORE).as_posix()
        for path in package_files()
        if path.is_relative_to(CORE)
    }
    lake = ROOT / "packages/fluss-lake/src/fluss_lake"
    names |= {lake / f"{name}.py": f"fluss_lake/{name}.py" for name in READ_BY_SCANS}
    found = [
        f"{name}:{line}: {text}"
        for path, name in names.items()
        if not name.startswith(AT_ONE_DOOR)
        for line, text in hint_texts(path)
        if OF_A_DOOR.search(text) and not RIGHT_EVERYWHERE.search(text)
    ]
    assert not found, "\n".join(found)


def hint_texts(path):
    """The texts that a file gives as hints, without those inside of a `Hint`."""
    for node in ast.walk(tree_of(path)):
        is_hint = isinstance(node, ast.keyword) and node.arg == "hint"
        if is_hint and not isinstance(node.value, ast.Call):
            for text in texts_of(node.value):
                yield node.value.lineno, text
