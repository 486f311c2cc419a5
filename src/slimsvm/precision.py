"""Few rows are solved to near rounding errors: how few, and the tolerances that stand for it.

There the last digits cost next to nothing, and results that do not depend on the order of the
rows, on their form or on the solver's path are worth much: repeated rows equal weights, and two
fits can be compared.
"""

EXACT = 1000  # rows up to which a problem is solved to near float64 precision
NEWTON_TOL = 1e-26  # relative gap: half of a squared gradient, so 1e-13 in the coefficients
SUBSPACE_TOL = 1e-16  # relative gap of Newton's method in a basis, whose coordinates lose digits
CUTS_TOL = 1e-12  # relative gap of cutting planes: a difference of sums over all rows
LINEAR_CUTS_TOL = 1e-13  # the same with explicit features, whose products are more exact


def is_small(n_rows: int) -> bool:
    """Whether so many rows are solved to near rounding errors.

    Examples
    --------
    >>> from slimsvm.precision import is_small
    >>> is_small(1000), is_small(1001)
    (True, False)
    """
    return n_rows <= EXACT
