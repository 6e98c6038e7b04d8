"""The parts of fluss-core that are faster in C; fluss-core uses them where they are installed.

What is here decides nothing. `RowTaker` takes the rows for which no Python code is needed, and
leaves all others to the functions of fluss-core, which do the same for every row. The functions of
columns make lists, maps and times of what was read. `fluss.native` is the only module that imports
this package.
"""

from fluss_native._rows import INTERFACE, RowTaker, list_column, map_column, utc_column

__all__ = ["INTERFACE", "RowTaker", "list_column", "map_column", "utc_column"]
