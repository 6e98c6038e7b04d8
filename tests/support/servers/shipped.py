"""Our packages as a zip file for `--py-files`."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

SHIPPED = ("fluss", "fluss_spark", "pyspark_fluss")


def write_zip(path: Path) -> Path:
    """Write them as they are here."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in SHIPPED:
            spec = find_spec(name)
            assert spec is not None
            (folder,) = spec.submodule_search_locations or ()
            for file in sorted(Path(folder).rglob("*.py")):
                archive.write(file, Path(name) / file.relative_to(folder))
    return path
