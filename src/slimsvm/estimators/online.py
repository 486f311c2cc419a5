"""OnlineSVC: learns from rows as they come (LASVM), in one pass over data or from a stream."""

from __future__ import annotations

import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from slimsvm.declarations import declared, parameter
from slimsvm.ending import SUBSPACE, Ending, worst
from slimsvm.estimators.dual import LARGEST_SEED, PairwiseClassifier
from slimsvm.estimators.fitting import with_callbacks
from slimsvm.estimators.parameters import (
    AT_LEAST_ONE,
    ClassWeight,
    GammaLike,
    KernelLike,
    MatrixLike,
    shared,
)
from slimsvm.estimators.sparse import SparseSVC
from slimsvm.kernels import RBF, Linear, Polynomial
from slimsvm.models.online import OF_ROWS, OnlineModel
from slimsvm.multiclass import OneVsOne, Part, class_factors, encoded
from slimsvm.precision import is_small
from slimsvm.run import Limits, Result
from slimsvm.solvers.decomposition import Decomposition
from slimsvm.solvers.finishing import finished, pass_over
from slimsvm.solvers.online import SELECTIONS, Expanding, Online, Passing, decayed
from slimsvm.solvers.online_rounds import OnlineRounds
from slimsvm.stream import Stream, encoded_batch, known_classes
from slimsvm.tiles import Operand, prepare
from slimsvm.training import Data, Fit, finite, refuse_another_kernel

Array = NDArray[Any]


def _streams(self: OnlineSVC) -> bool:
    if self._precomputed:
        raise AttributeError(
            "partial_fit needs rows: with a precomputed kernel there are none. Use fit, or a "
            "kernel that has a name."
        )
    return True


@declared
class OnlineSVC(OnlineModel, PairwiseClassifier):
    """Support vector classification that learns row by row, from data in memory or from a stream.

    Each row is looked at once. If it violates the KKT conditions it joins the expansion,
    coefficients move, and vectors that no longer matter leave. ``fit`` ends with the exact solution
    of the problem over the expansion, close to that over all rows. ``partial_fit`` learns from
    batches that need never be in memory together. Several classes: one binary model for each pair,
    which vote.

    Parameters
    ----------
    selection : {'random', 'gradient', 'margin'}
        Which row is next. 'gradient': of 50 random ones of a batch of 256, the one that violates
        most, until none does. 'margin': the one nearest to the decision border, until all that
        are left lie outside of the margin; it asks for no label before it takes a row.
    max_support : int
        Most vectors. With the kernels 'rbf', 'poly' (coef0 >= 0) and 'linear' the model is then
        ``sparse_``, a SparseSVC with so many vectors that classes share, in a metric that is
        learned, and both ``fit`` and ``partial_fit`` are streams of rows as its ``partial_fit``
        has them: labels may be new at any time, and a change of the concept is noticed. With other
        kernels or another selection it is that of a pair's expansion: when it is full, one vector
        is absorbed by the nearest of its class, which takes over its coefficient and its weight.
        Default: no limit.
    finishing : bool
        Whether ``fit`` solves the problem over the expansion exactly in the end; ``partial_fit``
        never does.
    epochs : int
        Passes of ``fit`` over the rows.
    decay : float
        What remains of the weight of earlier rows at each call of ``partial_fit``: with 0.9, a
        row that came ten calls ago weighs 0.9**10 = 0.35 of one that comes now. For concepts that
        drift.
    class_weight : dict or 'balanced'
        Factors of C for each class; 'balanced' for ``fit`` only.
    tol : float
        A pair that violates by less does not move; and the largest violation within the expansion
        after finishing. Up to 1,000 rows ``fit`` ends at the solution over all rows, at near
        float64 precision, unless max_support is set or finishing is off.
    cache_size : float
        Megabytes for kernel values. Where those within the expansion need more, vectors at their
        bound rest until the finishing.
    max_iter : int
        Limit on rows that are looked at, and then on pair steps of the finishing, for each pair
        of classes; -1: none.
    solver : Online or None
        Another way to take rows: :class:`slimsvm.solvers.online_rounds.OnlineRounds`, one a round
        and candidates from all that are left, as in the paper, and for few rows, too, the solution
        over the expansion; for ``fit`` without ``max_support``.
    random_state : int, RandomState or None
        Draws the order of the rows (of a call of ``partial_fit``: of its rows), and candidates.

    See Also
    --------
    SVC : The exact solution.
    SparseSVC : As few vectors as you say, for data in memory.

    Notes
    -----
    ``certificate_`` is about the rows of the expansion (its ``scope`` is 'subspace'): rows that
    have left are not looked at again. For up to 1,000 rows it is about all.

    In a stream, gamma='scale' is computed from the first call. With ``max_support``, memory does
    not grow; without, as the number of support vectors does. A model that was saved with
    :func:`slimsvm.save` goes on exactly as it would have without.

    References
    ----------
    .. [1] A. Bordes, S. Ertekin, J. Weston, L. Bottou, "Fast kernel classifiers with online and
       active learning", 2005.

    Examples
    --------
    Rows at once, or a stream of batches:

    >>> from slimsvm import OnlineSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(4000, seed=0)
    >>> model = OnlineSVC(C=10.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> stream = OnlineSVC(C=10.0, gamma=5.0, max_support=200, random_state=0)
    >>> for first in range(0, 4000, 500):
    ...     part = slice(first, first + 500)
    ...     stream = stream.partial_fit(X[part], y[part], classes=[-1, 1])
    >>> stream.n_seen_, stream.sparse_.n_basis_, stream.score(X, y) > 0.9
    (4000, 200, True)
    """

    selection: str = parameter("random", StrOptions(set(SELECTIONS)))
    max_support: int | None = parameter(None, Interval(Integral, 2, None, closed="left"), None)
    finishing: bool = parameter(True, "boolean")
    epochs: int = parameter(1, AT_LEAST_ONE)
    decay: float = parameter(1.0, Interval(Real, 0.0, 1.0, closed="right"))
    C: float = shared("C")
    kernel: KernelLike = shared("kernel")
    gamma: GammaLike = shared("gamma")
    degree: int = shared("degree")
    coef0: float = shared("coef0")
    class_weight: ClassWeight = shared("class_weight")
    tol: float = shared("tol")
    cache_size: float = shared("cache_size")
    max_iter: int = shared("max_iter")
    max_time: float | None = shared("max_time")
    solver: Any = parameter(None, Online, None)
    n_jobs: int | None = shared("n_jobs")
    random_state: Any = shared("random_state")
    verbose: bool = shared("verbose")

    _same_as: ClassVar[str] = "SVC"

    # -- with a budget -----------------------------------------------------------------------------

    @property
    def _by_descent(self) -> bool:
        """Whether there is a budget, and the vectors may be others than rows."""
        rows = self.selection != "random" or self._precomputed or self.solver is not None
        if self.max_support is None or rows:
            return False
        kernel = self._named_kernel()
        able = isinstance(kernel, RBF | Polynomial | Linear) and kernel.differentiable
        return able and "support_" not in self.__dict__

    def _fit(self, X: Any, y: Any, sample_weight: Any, *further: Any, **about: Any) -> Self:
        before = {name: self.__dict__.pop(name) for name in OF_ROWS if name in self.__dict__}
        try:
            if not self._by_descent:
                return super()._fit(X, y, sample_weight, *further, **about)
            with self._unchanged_on_failure():
                self._fit_sparse(*self._checked(X, y, sample_weight))
            self._make_ready()
        except BaseException:
            self.__dict__.update(before)
            raise
        return self

    def _fit_sparse(self, X: Any, y: Any, weight: Array) -> None:
        """All rows in a random order, ``epochs`` times; few rows are trained on together."""
        classes, label, used = encoded(y, weight)
        own = {"y": classes[label[used]], "sample_weight": weight[used]}
        factors = class_factors(self.class_weight, classes=classes, **own)
        self._forget_stream()
        model = self._sparse_model(dict(zip(classes.tolist(), factors.tolist(), strict=True)))
        if used.size <= 2 * int(self.max_support or 0):
            model.fit(X, y, weight)
        else:
            seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
            rng = np.random.default_rng(seed)
            for _ in range(int(self.epochs)):
                order = rng.permutation(used)
                model.partial_fit(X[order], np.asarray(y)[order], classes, weight[order])
        self._be(model)

    def _sparse_model(self, class_weight: Any) -> SparseSVC:
        """The model so far, or a new one, with the parameters as they are now."""
        names = ("C", "kernel", "gamma", "degree", "coef0", "max_time", "n_jobs", "random_state")
        given = {name: getattr(self, name) for name in (*names, "verbose")}
        given |= {"n_basis": int(self.max_support or 0), "class_weight": class_weight}
        model = self.__dict__.get("sparse_")
        return SparseSVC(**given) if model is None else model.set_params(**given)

    # -- data in memory ----------------------------------------------------------------------------

    def _shared(self, parts: list[Part], data: Data, fit: Fit) -> Array:
        if isinstance(self.solver, OnlineRounds) and self.max_support is not None:
            raise ValueError(
                f"solver={self.solver!r} has no budget of vectors, but max_support="
                f"{self.max_support}; leave one of them out."
            )
        self._refuse_small_cache(data.rows)
        return self._seeds(parts)

    def _train(self, part: Part, data: Data, fit: Fit, limits: Limits, shared: Array) -> Result:
        """The passes over the rows, and the finishing."""
        operand, sign, upper = self._pair(part, data)
        n, seed = sign.size, int(shared[part.k])
        budget, rng = self._cache_bytes / fit.side_by_side(shared.size), np.random.default_rng(seed)
        order = np.concatenate([rng.permutation(n) for _ in range(int(self.epochs))])
        problem = Passing(operand, sign, upper, np.arange(n), order, None, budget, fit.threads)
        return finished(
            problem,
            self._pass(problem, seed, None, fit, limits),
            wanted=bool(self.finishing),
            everything=is_small(n) and self.max_support is None and self.solver is None,
            limits=limits,
            solve=lambda dual, near: self._decomposed(dual, fit, limits, near, Decomposition()),
        )

    def _pass(
        self, problem: Passing, seed: Any, start: Expanding | None, fit: Fit, limits: Limits
    ) -> Result:
        solver = replace(
            Online() if self.solver is None else self.solver,
            selection=self.selection,
            max_support=self.max_support,
            seed=seed,
        )
        tol, max_iter = float(self.tol), int(self.max_iter)
        about = {"limits": limits, "watchers": fit.watchers}
        return pass_over(solver, problem, start, tol=tol, max_iter=max_iter, **about)

    def _concluded(self, data: Data, solved: list[Result], fit: Fit) -> Ending:
        self._forget_stream()
        return super()._concluded(data, solved, fit)

    def _ending(self, results: list[Result], fit: Fit, **about: Any) -> Ending:
        last = worst(results)
        if last.status.sentence:  # of a pass, how the sentence begins
            about["begins"] = {last.status.reason: last.status.sentence}
        if last.certificate.scope == SUBSPACE:
            about["optimum"] = "the optimum over the expansion"
            if self.max_support is not None and last.status.converged:
                about["further"] = (
                    f"; rows outside of the expansion, {self.max_support:,} vectors at most, are "
                    "no part of that problem"
                )
        return super()._ending(results, fit, **about)

    def _refuse_small_cache(self, operand: Operand) -> None:
        if self.max_support is None:
            return
        need = (int(self.max_support) + 256) ** 2 * operand.dtype.itemsize
        if need > self._cache_bytes:
            raise ValueError(
                f"max_support={self.max_support} needs {need / 2**20:.0f} MB for kernel values, "
                f"more than cache_size={self.cache_size:g}. Raise cache_size, or lower max_support."
            )

    # -- streams -----------------------------------------------------------------------------------

    @available_if(_streams)
    @with_callbacks
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from a batch of rows, and keep nothing of it but what the expansion needs.

        After a ``fit`` it goes on from the fitted model.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            The next rows of the stream.
        y : array of shape (n_samples,)
            Their labels.
        classes : array, optional
            All labels that will ever come; needed in the first call, but for ``sparse_``.
        sample_weight : array of shape (n_samples,), optional
            Scales C for each row. A row keeps its weight for as long as it is in the expansion, but
            for ``decay``.

        Returns
        -------
        self
        """
        if self.solver is not None:
            raise ValueError(
                f"partial_fit takes batches, and solver={self.solver!r} does not; leave solver out."
            )
        if self._by_descent:
            return self._pass_to_sparse(X, y, classes, sample_weight)
        first = not hasattr(self, "support_")
        with self._unchanged_on_failure():
            X, y, weight = self._checked(X, y, sample_weight, reset=first)
            factors = None if first else self.class_weight_
            known = known_classes(classes, None if first else self.classes_, self.class_weight)
            batch = encoded_batch(X, y, weight, known, self.class_weight, factors)
            with self._fitting() as fit:
                batch.kernel = self._kernel_for(X, weight) if first else self.kernel_
                stream = self._stream_for(batch, first)
                batch.X, batch.rows = stream.prepared_like(X, self._cache_bytes)
                passed = self._passed(batch, stream, fit)
            data, solved, ids = stream.as_problem(batch, passed)
            ending = self._concluded(data, solved, fit)
            self._stream = stream
            self.n_seen_, self.support_ = stream.n_seen, ids[self.support_]
            self.shape_fit_ = (stream.n_seen, int(self.support_vectors_.shape[1]))
            ending.record_on(self)
            self._make_ready()
        return self

    def _pass_to_sparse(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        with self._unchanged_on_failure():
            first = "sparse_" not in self.__dict__
            X, y, weight = self._checked(X, y, sample_weight, reset=first)
            model = self._sparse_model(self.class_weight)
            decay = 1.0 if first else float(self.decay)
            self._be(model._partial_fit(X, y, weight, classes, decay))
            self.n_seen_ = model.n_seen_
        self._make_ready()
        return self

    def _stream_for(self, batch: Data, first: bool) -> Stream:
        """The stream so far, or one that begins: with these rows, or with what ``fit`` has left."""
        if not first:
            refuse_another_kernel(self._named_kernel(), self.kernel_)
        known = getattr(self, "_stream", None)
        if isinstance(known, dict):  # from a file
            known = Stream.from_dict(known, batch.kernel, self._cache_bytes)
        if known is not None:
            return copy.deepcopy(known)  # it moves in place, and a call that fails moves nothing
        like = finite(prepare(batch.kernel, batch.X))
        self._refuse_small_cache(like)
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        stream = Stream.begun(seed, like, batch.X, len(OneVsOne(batch.classes.size).pairs))
        if not first:
            stream.go_on_from(self, self._cache_bytes)
        return stream

    def _passed(self, batch: Data, stream: Stream, fit: Fit) -> list[Result]:
        """The batch has passed; the expansions of the stream move."""
        parts, n = OneVsOne(batch.classes.size).parts(batch.target), batch.X.shape[0]
        budget, threads = self._cache_bytes / len(parts), fit.threads if len(parts) == 1 else 1

        def learn(part: Part, limits: Limits) -> Result:
            rows, state = part.rows, stream.pairs[part.k]
            seed = [stream.seed, part.k, stream.n_calls]
            if self.decay < 1.0 and stream.n_calls:
                decayed(state, float(self.decay))
            order, ids = np.random.default_rng(seed).permutation(rows.size), batch.used[rows]
            operand, X = batch.rows, batch.X
            if rows.size < n:
                operand, X = operand.take(ids), X[ids]
            about = (part.sign(rows), float(self.C) * batch.weight[rows], stream.n_seen + ids)
            problem = Passing(operand, *about, order, X, budget, threads)
            return self._pass(problem, seed, state, fit, limits)

        results = OneVsOne.trained(parts, learn, fit)
        stream.n_calls += 1
        stream.n_seen += n
        return results
