"""`Extent`: which offsets of a bucket can be read at one moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The first offset that a bucket still has, and the offset one past its last."""

    earliest: int
    end: int
