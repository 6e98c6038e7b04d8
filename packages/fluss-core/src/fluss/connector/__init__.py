"""The door for dataframe engines: describe a table, split a scan, open a split. Nothing else.

Rule: three functions, no fourth without a decision record; knows no engine, and nothing of the
engines' libraries. `splits` pins every offset once, so the same splits give the same rows however
often and wherever they are opened; a split is small, frozen and picklable, and holds neither live
objects nor secrets. Engines that repeat their tasks write logs by `fluss.connector.once`.
"""

from fluss.connector.fan_in import Cancellation
from fluss.connector.scan import describe, open_split, splits
from fluss.connector.split import ScanSplit
from fluss.connector.statistics import ScanStats

open = open_split  # noqa: A001 - the name that the three verbs have: describe, splits, open

__all__ = [
    "Cancellation",
    "ScanSplit",
    "ScanStats",
    "describe",
    "open",
    "open_split",
    "splits",
]
