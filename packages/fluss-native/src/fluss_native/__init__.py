"""The parts of fluss-core that are faster in C; fluss-core uses them where they are installed.

What is here decides nothing: it takes the rows for which no Python code is needed, and leaves all
others to the functions of fluss-core, which do the same for every row. `fluss.native` is the only
module that imports this package.
"""

from fluss_native._rows import INTERFACE, RowTaker

__all__ = ["INTERFACE", "RowTaker"]
