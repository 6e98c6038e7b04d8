"""`./dev notebooks`: runs the notebooks of the examples, and stores them with their outputs.

Outputs are stored because readers look at notebooks where nothing runs. What differs from run to
run is taken out of them: times, addresses, the log of Spark. `tests/examples/test_notebooks.py`
runs the notebooks again and compares. `./dev notebooks NAME ...` runs some of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "examples" / "notebooks"
TIMEOUT_S: Final = 300
_ADDRESS: Final = re.compile(r"127\.0\.0\.1:\d+")
WRITTEN_ADDRESS: Final = "127.0.0.1:9123"
# Spark logs on the standard error of the kernel.
WITH_LOG: Final = {"streams_in_spark"}


class NotebookError(Exception):
    """A notebook has outputs that cannot be stored."""


def execute(path: Path) -> Any:
    """Run a notebook in a kernel and a folder of its own, and return it as it is stored."""
    notebook = nbformat.read(path, as_version=4)
    with _own_folder() as folder, warnings.catch_warnings():
        # Of Jupyter itself: unclosed sockets, and a deprecated way to find the loop.
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        resources = {"metadata": {"path": folder}}
        # Over sockets in the folder; over TCP the kernel warns that others might listen.
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/kernel")
        client = NotebookClient(notebook, km=kernel, timeout=TIMEOUT_S, resources=resources)
        client.owns_km = True  # it ends the kernel
        client.execute()
    return strip(notebook, path.stem)


def strip(notebook: Any, name: str) -> Any:
    """Take out what differs from run to run.

    Raises:
        NotebookError: An output is a warning or names a temporary file.
    """
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [_stripped(output, name) for output in _kept(cell.outputs, name)]
    return notebook


def main(names: Sequence[str]) -> int:
    """Run the notebooks of these names, or all, and store them."""
    paths = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}
    unknown = [name for name in names if name not in paths]
    if unknown:
        print(f"There is no notebook {unknown[0]!r}; there are: {', '.join(paths)}.")
        return 2
    for name in names or paths:
        nbformat.write(execute(paths[name]), paths[name])
        print(f"stored: {paths[name].relative_to(ROOT)}", flush=True)
    return 0


@contextlib.contextmanager
def _own_folder() -> Iterator[str]:
    """Yield a working directory; Jupyter's own files are in it, too."""
    with tempfile.TemporaryDirectory(prefix="fluss-notebook-") as folder:
        # Bars of progress appear where a machine is slow.
        ours = {"IPYTHONDIR": str(Path(folder) / "ipython"), "FLUSS_PROGRESS": "off"}
        before = {name: os.environ.get(name) for name in ours}
        os.environ |= ours
        try:
            yield folder
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


def _kept(outputs: Sequence[Any], name: str) -> Iterator[Any]:
    for output in outputs:
        if output.output_type != "stream" or output.name != "stderr":
            yield output
        elif name not in WITH_LOG:
            raise NotebookError(f"{name} writes on the standard error: {output.text}")


def _stripped(output: Any, name: str) -> Any:
    output.pop("transient", None)
    texts = [output] if output.output_type == "stream" else [output.get("data", {})]
    for texts_by_kind in texts:
        for kind, text in texts_by_kind.items():
            if isinstance(text, str) and not kind.startswith("image/png"):
                if tempfile.gettempdir() in text:
                    raise NotebookError(f"{name} shows a temporary file: {text[:200]}")
                texts_by_kind[kind] = _ADDRESS.sub(WRITTEN_ADDRESS, text)
    return output


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
