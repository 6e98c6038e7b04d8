"""What `import fluss` costs, what it offers, and when it refuses; and that every option counts."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fluss
from fluss.model.options.config import Config

PACKAGE = Path(fluss.__file__).parent
HEAVY = ("pyarrow", "pandas", "polars", "duckdb", "numpy", "google.protobuf", "asyncio", "anyio")

# Options that are accepted and change nothing, each for a reason.
WITHOUT_EFFECT: dict[str, str] = {}


def run(program: str, *, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-c", program]
    if path is not None:
        program = f"import sys; sys.path.insert(0, {str(path)!r}); {program}"
        arguments = [sys.executable, "-S", "-c", program]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)


def test_importing_fluss_loads_its_front_page_and_nothing_heavy():
    """What is not loaded takes no time."""
    program = (
        "import sys, fluss; "
        "print([each for each in sys.modules if each.split('.')[0] == 'fluss']); "
        f"print([each for each in {HEAVY} if each in sys.modules])"
    )
    assert run(program).stdout.splitlines() == ["['fluss']", "[]"]


def test_a_session_needs_no_engine_and_no_pandas():
    """pa.array() imports pandas where that is installed, so it has no place in a module's body."""
    result = run(
        "import sys, fluss.session.session; "
        "heavy = {'pandas', 'polars', 'duckdb', 'fsspec', 'pyspark'} & set(sys.modules); "
        "sys.exit(f'{heavy} were imported' if heavy else 0)"
    )
    assert result.returncode == 0, result.stderr


def test_a_config_and_a_path_need_no_arrow():
    result = run(
        "import sys, fluss; fluss.Config({'writer.acks': 'all'}); fluss.TablePath('a', 'b'); "
        "fluss.col('a') > 1; assert 'pyarrow' not in sys.modules"
    )
    assert result.returncode == 0, result.stderr


def test_every_public_name_is_there():
    assert dir(fluss) == sorted(fluss.__all__)
    for name in fluss.__all__:
        assert getattr(fluss, name) is not None


def test_type_checkers_and_the_runtime_see_the_same_names():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = (
        node for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )  # fmt: skip
    seen = {
        alias.asname
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen | {"__version__"} == set(fluss.__all__)


def test_a_name_that_does_not_exist_comes_with_the_nearest():
    with pytest.raises(AttributeError, match=r"no attribute 'TabelPath'; did you mean 'TablePath'"):
        fluss.TabelPath  # noqa: B018 - looking is what fails


def test_a_folder_shared_with_pyfluss_is_refused_with_the_remedy(tmp_path):
    mixed = tmp_path / "fluss"
    mixed.mkdir()
    shutil.copy(PACKAGE / "__init__.py", mixed)
    (mixed / "_fluss.cpython-311-x86_64-linux-gnu.so").touch()
    result = run("import fluss", path=tmp_path)
    assert result.returncode != 0
    assert "ImportError: pyfluss and fluss-core are installed in the same place" in result.stderr
    assert "pip uninstall pyfluss" in result.stderr


def test_every_option_is_read_somewhere():
    readers = [
        path.read_text()
        for path in PACKAGE.rglob("*.py")
        if "model" not in path.parts or path.name == "config.py"
    ]
    text = "\n".join(readers)
    unread = {
        option.name
        for option in Config.OPTIONS.values()
        if not re.search(rf"\b(config|resolved|self|options)\.{option.name}\b", text)
    }
    known = {"bootstrap_servers", "security_sasl_password"}  # read under other names
    assert unread - known == set(WITHOUT_EFFECT)
