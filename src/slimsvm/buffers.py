"""Memory that is used again: a new array of megabytes costs page faults, more than its use."""

from __future__ import annotations

import math
import sys
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.threads import local

Array = NDArray[Any]
SPARE_BYTES, SPARES = 1 << 23, 4  # that buffers leave to one another: 1,000 rows of kernel values


class Buffer:
    """Memory of one owner.

    What is at most SPARE_BYTES is left to the next buffer, if nobody holds an array on it any more.
    """

    _spare: ClassVar[list[Array]] = []

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array on this memory; what was there before is gone."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if self._bytes.size < size:
            try:
                left = self._spare.pop()
            except IndexError:
                left = self._bytes
            self._bytes = left if left.size >= size else np.empty(size, np.uint8)
        return np.asarray(self._bytes[:size].view(dtype).reshape(shape))

    def __del__(self) -> None:
        alone = sys.getrefcount(self._bytes) <= 2  # every array on it counts as one more
        if alone and 0 < self._bytes.size <= SPARE_BYTES and len(self._spare) < SPARES:
            self._spare.append(self._bytes)


def own_scratch(name: str, size: int, dtype: Any = np.float64) -> Array:
    """The calling thread's own array of that name, whose numbers are gone with its next use.

    It is allocated once, so that its pages stay mapped and warm.
    """
    arrays: dict[str, Array] = local.__dict__.setdefault("scratch", {})
    if name not in arrays or arrays[name].size < size * 8:
        arrays[name] = np.empty(size * 8, np.uint8)
    return arrays[name][: size * np.dtype(dtype).itemsize].view(dtype)
