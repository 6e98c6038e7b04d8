"""A pool of memory for large received frames.

Fresh memory costs twenty times as much to fill as used memory, because the system maps it page by
page and clears each page. So the memory of a large frame returns to the pool when the last view of
it is gone, within a limit. `wire.splitter` cuts a stream into frames.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Numbers of any size can be read in place at its multiples.
ALIGNMENT: Final = 8
# The most unused memory that is kept.
KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
_STEPS_PER_DOUBLING: Final = 4


class FrameMemory:
    """A pool of memory, to which memory returns by itself. Any thread may drop what it took.

    Args:
        kept_bytes_max: The most unused memory that is kept.
    """

    def __init__(self, *, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._kept_bytes_max = kept_bytes_max
        self._unused: dict[int, deque[npt.NDArray[np.uint64]]] = {}

    @property
    def kept_bytes(self) -> int:
        """The bytes of unused memory."""
        return sum(size * len(kept) for size, kept in tuple(self._unused.items()))

    def take(self, size: int, *, shift: int = 0) -> memoryview:
        """Take writable memory with undefined content.

        Args:
            size: How many bytes.
            shift: How many bytes after a multiple of `ALIGNMENT` it begins.
        """
        # Imported here because small frames, which are most, never need it.
        import numpy as np

        capacity = _rounded(size + shift)
        unused = self._unused.setdefault(capacity, deque())
        try:
            words = unused.pop()
        except IndexError:
            # Not a bytearray, which would be filled with zeros first: untouched memory costs
            # nothing until bytes arrive, so a peer cannot exhaust it by claiming a large frame.
            words = np.empty(capacity // ALIGNMENT, np.uint64)
        view = words.view(np.uint8)[shift : shift + size]
        weakref.finalize(view, self._keep, words).atexit = False
        return view.data

    def _keep(self, words: npt.NDArray[np.uint64]) -> None:
        # Two threads may both see space for the last one: the limit is approximate.
        if self.kept_bytes + words.nbytes <= self._kept_bytes_max:
            self._unused[words.nbytes].append(words)


def _rounded(size: int) -> int:
    """Round up to one of a few sizes per doubling, so that memory fits similar frames."""
    step = max(1 << max(size.bit_length() - 1, 0) >> (_STEPS_PER_DOUBLING.bit_length() - 1), 4096)
    return -(-size // step) * step


FRAME_MEMORY: Final = FrameMemory()
