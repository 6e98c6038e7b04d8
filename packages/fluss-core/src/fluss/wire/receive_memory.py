"""Memory to receive large frames into, which comes back when nobody looks at the frame any more.

Memory that is fresh from the system costs twenty times as much to fill as memory that has been
used before: the system gives it page by page, and clears each. So what large frames were received
into is kept when the last view of them is gone, within bounds, for those that come next. Cutting a
stream into frames is the business of `wire.splitter`.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Where numbers of any size can be read in place.
ALIGNMENT: Final = 8
# What may lie unused, and the largest that is kept at all.
KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
_STEPS_PER_DOUBLING: Final = 4


class FrameMemory:
    """Hands out memory and takes it back by itself. Any thread may let go of what it was given.

    Args:
        kept_bytes_max: How much may lie unused.
    """

    def __init__(self, *, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._kept_bytes_max = kept_bytes_max
        self._unused: dict[int, deque[npt.NDArray[np.uint64]]] = {}

    @property
    def kept_bytes(self) -> int:
        """How much lies unused."""
        return sum(size * len(kept) for size, kept in tuple(self._unused.items()))

    def take(self, size: int, *, shift: int = 0) -> memoryview:
        """Writable memory with anything in it.

        Args:
            size: How many bytes.
            shift: How far behind a multiple of `ALIGNMENT` it begins.
        """
        # Imported here because small frames, which are most, never need it.
        import numpy as np

        room = _rounded(size + shift)
        unused = self._unused.setdefault(room, deque())
        try:
            words = unused.pop()
        except IndexError:
            # Not a bytearray, which would be filled with zeros first: untouched memory costs
            # nothing until bytes arrive, so a peer that claims a large frame and sends none has
            # gained nothing.
            words = np.empty(room // ALIGNMENT, np.uint64)
        view = words.view(np.uint8)[shift : shift + size]
        weakref.finalize(view, self._give_back, words).atexit = False
        return view.data

    def _give_back(self, words: npt.NDArray[np.uint64]) -> None:
        # Two threads may both see room for the last one; it is a bound, not a promise.
        if self.kept_bytes + words.nbytes <= self._kept_bytes_max:
            self._unused[words.nbytes].append(words)


def _rounded(size: int) -> int:
    """The next of a few sizes per doubling, so that memory fits frames of about the same size."""
    step = max(1 << max(size.bit_length() - 1, 0) >> (_STEPS_PER_DOUBLING.bit_length() - 1), 4096)
    return -(-size // step) * step


FRAME_MEMORY: Final = FrameMemory()
