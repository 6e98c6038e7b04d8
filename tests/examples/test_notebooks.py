"""The notebooks run from top to bottom, and their stored outputs are what they give."""

import ast
import base64
import io
import re
import tempfile

import matplotlib.image
import nbformat
import numpy as np
import pytest

from tools.notebooks import FOLDER, WITH_LOG, NotebookError, execute, strip

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# A pixel is 1.0; text may be drawn a little differently on another machine.
MEAN_DIFFERENCE_MAX = 0.01
# Modules with another name than their package, and those that come with one of ours.
PACKAGE_OF = {"IPython": "ipykernel", "fluss": "fluss-server", "pyspark": "fluss-spark[spark"}
COMES_WITH = {"numpy", "pyarrow", "pandas", "polars"}

notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.mark.slow  # a kernel and a server are started
@pytest.mark.timeout(400)
# Of Jupyter itself: an unclosed socket, and a deprecated way to find the loop.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@notebooks
def test_a_notebook_gives_the_outputs_that_are_stored(path):
    stored, found = nbformat.read(path, as_version=4), execute(path)
    for kept, made in zip(stored.cells, found.cells, strict=True):
        assert made.source == kept.source
        if kept.cell_type == "code":
            assert made.execution_count == kept.execution_count
            assert texts(made) == texts(kept), f"run `./dev notebooks {path.stem}`: {kept.source}"
            for old, new in zip(pictures(kept), pictures(made), strict=True):
                assert old.shape == new.shape
                assert np.abs(old - new).mean() < MEAN_DIFFERENCE_MAX, kept.source


@notebooks
def test_a_notebook_is_stored_with_plots_and_begins_with_what_it_needs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    drawn = [picture for cell in code for picture in pictures(cell)]
    assert drawn, "GitHub shows what is stored"
    assert all(picture.std() > 0.05 for picture in drawn), "something is drawn"
    own_server = re.search(r'fluss\.connect\("embedded:(\?lake)?"\)', code[0].source)
    assert own_server, "it starts its own server"
    (command,) = re.findall(r"`pip install --find-links dist ([^`]*)`", notebook.cells[0].source)
    for module in imported(code):
        package = PACKAGE_OF.get(module, module.replace("fluss_", "fluss-"))
        assert package in command or module in COMES_WITH, f"{module} is not in: {command}"


def test_what_cannot_be_stored_is_refused():
    def notebook(output):
        return nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell("x", outputs=[output], execution_count=1)]
        )

    warning = nbformat.v4.new_output("stream", name="stderr", text="DeprecationWarning")
    with pytest.raises(NotebookError, match="DeprecationWarning"):
        strip(notebook(warning), "some")
    (spark,) = WITH_LOG
    assert not strip(notebook(warning), spark).cells[0].outputs
    file = nbformat.v4.new_output("stream", name="stdout", text=f"in {tempfile.gettempdir()}/x")
    with pytest.raises(NotebookError, match="temporary file"):
        strip(notebook(file), "some")
    address = nbformat.v4.new_output("stream", name="stdout", text="at 127.0.0.1:40123")
    assert strip(notebook(address), "some").cells[0].outputs[0].text == "at 127.0.0.1:9123"


def imported(code):
    """The modules that cells import, without Python's own."""
    tree = ast.parse("\n".join(cell.source for cell in code))
    names = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    return names - {"tempfile", "pathlib", "threading", "time", "json", "datetime"}


def texts(cell):
    """The outputs of a cell without its pictures."""
    return [
        {kind: text for kind, text in output.get("data", output).items() if kind != "image/png"}
        for output in cell.outputs
    ]


def pictures(cell):
    """The pictures among the outputs of a cell."""
    return [
        matplotlib.image.imread(io.BytesIO(base64.b64decode(output["data"]["image/png"])))
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
