"""Copies of objects as other processes receive them."""

from __future__ import annotations

import pickle
from typing import TypeVar

T = TypeVar("T")


def pickled(thing: T) -> T:
    """The thing as it comes out of its own pickle."""
    copied: T = pickle.loads(pickle.dumps(thing))  # noqa: S301 - written a moment ago
    return copied
