"""What tasks keep beside blocks, in the process that works on them.

A worker of a cluster keeps the kernel values and scores of the blocks that it has worked on, up to
a number of bytes; the oldest go first. What is gone is made again, with the same bits.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

Place = tuple[str, int]  # the rows, by their serial number, and the number of the block
_lock = threading.Lock()
_kept: OrderedDict[Place, tuple[int, dict[str, Any]]] = OrderedDict()


def taken(place: Place) -> dict[str, Any]:
    """What was kept; whoever takes it has it alone."""
    with _lock:
        return _kept.pop(place, (0, {}))[1]


def put(place: Place, kept: dict[str, Any], max_bytes: float) -> None:
    """Keep it, and let the oldest go that are beyond the limit."""
    size = sum(nbytes(of) for of in kept.values())
    with _lock:
        _kept[place] = size, kept
        total = sum(of for of, _ in _kept.values())
        while total > max_bytes and _kept:
            total -= _kept.popitem(last=False)[1][0]


def forget(serials: tuple[str, ...]) -> int:
    """Let go what belongs to these rows; how many blocks that were."""
    with _lock:
        found = [place for place in _kept if place[0] in serials]
        for place in found:
            del _kept[place]
        return len(found)


def nbytes(value: Any, depth: int = 3) -> int:
    """Bytes of the arrays in a value, about."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if not depth:
        return 0
    if isinstance(value, dict):
        return sum(nbytes(of, depth - 1) for of in value.values())
    if isinstance(value, tuple | list):
        return sum(nbytes(of, depth - 1) for of in value)
    return nbytes(vars(value), depth - 1) if hasattr(value, "__dict__") else 0
