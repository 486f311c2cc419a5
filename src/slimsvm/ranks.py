"""The number of a given rank among others, in compiled loops.

``np.partition`` finds it, too, but brings NumPy's sorting along: four seconds of compilation for
each loop that has it first, where this takes a tenth of one.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from slimsvm.compiled import compiled

Array = NDArray[Any]


@compiled
def number_of_rank(x: Array, k: int) -> float:
    """The k-th smallest, counted from zero; moves the numbers within x.

    Hoare's selection: parts of the array are put before and behind a number of its own, and the
    part with place k is what is left. That number is the median of three, so that ascending numbers
    are halved.
    """
    first, last = 0, x.size - 1
    while first < last:
        a, b, c = x[first], x[(first + last) // 2], x[last]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = first, last
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i, j = i + 1, j - 1
        # x[first..j] <= pivot <= x[i..last], and equal to it between them
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            break
    return float(x[k])
