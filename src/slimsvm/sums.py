"""Inner products in compiled loops, as eight sums side by side.

A single sum that waits for itself leaves most of the core idle; eight of them are vector code.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from slimsvm.compiled import compiled

Array = NDArray[Any]
Eight = tuple[float, float, float, float, float, float, float, float]


@compiled
def eight_sums(a: Array, b: Array, end: int) -> Eight:
    """Of every eighth product before ``end``, a multiple of eight."""
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(0, end, 8):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        s4 += a[i + 4] * b[i + 4]
        s5 += a[i + 5] * b[i + 5]
        s6 += a[i + 6] * b[i + 6]
        s7 += a[i + 7] * b[i + 7]
    return s0, s1, s2, s3, s4, s5, s6, s7


@compiled
def dot(a: Array, b: Array) -> float:
    """The inner product."""
    n = a.size
    n8 = n - n % 8
    s0, s1, s2, s3, s4, s5, s6, s7 = eight_sums(a, b, n8)
    rest = 0.0
    for i in range(n8, n):
        rest += a[i] * b[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)) + rest
