"""Numbers that several threads share in compiled loops."""

import numpy as np

from slimsvm.atomics import add, exchange, load, store
from slimsvm.compiled import compiled
from slimsvm.threads import parallel


@compiled
def claim_all(shared, limit, owner, who):
    """Claim numbers one at a time; every one is written down by who has it."""
    while True:
        number = load(shared, 0)
        if number >= limit:
            return
        if exchange(shared, 0, number, number + 1):
            owner[number] += who
            add(shared, 8, 1)


@compiled
def put(shared, value):
    store(shared, 16, value)
    return load(shared, 16), add(shared, 16, 2), exchange(shared, 16, value, 0)


def test_every_number_is_claimed_once():
    shared, owner = np.zeros(24, np.int64), np.zeros(20_000, np.int64)
    parallel(lambda who: claim_all(shared, owner.size, owner, who + 1), 3, 3)
    assert shared[0] == shared[8] == owner.size
    assert np.isin(owner, (1, 2, 3)).all()


def test_what_they_return():
    shared = np.zeros(24, np.int64)
    assert put(shared, 5) == (5, 5, False)
    assert shared[16] == 7 and not shared[:16].any()
