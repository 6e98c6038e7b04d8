"""Compiles the module of the package; everything else is in pyproject.toml.

Without a compiler the package is installed without the module, and fluss-core does its work alone.
`./dev build` sets FLUSS_NATIVE_REQUIRED, so that a wheel always has the module.
"""

import os
import sys

from setuptools import Extension, setup

SOURCES = ["row_taker", "flat_rows", "column_types", "plain_values", "columns"]
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wno-missing-field-initializers"]

setup(
    ext_modules=[
        Extension(
            "fluss_native._rows",
            sources=[f"src/fluss_native/{each}.c" for each in SOURCES],
            depends=[f"src/fluss_native/{each}.h" for each in SOURCES[1:]],
            extra_compile_args=[] if sys.platform == "win32" else STRICT,
            optional="FLUSS_NATIVE_REQUIRED" not in os.environ,
        )
    ]
)
