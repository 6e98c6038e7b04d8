"""The notebooks run from top to bottom, and draw their figures."""

import base64
import io
from pathlib import Path

import matplotlib.image
import nbformat
import pytest
from nbclient import NotebookClient

# The pages of the guide run on both.
pytestmark = pytest.mark.one_server

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples/notebooks").glob("*.ipynb"))
PLOTS = 2


def outputs(notebook, mime):
    return [
        output["data"][mime]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if mime in output.get("data", {})
    ]


@pytest.mark.slow  # a kernel is started
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# Warnings of Jupyter itself: an unclosed socket, and a deprecated way to find the loop.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_notebook_runs_and_draws(cluster, path, monkeypatch, tmp_path):
    monkeypatch.setenv("FLUSS_BOOTSTRAP_SERVERS", cluster.bootstrap)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=150, kernel_name="python3").execute()
    plots = outputs(notebook, "image/png")
    assert len(plots) == PLOTS
    for each in plots:
        pixels = matplotlib.image.imread(io.BytesIO(base64.b64decode(each)))
        assert pixels.std() > 0.05, "something is drawn"
    assert not outputs(notebook, "application/vnd.jupyter.error")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_its_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [each for each in notebook.cells if each.cell_type == "code"]
    assert not any(each.outputs or each.execution_count for each in code)
    assert {each.cell_type for each in notebook.cells} == {"code", "markdown"}


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 3
