"""Scans: from options to a plan, from a plan to splits, from splits to batches.

This is the door for dataframe engines. Offsets are pinned once, when a scan is planned, so the same
splits give the same rows however often and wherever they are read; a split is small, frozen and
picklable, and holds neither live objects nor secrets. Engines that repeat their tasks write logs
by `fluss.exactly_once`.
"""

from fluss.net.cancellation import Cancellation
from fluss.scan.door import describe, open_split, splits
from fluss.scan.scan_stats import ScanStats
from fluss.scan.split import ScanSplit

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
