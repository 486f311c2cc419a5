"""The spaces of structural estimators: what a function is in each of them, and how it is found.

There is a function for each space. It gets a :class:`StructuralTask` and returns the solver's
result and the :class:`StructuralModel`. Problem and column layout are in
:mod:`slimsvm.solvers.joint`, the solvers in :mod:`slimsvm.solvers.cutting_plane` and
:mod:`slimsvm.solvers.sampled_cuts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from slimsvm.basis import Given, choice_of, is_choice
from slimsvm.ending import warn
from slimsvm.frames import Frame, in_memory
from slimsvm.kernels import Linear, squared_norms
from slimsvm.precision import CUTS_TOL, is_small
from slimsvm.problems.columns import DEFAULT_MEMORY, KernelColumns
from slimsvm.problems.sparse import as_given
from slimsvm.row_hashes import distinct
from slimsvm.rows import MemoryRows
from slimsvm.run import Limits, Result, Status, run
from slimsvm.solvers.cutting_plane import CuttingPlane, OneSlack
from slimsvm.solvers.growth import Growth, in_order
from slimsvm.solvers.joint import JointRisk, JointSpace
from slimsvm.solvers.outside import outside
from slimsvm.solvers.sampled_cuts import LINEAR, SampledCuts
from slimsvm.solvers.sampled_space import SampledSpace
from slimsvm.solvers.spaces import ExplicitSpace, KernelSpace, SubspaceSpace
from slimsvm.tiles import Operand, kernel_values, prepare
from slimsvm.training import Data, Fit, finite, some_places

Array = NDArray[Any]
# of a kernel value, relative to the largest: a sample of thousands has ten times as much
SAMPLE_ERROR = 1e-3
# of the basis: so many vectors join with one cut, since a function of many labels needs many
# vectors. Satimage, 500 of them: 196 rounds and not 590, and a lower objective
GROWTH = 1 / 16
SOME = 200  # rows of a model that must be there at once: they are solved to the last digits
MIRRORED = 512  # rows of a square block that is made symmetric
LARGEST = 1e16  # of C times a weight: beyond, |w|^2 is lost in the rounding errors of the losses


@dataclass(frozen=True)
class StructuralModel:
    """The function that was found; without a basis, ``coef`` are weights of features."""

    coef: Array  # (vectors or features, columns)
    intercept: Array
    linear: Array
    basis: Any = None
    indices: Array | None = None


Found = tuple[Result, StructuralModel]


def some_examples(data: Data) -> Data:
    """The problem of some examples; where all rows are one, of some of its rows."""
    true, weight = data.about["true"], data.about["weight"]
    sizes = np.diff(true.offsets)
    if sizes.size in (1, true.labels.size):
        rows = np.sort(some_places(true.labels, SOME))
        examples = np.arange(1) if sizes.size == 1 else rows
        sizes = np.array([rows.size]) if sizes.size == 1 else sizes[rows]
    else:
        examples = np.random.default_rng(0).permutation(sizes.size)
        many = np.count_nonzero(np.cumsum(sizes[examples]) <= SOME)
        examples = np.sort(examples[: max(1, many)])
        sizes = sizes[examples]
        starts = np.repeat(true.offsets[examples] - np.cumsum(sizes) + sizes, sizes)
        rows = starts + np.arange(sizes.sum())
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(true.offsets.dtype)
    few = replace(true, labels=true.labels[rows], offsets=offsets)
    about = {**data.about, "true": few, "weight": weight[examples]}
    own: dict[str, Any] = {"X": data.X[rows], "target": few.labels, "used": data.used[rows]}
    own |= {"weight": data.weight[rows], "sample_weight": data.sample_weight[rows]}
    return replace(data, **own, about=about, start=None, rows=None)


@dataclass(frozen=True)
class StructuralTask:
    """What is to be found: the parameters of an estimator, its data, the risk, and the fit."""

    asked: Any
    data: Data
    risk: JointRisk
    fit: Fit

    def cutting_planes(self, keep_rows: bool = False) -> CuttingPlane:
        """The solver that was given, or the usual one."""
        given: CuttingPlane | None = self.asked.solver
        if given is not None:
            return replace(given, keep_rows=keep_rows)
        return CuttingPlane(line_search=bool(self.asked.line_search), keep_rows=keep_rows)

    @property
    def scaling(self) -> float:
        """Of the intercepts."""
        return float(bool(self.asked.fit_intercept))

    def joint(self, space: Any) -> OneSlack:
        """The problem in a space of single functions, with a column for each label."""
        whole = JointSpace(space, self.risk.width, self.risk.n_linear, self.scaling)
        return OneSlack(whole, self.risk, 0.0)

    def rng(self) -> np.random.Generator:
        """Random numbers, the same for the same seed."""
        return np.random.default_rng(check_random_state(self.asked.random_state).randint(2**31 - 1))

    def solved(self, solver: CuttingPlane, problem: OneSlack, start: Any = None) -> Result:
        """The problem, solved; few rows more exactly than was asked for.

        Not by a solver that was given: that is followed to the letter.
        """
        exactly = is_small(self.risk.n_parts) and not isinstance(solver, SampledCuts)
        exactly = exactly and self.asked.solver is None
        tol = float(self.asked.tol)
        result = run(
            solver,
            problem,
            tol=min(tol, CUTS_TOL) if exactly else tol,
            max_iter=int(self.asked.max_iter),
            limits=self.fit.limits,
            start=start,
            watchers=self.fit.watchers,
        )
        return result.against(tol)


def scaled(C: float, weight: Array) -> Array:
    """C times the weights, within what float64 can tell apart."""
    largest = float(weight.max())
    if LARGEST / largest >= C:
        return C * weight
    warn(
        f"C={C:g} is so large that float64 cannot tell it from {LARGEST:g}, which is used instead; "
        "such a model allows no errors."
    )
    return weight * (LARGEST / largest)


def chosen_space(asked: Any, kernel: Any, n_rows: int, n_examples: int, oracle: Any) -> str:
    """The name of the space; complains about one that is not possible."""
    linear = isinstance(kernel, Linear)
    if asked.space == "explicit" and not linear:
        raise ValueError(
            f"space='explicit' is for kernel='linear': {kernel!r} has no list of features. Use "
            "'sampled' or 'subspace'."
        )
    if asked.space == "sampled" and oracle.one_example:
        raise ValueError(
            f"space='sampled' draws examples, but to {oracle.name} the whole set is one example; "
            "use space='subspace', or 'explicit' with kernel='linear'."
        )
    needed = 8 * n_rows**2 / 2**20
    allowed = DEFAULT_MEMORY if asked.max_memory is None else float(asked.max_memory)
    if asked.space == "kernel" and needed > allowed:
        raise ValueError(
            f"space='kernel' needs {needed:,.0f} megabytes for the kernel values of {n_rows:,} "
            "rows; allow them with max_memory, or use 'sampled' or 'subspace'."
        )
    few = is_small(n_rows)
    if asked.space == "sampled" and asked.solver is None and n_examples <= asked.sample_size:
        return "kernel" if few else "sampled"  # every cut would be exact
    found = str(asked.space)
    if found == "auto":
        found = "kernel" if few else "subspace" if oracle.one_example else "sampled"
        found = "explicit" if linear else found
    draws = isinstance(asked.solver, SampledCuts)
    if asked.solver is not None and draws != (found == "sampled"):
        needed_one = "SampledCuts" if found == "sampled" else "CuttingPlane"
        raise ValueError(
            f"solver={asked.solver!r} is not for space={found!r}, which needs a {needed_one}."
        )
    return found


# -- one function for each space -------------------------------------------------------------------


def explicit(task: StructuralTask) -> Found:
    """Weights of features."""
    X, n_linear, rows = task.data.X, task.risk.n_linear, task.data.rows
    if rows is None:
        with np.errstate(over="ignore"):
            finite(Operand(task.data.kernel, X, squared_norms(X)))
        X = X.astype(np.float64) if is_small(X.shape[0]) else X
        rows = MemoryRows(X, n_threads=task.fit.threads)
    problem = task.joint(ExplicitSpace(rows))
    result = task.solved(task.cutting_planes(), problem)
    W, space = result.model.coef[:, 0], problem.space
    return result, StructuralModel(space.by_label(W), space.intercepts(W), W[:n_linear])


def symmetric(K: Array) -> Array:
    """(K + K') / 2 in place of K: in blocks, since no other matrix of its size is allowed for.

    Examples
    --------
    >>> symmetric(np.array([[1.0, 2.0], [4.0, 3.0]])).tolist()
    [[1.0, 3.0], [3.0, 3.0]]
    """
    n = K.shape[0]
    parts = [slice(start, start + MIRRORED) for start in range(0, n, MIRRORED)]
    for k, rows in enumerate(parts):
        for columns in parts[k:]:
            above, below = K[rows, columns], K[columns, rows]
            mean = 0.5 * (above + below.T)
            above[:], below[:] = mean, mean.T
    return K


def kernel(task: StructuralTask) -> Found:
    """Coefficients of all rows, of which those that are not zero are kept."""
    X, kernel = task.data.X, task.data.kernel
    finite(prepare(kernel, X))
    error = prepare(kernel, X, dtype=np.float64).rounding()
    with task.fit.limits.breaking_off():
        K = kernel_values(kernel, X, X, dtype=np.float64, n_threads=task.fit.threads)
        problem = task.joint(KernelSpace(symmetric(K), error))
    result = task.solved(task.cutting_planes(), problem)
    W, space = result.model.coef[:, 0], problem.space
    coef, linear = space.by_label(W), W[: task.risk.n_linear]
    rows = np.flatnonzero(coef.any(axis=1))
    return result, StructuralModel(coef[rows], space.intercepts(W), linear, X[rows], rows)


def sampled(task: StructuralTask) -> Found:
    """Sums of the rows that were drawn for the cuts."""
    asked, risk, X = task.asked, task.risk, task.data.X
    if task.data.rows is None:
        operand = finite(_rows_for_samples(task.data))
        frame = Frame.like(operand)
        rows: Any = in_memory(operand, n_threads=task.fit.threads)
    else:
        rows, frame = task.data.rows, _frame_for_samples(task.data)
    space = SampledSpace(
        rows,
        frame,
        risk.width,
        risk.n_linear,
        task.scaling,
        asked.sampling == LINEAR,
        asked.max_memory,
    )
    solver = SampledCuts(line_search=bool(asked.line_search))
    solver = replace(
        solver if asked.solver is None else asked.solver,
        sampling=asked.sampling,
        sample_size=int(asked.sample_size),
        seed=int(task.rng().integers(2**31 - 1)),
    )
    result = task.solved(solver, OneSlack(space, risk, 0.0))
    m = result.model
    if m.exhausted:
        result = replace(result, status=Status("max_draws"))
    return result, StructuralModel(m.coef, m.intercept, m.linear, X[m.indices], m.indices)


def _rows_for_samples(data: Data) -> Operand:
    """In float32 wherever its errors are small against those of a sample.

    Products of cuts are in float32 anyway.
    """
    rows = prepare(data.kernel, data.X, dtype=np.float32)
    known = rows.sq is not None and np.isfinite(rows.sq).all()
    largest = float(np.abs(rows.diag()).max()) if known else 0.0
    safe = largest > 0.0 and rows.error() <= SAMPLE_ERROR * largest
    return rows if safe else prepare(data.kernel, data.X)


def _frame_for_samples(data: Data) -> Frame:
    """The same for rows that are not in memory."""
    frame = Frame.of(data.kernel, data.rows)
    some = replace(frame, dtype=np.dtype(np.float32)).prepare(data.X[np.arange(1)])
    largest = float(np.abs(some.diag()).max())
    if some.error() <= SAMPLE_ERROR * largest:
        return replace(frame, dtype=np.dtype(np.float32))
    return frame


def subspace(task: StructuralTask) -> Found:
    """The span of a basis, which is chosen before, or grows with the cuts."""
    X, risk = task.data.X, task.risk
    is_exact = is_small(X.shape[0])
    rows = finite(prepare(task.data.kernel, X, dtype=np.float64 if is_exact else None))
    columns, growth, indices = _basis(task, rows)
    problem = task.joint(SubspaceSpace(columns, growth))
    keep_rows = growth is not None or is_exact
    solver = task.cutting_planes(keep_rows)
    state = solver.init(problem)
    result = task.solved(solver, problem, state)
    W, space = result.model.coef[:, 0], problem.space
    coef = columns.coefficients(space.by_label(W)) if columns.m else np.empty((0, risk.width))
    indices = indices if growth is None else growth.indices(columns)
    if keep_rows and columns.m:
        error, bound = _outside(problem, solver, state, columns, task.fit.limits)
        result.certificate = replace(result.certificate, projection_error=error, bound=bound)
    linear, basis = W[: risk.n_linear], as_given(columns)
    model = StructuralModel(coef, space.intercepts(W), linear, basis, indices)
    return result, model


def _basis(
    task: StructuralTask, rows: Operand
) -> tuple[KernelColumns, Growth | None, Array | None]:
    """The vectors known before any training, which rows they are, and what finds the others."""
    name, X = task.asked.basis, task.data.X
    given, candidates, rng = not is_choice(name), distinct(X), task.rng()
    wanted = Given(name).size if given else min(candidates.size, int(task.asked.n_basis))
    where = in_memory(rows, n_threads=task.fit.threads)
    columns = KernelColumns(where, Frame.like(rows), wanted, task.asked.max_memory)
    if not given and wanted == candidates.size and task.asked.solver is None:
        indices = candidates[in_order(X[candidates])]
        return columns, None, indices[np.flatnonzero(columns.append(rows.X[indices]))]
    choose = choice_of(name, task.data.weight)
    if choose.needs_curvature:
        raise ValueError(
            f"basis={name!r} needs a loss with a curvature, which cutting planes have not; use "
            "another, such as 'pursuit' or 'cholesky'."
        )
    if not choose.one_shot:  # a solver that is followed to the letter gets one for each cut
        share = GROWTH if task.asked.solver is None else 0.0
        return columns, Growth(choose, rng, candidates, share), None
    selection = choose.select(columns, None, None, wanted, rng, candidates)
    accepted = np.flatnonzero(columns.append(selection.vectors))
    return columns, None, None if selection.indices is None else selection.indices[accepted]


def _outside(
    problem: OneSlack, solver: CuttingPlane, state: Any, columns: KernelColumns, limits: Limits
) -> tuple[float, float]:
    """How much of a cut lies outside of the span, and how far the exact solution can be.

    The bound is that of the sparse estimators.
    """
    risk = problem.oracle
    cuts = solver.active(problem, state, columns.m, risk.width)
    found = outside(columns, [cuts], going_on=lambda: limits.reason() is None)
    largest, together = (float(value[0]) for value in found[0])
    norm = float(np.sqrt(2.0 * max(float(state.objective[0]), 0.0)))
    here = min(0.5 * together**2, largest * norm)
    return largest / float(risk.weight.sum()), float(state.gap[0]) + here


SPACES: dict[str, Callable[[StructuralTask], Found]] = {
    "explicit": explicit,
    "kernel": kernel,
    "sampled": sampled,
    "subspace": subspace,
}
