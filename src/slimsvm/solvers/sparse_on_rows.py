"""A sparse fit on rows that are not in memory: a descent on some of them, or a path over all.

Mini-batches are no pass over all rows: a descent takes those of a sample, drawn by row number, as
many as the memory allows. What follows it, the best coefficients, the certificate and the scores,
are passes over all rows (:mod:`slimsvm.problems.mapped_rows`). A path of sizes has passes only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.basis import Given, is_choice
from slimsvm.frames import Frame
from slimsvm.losses import Loss, Softmax
from slimsvm.problems.columns import KernelColumns
from slimsvm.problems.mapped import MEGABYTES, Mapped
from slimsvm.problems.mapped_rows import MappedRows, rows_of_matrix
from slimsvm.problems.sparse import Sparse
from slimsvm.problems.subspace import labels_of, targets, weights
from slimsvm.row_hashes import distinct
from slimsvm.rows import MemoryRows, Rows, joined
from slimsvm.run import Result
from slimsvm.solvers.mapped_newton import SAMPLED, SAMPLED_A_VECTOR
from slimsvm.solvers.path_points import PathModel, Scoring, sizes_up_to
from slimsvm.solvers.sparse_asked import Asked
from slimsvm.solvers.sparse_descent import refuse_beyond_float32, solved_by_descent
from slimsvm.solvers.sparse_path import Around, first_vectors, run_on_a_path
from slimsvm.training import Data, Fit

Array = NDArray[Any]
# of a descent: in inner coordinates, without the rows that try it, and in the metric
COPIES_OF_ROWS = 3
SAMPLE_SHARE = 0.5  # of the memory: the rest, and what the sample leaves, is for kernel values
FEWEST = 10_000  # rows of a descent
HELD_OUT = 20_000  # rows, at most: their numbers are sent with every task
CANDIDATES = 100_000  # rows that may join a basis that consists of rows, at most


def drawn_rows(n: int, wanted: int, seed: int) -> Array:
    """Numbers of rows in order: all, or one at random from each of so many equal stretches.

    Examples
    --------
    >>> drawn_rows(3, 5, 0)
    array([0, 1, 2])
    >>> drawn_rows(1000, 4, 0).size
    4
    """
    if n <= wanted:
        return np.arange(n)
    rng = np.random.default_rng(seed)
    return np.asarray((np.arange(wanted) + rng.random(wanted)) * (n / wanted), np.int64)


def bytes_of_row(n_features: int, n_columns: int, itemsize: int) -> int:
    """What a row of a descent takes."""
    return n_features * (itemsize + 4 * COPIES_OF_ROWS) + 8 * (3 * n_columns + 4)


def positive(some: MemoryRows) -> MemoryRows:
    """Those of positive weight."""
    assert some.weight is not None
    return some if some.weight.all() else some.take(np.flatnonzero(some.weight > 0))


@dataclass(frozen=True)
class OnRows:
    """Rows of a fit with targets in columns and weights with C, and what is known of all of them.

    Parameters
    ----------
    rows : Rows
        The rows.
    kernel : Kernel
        With its numbers.
    classes : array
        Labels, if there are any.
    largest : float
        Largest size of an entry of X.
    total : float
        Sum of the weights.
    heaviest : float
        Largest of them.
    bytes_to_read : int
        What the source needs while it is read.
    """

    rows: Rows
    kernel: Any
    classes: Array
    largest: float
    total: float
    heaviest: float
    bytes_to_read: int = 0


def descended_on_rows(
    asked: Asked, given: OnRows, loss: Any, fit: Fit, scoring: Scoring, last: Any
) -> tuple[Result, int]:
    """The path of a descent; and how many rows it has seen."""
    rows, n = given.rows, given.rows.n
    first = rows.take(np.arange(1))
    columns = first.y.shape[1] if first.y is not None else 1
    a_row = bytes_of_row(rows.n_features, columns, first.X.dtype.itemsize)
    memory = asked.max_memory or MEGABYTES
    wanted = max(FEWEST, int(SAMPLE_SHARE * memory * 1e6 / a_row))
    seed = asked.seed() if n > wanted else 0
    at = drawn_rows(n, wanted, seed)
    sample = rows.take(at)
    assert sample.weight is not None and sample.y is not None
    at, sample = at[sample.weight > 0], positive(sample)
    assert sample.weight is not None and sample.y is not None
    biggest = np.array([[given.largest]])
    refuse_beyond_float32(biggest, None, given.kernel, np.array([given.heaviest]))
    weight = sample.weight / float(asked.C)
    if n > wanted:
        weight = weight * (given.total / float(sample.weight.sum()))
    data = Data(sample.X, sample.y, weight, np.arange(sample.n), weight, given.classes)
    data.kernel = given.kernel
    softmax = isinstance(loss, Softmax)
    far = rows.relabelled(as_ones) if softmax else rows

    def whole(problem: Mapped, n_vectors: int) -> MappedRows:
        at, each = rows_of_matrix(n, max(SAMPLED, SAMPLED_A_VECTOR * n_vectors))
        near = positive(far.take(at))
        assert near.weight is not None and near.y is not None
        X = problem.coordinates.of(near.X, problem.dtype.type)
        left = max(1.0, memory - 1e-6 * a_row * sample.n)
        about: dict[str, Any] = {"weight": near.weight * each, "max_memory": left}
        here = replace(problem, X=X, Y=near.y, **about)
        return MappedRows(far, here, problem.coordinates, None, problem.dtype, given.bytes_to_read)

    about: Any = {"scoring": scoring, "last": last, "whole": whole}
    result = solved_by_descent(asked, data, loss, fit, **about)
    return replace(result, model=by_row_number(result.model, at)), sample.n


def by_row_number(model: PathModel, at: Array) -> PathModel:
    """Points whose vectors are rows say which of all rows these are."""
    points = [p if p.indices is None else replace(p, indices=at[p.indices]) for p in model.points]
    chosen = points[[p is model.chosen for p in model.points].index(True)]
    return replace(model, points=points, chosen=chosen)


def held_out_rows(rows: Rows, fraction: float, seed: int) -> tuple[Any, Array]:
    """Rows that are held out, with targets and weights, and their numbers; HELD_OUT at most."""
    at = drawn_rows(rows.n, min(HELD_OUT, max(1, round(fraction * rows.n))), seed + 1)
    some = rows.take(at)
    assert some.weight is not None
    return (some.X, some.y, some.weight), at


def as_ones(block: Any) -> tuple[Array, Array]:
    """Labels as the softmax wants them."""
    return (targets(block) > 0).astype(np.float64), weights(block)


# -- a path of sizes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class FarSparse(Sparse):
    """The problem of a sparse model over rows that are not here; ``rows`` are :class:`Rows`."""

    rows: Any
    frame: Any = None
    total: float = 0.0

    def columns(self, max_basis: int) -> KernelColumns:
        """Kernel values of the rows and a basis of up to so many vectors, still empty."""
        return KernelColumns(self.rows, self.frame, max_basis, self.max_memory)

    def part(self, rows: Array) -> Sparse:
        """The same on some of the rows, their weights scaled up, here."""
        some = self.rows.take(rows)
        weight = some.weight * (self.total / float(some.weight.sum()))
        operand = self.frame.prepare(some.X)
        about = (self.loss, self.fit_intercept, distinct(some.X), self.max_memory, self.n_threads)
        return Sparse(operand, some.y, weight, *about)


class FarRows:
    """Rows with the type of their kernel values, as solvers of a path ask for it."""

    def __init__(self, rows: Rows, dtype: Any) -> None:
        self._rows, self.dtype = rows, dtype

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)


def path_on_rows(asked: Asked, given: OnRows, loss: Loss, fit: Fit, around: Around) -> Result:
    """The path of one fit, in passes; see :func:`slimsvm.solvers.sparse_path.solved_on_a_path`."""
    moves, rows = asked.moves(loss, given.kernel, bool(given.classes.size)), given.rows
    choice = asked.choice
    if asked.all_rows:
        raise ValueError(
            f"basis={asked.basis!r} needs kernel values among all rows, which are not in memory; "
            "use another, such as 'descent', 'pursuit' or 'random'."
        )
    seed = asked.seed()
    frame = Frame.of(given.kernel, rows)
    at = drawn_rows(rows.n, CANDIDATES, seed)
    some = rows.take(at)
    assert some.weight is not None
    at, X = at[some.weight > 0], some.X[some.weight > 0]
    candidates = at[distinct(X)]
    named = is_choice(asked.vectors)
    wanted = min(candidates.size, asked.wanted) if named else Given(asked.vectors).size
    parts = rows.map(labels_of)
    target, weight = (joined([part[i] for part in parts]) for i in range(2))

    grows = named and (around.last is not None or not choice.one_shot)
    about = (target, weight, loss, bool(asked.fit_intercept), candidates, asked.max_memory)
    far = FarRows(rows, frame.dtype)
    problem = FarSparse(far, *about, fit.threads, frame=frame, total=given.total)
    return run_on_a_path(
        asked,
        problem,
        fit,
        around,
        sizes=[wanted] if asked.solver is not None else sizes_up_to(wanted),
        first=first_vectors(asked, around.last, wanted),
        grows=grows,
        seed=seed,
        moves=moves,
    )
