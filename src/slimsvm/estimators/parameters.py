"""Parameters that several estimators have: defaults, and values that are accepted.

What they mean is said in the docstring of :class:`slimsvm.estimators.fitting.Estimator`, or in that
of a class for which it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Literal

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from slimsvm.declarations import parameter
from slimsvm.kernels import KERNELS, Kernel
from slimsvm.training import MatrixLike as MatrixLike

# -- types, for those who check theirs -------------------------------------------------------------
KernelLike = (
    Literal["linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"]
    | Kernel
    | Callable[[Any, Any], Any]
)
GammaLike = float | Literal["scale", "auto"]
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
VotesShape = Literal["ovr", "ovo"]


POSITIVE = Interval(Real, 0.0, None, closed="neither")
POSITIVE_OR_INFINITE = Interval(Real, 0.0, None, closed="right")
NOT_NEGATIVE = Interval(Real, 0.0, None, closed="left")
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
COUNT_OR_NONE = Interval(Integral, -1, None, closed="left")  # -1: no limit
SHARE = Interval(RealNotInt, 0.0, 1.0, closed="right")
NU = Interval(Real, 0.0, 1.0, closed="right")

KERNEL_BLOCK: dict[str, tuple[Any, ...]] = {
    "kernel": ("rbf", StrOptions(set(KERNELS)), callable, Kernel),
    "degree": (3, Interval(Integral, 0, None, closed="left")),
    "gamma": ("scale", StrOptions({"scale", "auto"}), NOT_NEGATIVE),
    "coef0": (0.0, Interval(Real, None, None, closed="neither")),
}
PROBLEM_BLOCK: dict[str, tuple[Any, ...]] = {
    "C": (1.0, POSITIVE),
    "fit_intercept": (True, "boolean"),
    "class_weight": (None, StrOptions({"balanced"}), dict, None),
}
SOLVER_BLOCK: dict[str, tuple[Any, ...]] = {
    "shrinking": (True, "boolean"),
    "tol": (1e-3, POSITIVE),
    "cache_size": (200, POSITIVE),
    "warm_start": (False, "boolean"),
    "random_state": (None, "random_state"),
}
LIMITS_BLOCK: dict[str, tuple[Any, ...]] = {
    "max_iter": (-1, COUNT_OR_NONE),
    "max_time": (None, POSITIVE, None),
    "max_memory": (None, POSITIVE, None),
    "n_jobs": (None, Integral, None),
    "verbose": (False, "verbose"),
}
VOTES_BLOCK: dict[str, tuple[Any, ...]] = {
    "decision_function_shape": ("ovr", StrOptions({"ovr", "ovo"})),
    "break_ties": (False, "boolean"),
}
SHARED = {**KERNEL_BLOCK, **PROBLEM_BLOCK, **SOLVER_BLOCK, **LIMITS_BLOCK, **VOTES_BLOCK}
SAME = object()


def shared(name: str, default: Any = SAME) -> Any:
    """A parameter of SHARED, perhaps with another default.

    Examples
    --------
    >>> shared("max_iter", 1000).default
    1000
    """
    usual, *accepts = SHARED[name]
    return parameter(usual if default is SAME else default, *accepts)
