"""What the certificates of fits on random problems claim, beside the truth.

``claims(name, seed)`` fits the problem of that number (:mod:`tests.reference.drawn`) and returns,
for everything that the fit claims, the claimed interval and that of an independent solver
(:mod:`tests.reference.optimum`). ``python -m tests.reference.certificates NAME SEED`` shows one.
"""

import sys
import warnings
from contextlib import ExitStack
from unittest.mock import patch

from threadpoolctl import threadpool_limits

from slimsvm import precision
from slimsvm.solvers import sparse_descent
from tests.reference import exact_claims, pair_claims, span_claims, structured_claims
from tests.reference.drawn import ESTIMATORS, KINDS, RECIPES, problem

NAMES = (*ESTIMATORS, *KINDS, *RECIPES)
OF = {
    name.removeprefix("of_"): function
    for module in (exact_claims, span_claims, pair_claims, structured_claims)
    for name, function in vars(module).items()
    if name.startswith("of_")
}


def claims(name, seed):
    """What the fit of this problem claims.

    One that plays a large problem is solved as many rows are: not to near float64 precision, and
    with vectors that are found by descent.
    """
    p = problem(name, seed)
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stack.enter_context(threadpool_limits(1, "blas"))  # of small problems threads only wait
        if p.large:
            stack.enter_context(patch.object(precision, "EXACT", 0))
            stack.enter_context(patch.object(sparse_descent, "FEW_ROWS", 0))
        return OF[type(p.estimator).__name__.lower()](p)


if __name__ == "__main__":
    shown = problem(sys.argv[1], int(sys.argv[2]))
    print(shown.estimator, shown.X.shape, shown.X.dtype, "large" if shown.large else "")
    for claim in claims(sys.argv[1], int(sys.argv[2])):
        print("true " if claim.true else "FALSE", "" if claim.resolved else "unresolved", claim)
