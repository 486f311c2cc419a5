"""The number of a rank is that of the sorted array."""

import numpy as np
import pytest

from slimsvm.ranks import number_of_rank


@pytest.mark.parametrize("kind", ["drawn", "few", "ascending", "descending", "equal", "pipes"])
def test_it_is_that_of_the_sorted_array(kind):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 5, 8, 31, 300):
        x = {
            "drawn": rng.standard_normal(n),
            "few": rng.integers(0, 4, n).astype(float),
            "ascending": np.arange(n, dtype=float),
            "descending": -np.arange(n, dtype=float),
            "equal": np.ones(n),
            "pipes": np.minimum(np.arange(n), np.arange(n)[::-1]).astype(float),
        }[kind]
        expected = np.sort(x)
        for k in {0, n // 3, n // 2, n - 1}:
            room = x.copy()
            assert number_of_rank(room, k) == expected[k]
            np.testing.assert_array_equal(np.sort(room), expected)  # moved, and nothing lost
