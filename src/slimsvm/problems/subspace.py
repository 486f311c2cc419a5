"""The best function within the span of a basis.

    min over coef, intercept of  1/2 coef' K_BB coef + sum_i weight_i L(y_i, f(x_i)),
    f(x) = sum_j coef_j k(b_j, x) + intercept

Several columns (one for each class, one-vs-rest) share the basis and are otherwise independent.
Targets and weights are those of the rows; scores are known by their
:class:`slimsvm.problems.trail.Trail`, and stay with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.losses import Loss
from slimsvm.precision import bent, errors_of_scores
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.trail import Trail, trail_at
from slimsvm.rows import Block, joined

Array = NDArray[Any]


def targets(block: Block) -> Array:
    """The targets of a block, (n, columns) in float64.

    Columns lie in memory one after the other: compiled loops run down a column.
    """
    y = block.y
    assert y is not None
    y = y[:, None] if y.ndim == 1 else y
    if y.dtype != np.float64 or not y.flags.f_contiguous:
        y = block.y = np.asfortranarray(y, np.float64)
    return y


def weights(block: Block) -> Array:
    """The weights of a block; one for each row where none were given."""
    if block.weight is None:
        block.weight = np.ones(block.n)
    return block.weight


def labels_of(block: Block) -> tuple[Array, Array]:
    """Targets and weights of a block."""
    return targets(block), weights(block)


def risk_at(block: Block, loss: Loss, trail: Trail) -> Array:
    """sum_i weight_i L(y_i, f_i) of a block, for each column."""
    return np.asarray(weights(block) @ loss.value(targets(block), trail.at(block)))


def gradients_at(block: Block, loss: Loss, trail: Trail) -> Array:
    """weight_i L'(y_i, f_i) of a block, (n, columns)."""
    scores = trail.at(block)
    return np.asarray(weights(block)[:, None] * loss.gradient(targets(block), scores))


def total_weight(block: Block) -> float:
    """The sum of the weights."""
    return float(weights(block).sum())


@dataclass(eq=False, repr=False)
class Subspace:
    """The problem over a basis.

    Parameters
    ----------
    columns : KernelColumns
        The rows, with targets (labels of -1 and +1, or numbers; one column or several) and weights
        (C included), and the basis.
    loss : Loss
        What a mistake costs.
    fit_intercept : bool
        Whether there is an intercept; it is not penalised.
    """

    columns: KernelColumns
    loss: Loss
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        self.n_columns = int(targets(self.columns.rows.take(np.arange(0)).block).shape[1])

    @property
    def target(self) -> Array:
        """The targets of all rows, (n, columns), brought here."""
        return joined(self.columns.rows.map(targets))

    @property
    def weight(self) -> Array:
        """The weights of all rows, brought here."""
        return joined(self.columns.rows.map(weights))

    def scores(self, trail: Trail) -> Array:
        """The scores of all rows, (n, columns), brought here."""
        return joined(self.columns.rows.map(trail_at, trail))

    def gradients(self, trail: Trail) -> Array:
        """weight_i L'(y_i, f_i) of all rows, (n, columns), brought here."""
        return joined(self.columns.rows.map(gradients_at, self.loss, trail))

    def risk(self, trail: Trail) -> Array:
        """sum_i weight_i L(y_i, f_i) for each column; scores with the intercept."""
        return np.asarray(self.columns.rows.sum(risk_at, self.loss, trail))

    def rounding(self, coef: Array, intercept: Array, scores: Array, left: Array) -> float:
        """What rounding may have changed of the value, and of the bound below it.

        Scores of all rows, with the intercept; ``left`` is the gradient in orthonormal coordinates.
        The bound is the value of the dual point that belongs to the slopes, whose function is
        another one by that: where it is far from ours, kernel values count that ours does not use.
        """
        if not self.columns.m:
            return 0.0
        target, weight, plain = self.target, self.weight, scores - intercept
        slopes = weight[:, None] * self.loss.gradient(target, scores)
        dual = coef - self.columns.coefficients(left)
        off = errors_of_scores(self.columns.error, coef, plain)
        found = self.columns.rounding(coef, dual, slopes, plain)
        found += self.columns.of_products(dual, slopes)
        return found + bent(self.loss, target, weight, scores, off)

    def objective(self, coef: Array, trail: Trail) -> Array:
        """The value for each column."""
        quadratic = 0.5 * np.einsum("jc,jl,lc->c", coef, self.columns.K_BB, coef)
        return np.asarray(quadratic + self.risk(trail))
