"""The state of a dual solver: the point, what is active, and what was removed.

With it, the compiled passes that look at it.

Symbols as in :mod:`slimsvm.solvers.decomposition`: o = s + z p; bottom, top the extreme o of
variables that may rise or fall; names that end in an underscore hold the active variables only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.compiled import compiled
from slimsvm.precision import rounding
from slimsvm.problems.dual_qp import DualQP
from slimsvm.solvers.smo import FAR
from slimsvm.tiles import Operand

Array = NDArray[Any]
FIRST = 2000  # rows that a nested fit begins with: a problem that is solved at once


@compiled
def scan(
    a: Array,
    s: Array,
    sign: Array,
    shift: Array,
    upper: Array,
    row: Array,
    o: Array,
    up: Array,
    low: Array,
) -> tuple[float, float, float, float, float, int]:
    """o of every variable, and what follows from it.

    Keys to sort by (o to rise, -o to fall, FAR if not); bottom and top for either sign; sum and
    count of free o.
    """
    bottom_plus = bottom_minus = FAR
    top_plus = top_minus = -FAR
    free_sum, n_free = 0.0, 0
    for v in range(a.size):
        x = s[row[v]] + shift[v]
        o[v] = x
        above, below = a[v] > 0.0, a[v] < upper[v]
        plus = sign[v] > 0
        rises, falls = (below if plus else above), (above if plus else below)
        up[v] = x if rises else FAR
        low[v] = -x if falls else FAR
        if above and below:
            free_sum += x
            n_free += 1
        if plus:
            bottom_plus = min(bottom_plus, up[v])
            top_plus = max(top_plus, -low[v])
        else:
            bottom_minus = min(bottom_minus, up[v])
            top_minus = max(top_minus, -low[v])
    return bottom_plus, top_plus, bottom_minus, top_minus, free_sum, n_free


@compiled
def measure(
    a: Array, o: Array, sign: Array, upper: Array, plus: float, minus: float
) -> tuple[float, int, float]:
    """The duality gap, the number of variables above zero, and the squared norm."""
    gap, n_support, square = 0.0, 0, 0.0
    for v in range(a.size):
        reduced = o[v] - plus if sign[v] > 0 else minus - o[v]
        gap += a[v] * reduced + upper[v] * max(0.0, -reduced)
        n_support += a[v] > 0.0
        square += a[v] * a[v]
    return gap, n_support, square


def _sums(operand: Operand, coef: Array, n_steps: int) -> float:
    """The error of a score as a sum in float64, which cancels, and which so many steps changed."""
    size = np.abs(coef)
    terms = float(size.sum() + np.sqrt(n_steps) * size.max(initial=0.0))
    longest = float(np.abs(operand.diag()).max(initial=0.0))
    return float(np.finfo(float).eps) * terms * longest


def felt_by(
    operand: Operand, coef: Array, scores: Array, reduced: Array, n_steps: int = 0
) -> Array:
    """Variables whose loss is not zero, or may not be: those on the margin cost C on its far side.

    ``scores`` are those of their rows, ``reduced`` is what they lie beyond the margin.
    """
    sums = _sums(operand, coef, n_steps)
    off = operand.rounding() * (np.abs(scores) + float(np.linalg.norm(coef))) + sums
    return np.asarray(reduced < off)


def rounding_at(
    operand: Operand,
    coef: Array,
    s: Array,
    slopes: Array,
    scores: Array,
    unbalanced: float = 0.0,
    n_steps: int = 0,
) -> float:
    """What rounding may have changed of the values of a dual point, and of the function that it is.

    Parameters
    ----------
    operand : Operand
        The rows: errors of kernel values between them.
    coef, s : arrays
        Of all rows: a with its sign, and K coef.
    slopes, scores : arrays
        Of all variables: slopes of their losses, and s of their rows.
    unbalanced : float
        The multiplier of the equality, times what the sum of coef misses it by.
    n_steps : int
        How often s was changed.
    """
    # sums that cancel: where the optimum is zero, nothing else is left
    sums = _sums(operand, coef, n_steps) * float(np.abs(coef).sum() + np.abs(slopes).sum())
    columns = (part[:, None] for part in (coef, s, slopes, scores))
    return rounding(operand.rounding(), *columns) + sums + abs(unbalanced)


@compiled
def count_positive(
    a: Array, o: Array, sign: Array, upper: Array, plus: float, minus: float, count: Array
) -> None:
    """How many rounds in a row each variable at a bound had a positive multiplier estimate.

    plus, minus: the level of o for either sign.
    """
    for v in range(a.size):
        reduced = o[v] - plus if sign[v] > 0 else minus - o[v]
        held = (a[v] <= 0.0 and reduced > 0.0) or (a[v] >= upper[v] and reduced < 0.0)
        count[v] = count[v] + 1 if held else 0


@dataclass(eq=False, repr=False)
class Removed:
    """Rows that left the problem together, and what is known of them."""

    rows: Array  # of the data
    s: Array  # exact at the time of ``coef``
    coef: Array  # of all rows of the data at that time
    slack: Array  # at the last check, a lower bound on how far each row is from violating
    check_coef: Array  # coefficients and active s at the last check (or at removal)
    check_s: Array
    check_level: tuple[float, float]


@dataclass(kw_only=True, eq=False, repr=False)
class Measured:
    """What every state of a dual solver says of itself."""

    n_iter: int = 0
    done: bool = False
    objective: float = 0.0
    violation: float = np.inf
    gap: float = np.inf
    n_values: int = 0


@dataclass(kw_only=True, eq=False, repr=False)
class LocalArrays:
    """What a solver has of the active variables, side by side."""

    a_: Array = field(default_factory=lambda: np.empty(0))
    s_: Array = field(default_factory=lambda: np.empty(0))
    sign_: Array = field(default_factory=lambda: np.empty(0))
    shift_: Array = field(default_factory=lambda: np.empty(0))
    upper_: Array = field(default_factory=lambda: np.empty(0))
    o_: Array = field(default_factory=lambda: np.empty(0))


@dataclass(eq=False, repr=False)
class State(Measured, LocalArrays):
    """Everything the solver knows; see the module's symbols."""

    not_kept: ClassVar[tuple[str, ...]] = ("work",)  # a fit that goes on begins such work again
    a: Array
    s: Array
    variables: Array  # the active ones
    rows: Array  # of the data, that active variables belong to
    diag: Array
    n_rounds: int = 0
    rough: bool = True  # few rows: the solution is still to be polished
    n_halvings: int = 0  # of the goal for the violation
    least: float = np.inf  # violation among these variables so far
    n_idle: int = 0  # rounds in a row that gained nothing
    stuck: bool = False  # so many that nothing is to be gained
    level: tuple[float, float] = (0.0, 0.0)  # minus the multiplier, for either sign
    bottom: tuple[float, float] = (FAR, FAR)
    top: tuple[float, float] = (-FAR, -FAR)
    removed: list[Removed] = field(default_factory=list)
    work: Iterator[None] | None = None  # over all rows, that has begun
    rechecks: bool = False  # whether that is the recheck
    exact: list[Array] = field(default_factory=list)  # rows that it has looked at so far
    working: Array = field(default_factory=lambda: np.empty(0, np.intp))
    n_support: int = 0
    norm: float = 0.0  # of the dual point: what rounding errors of the kernel are multiplied with
    n_removed_support: int = 0
    removed_sq: float = 0.0
    row_: Array = field(default_factory=lambda: np.empty(0, np.intp))
    count_: Array = field(default_factory=lambda: np.empty(0, np.int32))
    up_: Array = field(default_factory=lambda: np.empty(0))
    low_: Array = field(default_factory=lambda: np.empty(0))

    def record(self) -> dict[str, float]:
        """A line of the history."""
        return history_line(self, self.variables.size, (self.n_support, self.norm))


def history_line(
    S: Any, active: int, counted: tuple[int, float] | None = None, gap: float | None = None
) -> dict[str, float]:
    """A line of the history of a dual solver in the state S, with so many active variables.

    ``counted`` are support vectors, and the norm of the point, which is else that of ``S.a``;
    ``gap`` another one than ``S.gap``.
    """
    n_support, norm = counted or (int(np.count_nonzero(S.a)), float(np.linalg.norm(S.a)))
    return {
        "objective": S.objective,
        "gap": S.gap if gap is None else gap,
        "violation": S.violation,
        "kernel_values": S.n_values,
        "active": active,
        "n_support": n_support,
        "norm": norm,
    }


def variables_of(problem: DualQP, rows: Array) -> Array:
    """The variables that belong to these rows."""
    kept = np.zeros(problem.gram.n, bool)
    kept[rows] = True
    return np.flatnonzero(kept[problem.row])


@dataclass(frozen=True, eq=False, repr=False)
class DualSolution:
    """The dual point and what belongs to it.

    The inner products of the function with the rows, and the level of o (minus the multiplier) for
    either sign.

    ``open`` says for either sign that its level is bounded on one side only: all its variables are
    at the same bound. ``n_waiting`` rows had not joined when time was over.
    """

    a: Array
    s: Array
    level: tuple[float, float]
    open: tuple[bool, bool] = (False, False)
    n_waiting: int = 0

    @property
    def margin(self) -> float:
        """rho of a nu-SVC: half the distance of the levels of o."""
        return (self.level[0] - self.level[1]) / 2

    def by_margin(self) -> tuple[Array, float]:
        """The point and the intercept of a nu-SVC, divided by the margin.

        Levels of o are rho - b for positive rows, -rho - b for negative. At the largest feasible nu
        all rows of the lighter class are at their bound, and its level may lie anywhere beyond
        them: the border between the classes may move from the middle of the margin towards the
        lighter class, and once it has passed its last row nothing changes any more. The border is
        put halfway.
        """
        plus, minus = self.level
        if self.open[1]:
            minus = (3 * minus - plus) / 2
        elif self.open[0]:
            plus = (3 * plus - minus) / 2
        margin = (plus - minus) / 2
        if not margin > 1e-12:  # nu so small, or classes so alike, that no margin is left
            margin = 1.0
        return self.a / margin, -(plus + minus) / (2 * margin)
