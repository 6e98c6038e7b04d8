"""Turns a notebook into Markdown for the site: its texts, its programs and their stored outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OUTPUT_CHARS_MAX = 20_000


def notebook_text(path: Path) -> str:
    """Return the cells of a notebook as Markdown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell)) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"]).rstrip()
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *map(_output, cell.get("outputs", []))]


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _text("".join(output["text"]))
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="A plot" src="data:image/png;base64,{picture}">'
    if "image/svg+xml" in data:
        return "".join(data["image/svg+xml"])
    if "text/html" in data:
        lines = "".join(data["text/html"])[:OUTPUT_CHARS_MAX].splitlines()
        return "\n".join(line for line in lines if line.strip())
    return _text("".join(data.get("text/plain", "")))


def _text(text: str) -> str:
    return f"```text\n{text[:OUTPUT_CHARS_MAX].rstrip()}\n```"
