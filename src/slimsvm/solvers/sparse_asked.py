"""What is asked of a sparse fit, and which way follows from it: a descent, or a path of sizes.

:meth:`Asked.descends`: for basis='descent', and for basis='auto' wherever that is possible.
:mod:`slimsvm.solvers.sparse_descent` and :mod:`slimsvm.solvers.sparse_path` do what is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

from sklearn.utils import check_random_state

from slimsvm.basis import ALL, REGISTRY, is_choice
from slimsvm.kernels import RBF, Kernel, Linear, Polynomial
from slimsvm.losses import LOSSES, Loss

AUTO, DESCENT = "auto", "descent"
KINKED = {name for name, kind in LOSSES.items() if not kind.differentiable}
AUTO_FRACTION = 0.1  # of the rows is held out when n_basis='auto' and nothing else is said
MAX_ITER = 1000  # where no limit is given
LARGEST_SEED = 2**31 - 1
OTHERS = (
    "'squared_epsilon_insensitive'",  # losses with a derivative, of targets, and of labels
    "'squared_hinge', 'smooth_hinge' or 'least_squares'",
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Asked:
    """The parameters of SparseSVC and SparseSVR that decide how they are fitted, by their names."""

    n_basis: Any
    max_basis: int
    C: float
    loss: str
    basis: Any
    metric: Any
    max_bytes: int | None
    solver: Any
    refine: Any
    fit_intercept: bool
    tol: float
    max_iter: int
    max_memory: float | None
    accuracy_loss: float
    random_state: Any

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Those of an estimator."""
        return cls(**{own.name: getattr(estimator, own.name) for own in fields(cls)})

    # -- numbers -----------------------------------------------------------------------------------

    @property
    def auto(self) -> bool:
        """Whether the size is to be found."""
        return isinstance(self.n_basis, str)

    @property
    def wanted(self) -> int:
        """The largest size that is looked at."""
        return int(self.max_basis if self.auto else self.n_basis)

    @property
    def steps(self) -> int:
        """Limit on steps, of solvers that have one always."""
        return int(self.max_iter) if self.max_iter > 0 else MAX_ITER

    @property
    def given_up(self) -> float | None:
        """Of the score, for a smaller basis; None where the size is given."""
        return float(self.accuracy_loss) if self.auto else None

    def seed(self) -> int:
        """Of all random choices of the fit."""
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    # -- vectors -----------------------------------------------------------------------------------

    @property
    def vectors(self) -> Any:
        """The parameter ``basis``, where nothing descends."""
        return "pursuit" if self._is_named(AUTO) else self.basis

    @property
    def choice(self) -> Any:
        """The class of the choice, or the choice itself; None for vectors as they are."""
        if isinstance(self.vectors, str):
            return REGISTRY.get(self.vectors)
        return self.vectors if is_choice(self.vectors) else None

    @property
    def all_rows(self) -> bool:
        """Whether all rows are the basis."""
        return self._is_named(ALL)

    def _is_named(self, name: str) -> bool:
        return isinstance(self.basis, str) and self.basis == name

    # -- the way -----------------------------------------------------------------------------------

    def descends(self, kernel: Any, X: Any = None) -> bool:
        """Whether the fit is a descent; complains if it cannot be one, but was asked to."""
        asked, metric = self._is_named(DESCENT), self.metric
        why = self._why_no_descent(kernel, X)
        if asked and why is not None:
            raise ValueError(f"basis='descent' needs {why}. Use basis='pursuit', or leave it out.")
        possible = (asked or self._is_named(AUTO)) and why is None
        plain = metric is None or (isinstance(metric, str) and metric == AUTO)
        if not plain and not (possible and isinstance(kernel, RBF)):
            what = repr(metric) if isinstance(metric, str) else "an array"
            raise ValueError(
                f"metric={what} is for the rbf kernel and vectors that are found by descent; got "
                f"kernel={kernel!r}, basis={self.basis!r}, loss={self.loss!r}. Leave metric out."
            )
        if self.max_bytes is not None and not possible:
            raise ValueError(
                f"max_bytes is for vectors that are found by descent; got basis={self.basis!r}, "
                f"loss={self.loss!r}, kernel={kernel!r}. Say how many vectors by n_basis."
            )
        return possible

    def _why_no_descent(self, kernel: Any, X: Any) -> str | None:
        """What a descent needs and has not."""
        from slimsvm.problems.mapped_wide import wide  # here: who only predicts needs no problem

        if self.loss in KINKED:
            return f"a loss with a derivative, which loss={self.loss!r} has not"
        if self.solver is not None:
            return f"no solver of its own; got solver={self.solver!r}"
        if self.refine != "auto":
            return f"nothing beside it that moves vectors; got refine={self.refine!r}"
        if not (isinstance(kernel, RBF | Polynomial | Linear) and kernel.differentiable):
            return f"the kernel 'rbf', 'poly' with coef0 >= 0, or 'linear'; got {kernel!r}"
        if X is not None and wide(X) and (self.metric is None or not isinstance(kernel, RBF)):
            return (
                f"a metric and the rbf kernel for sparse rows of {X.shape[1]:,} features; got "
                f"metric={self.metric!r}, kernel={kernel!r}"
            )
        return None

    def moves(self, loss: Loss, kernel: Kernel, labels: bool) -> bool:
        """Whether vectors of a path are moved; complains if what was asked for is impossible."""
        others, everything, choice = OTHERS[loss.takes_labels], self.all_rows, self.choice
        if choice is not None and choice.needs_labels and not labels:
            raise ValueError(
                f"basis={self.vectors!r} looks at signs, which mean nothing to a regression; use "
                "another basis, such as 'pursuit'."
            )
        if self.solver is not None and loss.differentiable:
            raise ValueError(
                f"solver={self.solver!r} makes cutting planes, which are for loss='hinge'; with "
                f"loss={self.loss!r} leave solver out."
            )
        curved = everything or (choice is not None and choice.needs_curvature)
        if curved and not loss.differentiable:
            raise ValueError(
                f"basis={self.vectors!r} needs a loss with a curvature, which loss={self.loss!r} "
                f"has not; use {others}, or another basis, such as 'pursuit' or 'cholesky'."
            )
        able = loss.differentiable and kernel.differentiable
        if self.refine == "auto":
            return able and is_choice(self.vectors) and not everything
        if self.refine and everything:
            raise ValueError(
                "refine=True has nothing to move with basis='all': the solution is exact; use "
                "refine=False, or another basis."
            )
        if self.refine and not loss.differentiable:
            raise ValueError(
                f"refine=True needs a loss with a derivative, which loss={self.loss!r} has not; "
                f"use {others}, or refine=False."
            )
        if self.refine and not able:
            raise ValueError(
                "refine=True needs a kernel with a known derivative ('rbf', 'poly' with coef0 >= "
                f"0, 'linear'); got {kernel!r}. Use refine=False."
            )
        return bool(self.refine)
