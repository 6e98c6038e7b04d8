"""The pages agree with the code: options, errors and names; and their links lead somewhere."""

import builtins
import importlib
import inspect
import re

import pytest

import fluss.errors
from fluss.hints import HintKey
from fluss.model.options.config_options import ClientOptions
from fluss.model.options.scan_options import SCAN_OPTIONS
from fluss.model.tables.table_options import TableOptions
from fluss_spark.spark_options import ALIASES, READING, WRITING
from tests.house.sources import ROOT, tracked_texts
from tools.docs.error_pages import error_classes
from tools.docs.generated import generated_docs

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("packages/*/README.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
INSTALL = re.compile(r"pip install\b[^`\n]*\bfluss-[^`\n]*")
ERROR = re.compile(r"`(?:fluss\.)?(\w+Error)`")
HEADING = re.compile(r"^#+ (.+?)(?: \{#([\w-]+)\})?$", re.MULTILINE)
REFERENCE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
# What users import; each has `__all__`.
PUBLIC = (
    "fluss",
    "fluss.aio",
    "fluss.exactly_once",
    "fluss.fsspec",
    "fluss.pandas",
    "fluss.scan",
    "fluss.session",
    "fluss.typed",
    "fluss_duckdb",
    "fluss_polars",
    "fluss_server",
    "fluss_spark",
)


def without_code(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors_of(page):
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    found = set()
    for title, own in HEADING.findall(without_code(page)):
        plain = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
        found.add(own or re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
    return found


@pytest.mark.parametrize("name", generated_docs())
def test_a_generated_page_is_up_to_date(name):
    assert (DOCS / name).read_text() == generated_docs()[name], "run `./dev generate`"


def test_every_option_is_on_the_page():
    page = (DOCS / "options.md").read_text()
    for key in [*SCAN_OPTIONS, *ClientOptions.OPTIONS, *TableOptions.OPTIONS]:
        assert f"| `{key}` |" in page, key
    for key in [*ALIASES, *READING, *WRITING]:
        assert f"`{key}`" in page, key


def test_every_option_of_spark_is_explained():
    page = (DOCS / "spark.md").read_text()
    for key in [*READING, *WRITING]:
        assert f"`{key}`" in page, key


def test_every_error_and_every_hint_is_on_the_page():
    page = (DOCS / "errors.md").read_text()
    defined = {
        each
        for _, each in inspect.getmembers(fluss.errors, inspect.isclass)
        if issubclass(each, BaseException) and each.__module__ == "fluss.errors"
    }
    assert {each for classes in error_classes().values() for each in classes} == defined
    for each in defined:
        assert f"| `{each.__name__}` |" in page
        assert inspect.getdoc(each), each
    for key in HintKey:
        assert f"### `{key.name.lower()}`" in page


def public_names():
    """Yield every public name once, with the object."""
    seen = {}
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            found = getattr(module, name)
            if not name.startswith("__") and not inspect.ismodule(found):
                key = id(found) if callable(found) else name
                seen.setdefault(key, (f"{module_name}.{name}", found))
    yield from seen.values()


def test_every_public_name_is_in_the_reference():
    found = {
        name: importlib.import_module(name.rpartition(".")[0])
        for page in (DOCS / "api").glob("*.md")
        for name in REFERENCE.findall(page.read_text())
    }
    documented = {
        id(getattr(module, name.rpartition(".")[2])) for name, module in found.items()
    } | {name.rpartition(".")[2] for name in found}
    missing = [
        name
        for name, each in public_names()
        if id(each) not in documented and name.rpartition(".")[2] not in documented
    ]
    assert not missing


def test_every_name_of_the_reference_exists_once():
    names = [
        name for page in (DOCS / "api").glob("*.md") for name in REFERENCE.findall(page.read_text())
    ]
    assert len(names) == len(set(names))
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ImportError:
            assert hasattr(importlib.import_module(module), attribute), name


def test_every_public_name_has_a_docstring():
    missing = []
    for name, each in public_names():
        if not (inspect.isclass(each) or inspect.isroutine(each)):
            continue
        if not inspect.getdoc(each):
            missing.append(name)
        if inspect.isclass(each) and not issubclass(each, BaseException):
            missing += [
                f"{name}.{member}"
                for member, value in vars(each).items()
                if not member.startswith("_")
                and (inspect.isfunction(value) or isinstance(value, property))
                and not getattr(value, "__name__", "").startswith("_")  # what refuses many names
                and not inspect.getdoc(value)
            ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in LINK.findall(without_code(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors_of(found), target


def test_anchors_are_those_of_headings(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `code`, twice\n\n```\n# no heading\n```\n\n## What [is](x.md) it?\n")
    assert anchors_of(page) == {"a-code-twice", "what-is-it"}


def test_every_page_is_found_from_the_index():
    index = (DOCS / "README.md").read_text()
    linked = {(DOCS / each.partition("#")[0]).resolve() for each in LINK.findall(index)}
    folders = [page for name in ("guide", "tutorials") for page in (DOCS / name).glob("*.md")]
    for page in [*DOCS.glob("*.md"), *folders, *DOCS.glob("*/README.md")]:
        assert page in linked or page == DOCS / "README.md", page.name


def test_every_notebook_is_listed_and_in_the_navigation():
    page = (DOCS / "tutorials/notebooks.md").read_text()
    navigation = (ROOT / "tools/docs/mkdocs.yml").read_text()
    for notebook in (ROOT / "examples/notebooks").glob("*.ipynb"):
        assert f"(../../examples/notebooks/{notebook.name})" in page
        assert f"repository/examples/notebooks/{notebook.name}.md" in navigation


@pytest.mark.parametrize("folder", ["cookbook", "api"])
def test_every_page_of_a_folder_is_found_from_its_index(folder):
    index = (DOCS / folder / "README.md").read_text()
    linked = {DOCS / folder / each for each in LINK.findall(index)}
    for page in (DOCS / folder).glob("*.md"):
        assert page in linked or page.name == "README.md", page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_errors_that_are_named_exist(page):
    for name in ERROR.findall(page.read_text()):
        assert hasattr(fluss.errors, name) or hasattr(builtins, name), name


def test_what_is_installed_can_be_installed_that_way():
    """Our packages are on no index: `./dev build` makes what `--find-links dist` finds."""
    for path, text in tracked_texts():
        is_history = path.name == "CHANGELOG.md" or "tests" in path.parts
        if path.suffix in {".md", ".ipynb", ".py"} and not is_history:
            for command in INSTALL.findall(text):
                assert "--find-links dist" in command, f"{path.relative_to(ROOT)}: {command}"
