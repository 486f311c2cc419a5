"""Options of a test in which every two values meet, without all combinations of all values."""

from itertools import combinations, product

import pytest


def every_pair(**options):
    """A parametrisation: for any two options, each value of one meets each value of the other.

    Each option is a list of values, or a dictionary from their names to them. Of all combinations,
    the one with the most pairs that have not been seen is taken next: a product of 9, 7, 2, 2 and 2
    values becomes 63 cases.
    """
    named = {
        name: dict(values) if isinstance(values, dict) else {str(value): value for value in values}
        for name, values in options.items()
    }
    left = [frozenset(combinations(enumerate(case), 2)) for case in product(*named.values())]
    cases = list(product(*named.values()))
    missing, chosen = frozenset().union(*left), []
    while missing:
        best = max(range(len(cases)), key=lambda at: len(left[at] & missing))
        missing -= left[best]
        chosen.append(cases[best])
    return pytest.mark.parametrize(
        tuple(named),
        [
            pytest.param(
                *(values[name] for values, name in zip(named.values(), case, strict=True)),
                id="-".join(case),
            )
            for case in chosen
        ],
    )
