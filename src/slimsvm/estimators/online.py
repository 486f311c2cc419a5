"""OnlineSVC: the machine that learns from rows as they come (LASVM), in one pass over a data set or from a stream.

``fit`` passes once over the rows and then solves the problem of the expansion exactly (finishing); up to EXACT rows it solves that of all rows.
``partial_fit`` passes over the rows it is given and keeps nothing but the expansion: vectors, coefficients, and the kernel values between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from slimsvm.estimators.base import Fit, finite
from slimsvm.estimators.classification import KernelClassifier, class_factors, sorted_labels
from slimsvm.estimators.docs import described
from slimsvm.estimators.pairs import Pair
from slimsvm.gram import make_gram
from slimsvm.kernels import FromCallable, make_kernel
from slimsvm.problems.dual_qp import classification
from slimsvm.rows import MemoryRows
from slimsvm.run import SUBSPACE, Limits, Result, Status, run
from slimsvm.solvers.decomposition import EXACT
from slimsvm.solvers.dual_state import DualSolution
from slimsvm.solvers.online import Expanding, Online, Passing, decayed, empty, restored
from slimsvm.threads import parallel
from slimsvm.tiles import Operand, ready, safe_dtype

Array = NDArray[Any]
KEPT = (
    "seconds",
    "objective",
    "gap",
    "violation",
    "kernel_values",
    "active",
    "n_support",
)  # of the histories: what both solvers say
PASSED = "All {n} rows of this call have passed; the expansion has {size} vectors, and its most violating pair violates by {violation:.2g}."


@dataclass
class Stream:
    """What ``partial_fit`` keeps from call to call."""

    seed: int
    n_calls: int
    n_seen: int
    like: Operand  # how rows are readied
    pairs: list[Expanding]


def _streams(self: OnlineSVC) -> bool:
    if self._precomputed:
        raise AttributeError(
            "partial_fit needs rows: with a precomputed kernel there are none. Use fit, or a kernel that has a name."
        )
    return True


@described
class OnlineSVC(KernelClassifier):
    """Support vector classification that learns row by row, from data in memory or from a stream.

    Each row is looked at once. If it violates the Kuhn-Tucker conditions it joins the expansion, coefficients move, and vectors that no longer
    matter leave. ``fit`` ends with the exact solution of the problem over the expansion, close to that over all rows. ``partial_fit`` learns
    from batches that need never be in memory together. Several classes: one machine for each pair, which vote.

    Parameters
    ----------
    selection : {{'random', 'gradient', 'margin'}}, default='random'
        Which row is next. 'gradient': of 50 random ones of a batch of 256, the one that violates most, until none does. 'margin': the one
        nearest to the decision border, until all that are left lie outside of the margin; it asks for no label before it takes a row.
    max_support : int, optional
        Most vectors of a pair's expansion. When it is full, one vector is absorbed by the nearest of its class, which takes over its
        coefficient and its weight: vectors then stand for the rows around them, and their coefficients may exceed C. Together they weigh at
        most as much as 4 max_support rows; beyond, all shrink alike, and the oldest rows are slowly forgotten. Default: no limit.
    finishing : bool, default=True
        Whether ``fit`` solves the problem over the expansion exactly in the end; ``partial_fit`` never does.
    epochs : int, default=1
        Passes of ``fit`` over the rows.
    decay : float, default=1.0
        What remains of the weight of earlier rows at each call of ``partial_fit``: with 0.9, a row that came ten calls ago weighs
        0.9**10 = 0.35 of one that comes now. For concepts that drift.
    C : float, default=1.0
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i max(0, 1 - y_i f(x_i)).
    {kernel}
    class_weight : dict or 'balanced', optional
        Factors of C for each class; 'balanced' for ``fit`` only.
    tol : float, default=1e-3
        A pair that violates by less does not move; and the largest violation within the expansion after finishing. Up to 1,000 rows
        ``fit`` ends at the machine over all rows, at near machine precision, unless max_support is set or finishing is off.
    cache_size : float, default=200
        Megabytes for kernel values. Where those within the expansion need more, vectors at their bound rest until the finishing.
    max_iter : int, default=-1
        Limit on rows that are looked at, and then on pair steps of the finishing, for each pair of classes; -1: none.
    max_time : float, optional
        Limit in seconds. At the limit, and at Ctrl-C, the best model so far is kept, with a ConvergenceWarning.
    n_jobs : int, optional
        Threads: None is one unless a joblib context says otherwise, -1 all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the order of the rows (of a call of ``partial_fit``: of its rows), and candidates.
    verbose : bool, default=False
        Show a line of progress.

    Attributes
    ----------
    {attributes}
    classes_ : array
        The labels, sorted.
    class_weight_ : array
        Factor of C for each class.
    n_seen_ : int
        Rows that ``partial_fit`` has seen; ``support_`` counts them from zero.

    See Also
    --------
    SVC : The exact machine.
    SparseSVC : As few vectors as you say, for data in memory.

    Notes
    -----
    ``certificate_`` is about the rows of the expansion (its ``scope`` is 'subspace'): rows that have left are not looked at again. For up to
    1,000 rows it is about all.

    In a stream, gamma='scale' is computed from the first call. With ``max_support``, memory does not grow; without, as the number of
    support vectors does. A model that was saved with :func:`slimsvm.save` goes on exactly as it would have without.

    References
    ----------
    .. [1] A. Bordes, S. Ertekin, J. Weston, L. Bottou, "Fast kernel classifiers with online and active learning", 2005.

    Examples
    --------
    >>> from slimsvm import OnlineSVC
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(4000, seed=0)
    >>> model = OnlineSVC(C=10.0, gamma=5.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> stream = OnlineSVC(C=10.0, gamma=5.0, max_support=200, random_state=0)
    >>> for start in range(0, 4000, 500):
    ...     stream = stream.partial_fit(X[start : start + 500], y[start : start + 500], classes=[-1, 1])
    >>> stream.n_seen_, stream.support_.size <= 200, stream.score(X, y) > 0.9
    (4000, True, True)
    """

    # what the machines with all parameters let their users choose
    decision_function_shape: ClassVar[str] = "ovr"
    break_ties: ClassVar[bool] = True
    warm_start: ClassVar[bool] = False
    shrinking: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "selection": [StrOptions({"random", "gradient", "margin"})],
        "max_support": [Interval(Integral, 2, None, closed="left"), None],
        "finishing": ["boolean"],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "decay": [Interval(Real, 0.0, 1.0, closed="right")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        **{
            name: constraint
            for name, constraint in KernelClassifier._parameter_constraints.items()
            if name not in ("shrinking", "decision_function_shape", "break_ties", "warm_start")
        },
    }

    def __init__(
        self,
        *,
        selection: str = "random",
        max_support: int | None = None,
        finishing: bool = True,
        epochs: int = 1,
        decay: float = 1.0,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        cache_size: float = 200,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.selection = selection
        self.max_support = max_support
        self.finishing = finishing
        self.epochs = epochs
        self.decay = decay
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def _finished(self, result: Result) -> tuple[Array, float]:
        return result.model.a, -result.model.level[0]

    # -- data in memory -----------------------------------------------------------------------------------------------------------------

    def _solve_pairs(
        self,
        grams: Any,
        label: Array,
        bounds: Array,
        classes: Array,
        fit: Fit,
        starts: list[Array | None],
    ) -> list[Result]:
        """All pairs, side by side."""
        self.__dict__.pop("_stream", None)  # a fit forgets the stream
        self._refuse_small_cache(grams.operand)
        n_pairs = len(grams)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_pairs)
        side_by_side = 1 if fit.watchers else min(fit.threads, n_pairs)
        results: list[Any] = [None] * n_pairs

        def solve(k: int) -> None:
            rows = grams.rows(k)
            sign = np.where(label[rows] == grams.pairs[k].positive, 1.0, -1.0)
            operand = grams.operand if n_pairs == 1 else grams.operand.take(rows)
            rng = np.random.default_rng(int(seeds[k]))
            order = np.concatenate([rng.permutation(rows.size) for _ in range(int(self.epochs))])
            limits = fit.limits if n_pairs == 1 else fit.limits.part(n_pairs - k, side_by_side)
            problem = Passing(
                operand,
                sign,
                float(self.C) * bounds[rows],
                np.arange(rows.size),
                order,
                None,
                self._cache_bytes / side_by_side,
                fit.threads,
            )
            results[k] = self._solve_pair(problem, int(seeds[k]), fit, limits)

        parallel(solve, n_pairs, side_by_side)
        return results

    def _solve_pair(self, problem: Passing, seed: int, fit: Fit, limits: Limits) -> Result:
        """The pass over the rows, and the finishing."""
        passed = self._pass(problem, seed, None, fit, limits)
        S: Expanding = passed.model
        n, v = problem.sign.size, S.alive
        rows = np.concatenate([S.ids[v], S.f_ids])
        a, upper = np.zeros(n), problem.upper.copy()
        a[rows], upper[rows] = (
            np.concatenate([S.a[v], S.f_a]),
            np.concatenate([S.upper[v], S.f_upper]),
        )
        solution = DualSolution(a, np.empty(0), (S.level, S.level))
        if self.finishing and passed.status.converged and (reason := limits.reason()) is not None:
            passed = replace(
                passed,
                status=Status(reason, f"Stopped ({reason}) before the finishing. {passed.status}"),
            )
        if not self.finishing or not passed.status.converged:
            return replace(passed, model=solution)
        everything = n <= EXACT and self.max_support is None
        support = np.arange(n) if everything else np.sort(rows)
        if np.unique(problem.sign[support]).size < 2:  # nothing was asked about the other class
            return replace(passed, model=solution)
        operand = problem.operand if everything else problem.operand.take(support)
        del (
            S,
            passed.model,
        )  # the kernel values of the expansion: the finishing has a cache of its own
        gram = make_gram(operand, problem.budget, fit.threads)
        result = self._solve(
            classification(gram, problem.sign[support], upper[support]), fit, limits, a[support]
        )
        a[:] = 0.0
        a[support] = result.model.a
        certificate = (
            result.certificate if everything else replace(result.certificate, scope=SUBSPACE)
        )
        history = {
            name: np.concatenate([passed.history[name], result.history[name]]) for name in KEPT
        }
        return replace(
            result,
            model=replace(result.model, a=a, s=np.empty(0)),
            certificate=certificate,
            history=history,
            n_iter=passed.n_iter + result.n_iter,
        )

    def _pass(
        self, problem: Passing, seed: Any, start: Expanding | None, fit: Fit, limits: Limits
    ) -> Result:
        """All rows once; what ends a pass is that there are no more rows."""
        solver = Online(self.selection, self.max_support, seed)
        result = run(
            solver,
            problem,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            limits=limits,
            start=start,
            watchers=fit.watchers,
        )
        if result.model.done:
            size = result.model.alive.size + result.model.f_a.size
            sentence = PASSED.format(
                n=problem.order.size, size=size, violation=result.certificate.violation
            )
            result = replace(result, status=Status("converged", sentence))
        return replace(result, history={name: result.history[name] for name in KEPT})

    def _refuse_small_cache(self, operand: Operand) -> None:
        if (
            self.max_support is not None
            and (need := (int(self.max_support) + 256) ** 2 * operand.dtype.itemsize)
            > self._cache_bytes
        ):
            raise ValueError(
                f"max_support={self.max_support} needs {need / 2**20:.0f} MB for kernel values, more than cache_size={self.cache_size:g}. "
                "Raise cache_size, or lower max_support."
            )

    # -- streams ------------------------------------------------------------------------------------------------------------------------

    @available_if(_streams)
    @with_callbacks
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> OnlineSVC:
        """Learn from a batch of rows, and keep nothing of it but what the expansion needs.

        After a ``fit`` it goes on from the fitted machine.

        Parameters
        ----------
        X : array, CSR matrix or DataFrame of shape (n_samples, n_features)
            The next rows of the stream.
        y : array of shape (n_samples,)
            Their labels.
        classes : array, optional
            All labels that will ever come; needed in the first call.
        sample_weight : array of shape (n_samples,), optional
            Scales C for each row. A row keeps its weight for as long as it is in the expansion, but for ``decay``.

        Returns
        -------
        self
        """
        first = not hasattr(
            self, "support_"
        )  # a first call that failed may have left other attributes
        if not first:
            self._refuse_another_kernel()
        X, y, weight = self._checked(X, y, sample_weight, reset=first)
        self._set_classes(classes, y, first)
        label = np.searchsorted(self.classes_, y)
        weight = weight * self.class_weight_[label]
        pairs = self._pairs_of_classes()
        with self._fitting() as fit:
            if not hasattr(self, "_stream"):
                self._begin(X, weight)
            stream = self._stream
            X, operand = self._readied(X)
            results: list[Any] = [None] * len(pairs)
            side_by_side = 1 if fit.watchers else fit.threads

            def learn(k: int) -> None:
                rows = np.flatnonzero(
                    ((label == pairs[k].positive) | (label == pairs[k].negative)) & (weight > 0)
                )
                state = stream.pairs[k]
                if self.decay < 1.0 and stream.n_calls:
                    decayed(state, float(self.decay))
                seed = [stream.seed, k, stream.n_calls]
                sign, order = (
                    np.where(label[rows] == pairs[k].positive, 1.0, -1.0),
                    np.random.default_rng(seed).permutation(rows.size),
                )
                whole = rows.size == label.size
                problem = Passing(
                    operand if whole else operand.take(rows), sign, float(self.C) * weight[rows], stream.n_seen + rows, order,
                    X if whole else X[rows], self._cache_bytes / len(pairs), fit.threads if len(pairs) == 1 else 1,
                )  # fmt: skip
                limits = (
                    fit.limits if len(pairs) == 1 else fit.limits.part(len(pairs) - k, side_by_side)
                )
                results[k] = self._pass(problem, seed, state, fit, limits)

            parallel(learn, len(pairs), side_by_side)
            stream.n_calls += 1
            stream.n_seen += label.size
        self._expose(pairs, results)
        self._report(results)
        return self

    def _refuse_another_kernel(self) -> None:
        """Coefficients of one kernel mean nothing with another; C, weights and limits may change from call to call."""
        asked, known = (
            make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0),
            self.kernel_,
        )
        has = known.get_params()
        if type(asked) is not type(known) or any(
            value not in ("scale", "auto", has[name]) for name, value in asked.get_params().items()
        ):
            raise ValueError(
                f"The kernel cannot change in the middle of a stream: it is {known}, but {asked} is asked for. Use a new machine."
            )

    def _set_classes(self, classes: Any, y: Array, first: bool) -> None:
        if first:
            if classes is None:
                raise ValueError(
                    "classes must be passed on the first call to partial_fit: all labels that will ever come."
                )
            known, _ = sorted_labels(classes, "classes")
            if known.size < 2:
                raise ValueError(
                    f"The number of classes has to be greater than one; got {known.size} class in classes={classes!r}."
                )
            if isinstance(self.class_weight, str):
                raise ValueError(
                    "class_weight='balanced' needs to see all labels, which partial_fit does not. Pass a dict of class weights."
                )
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(
                sorted_labels(classes, "classes")[0], known
            ):
                raise ValueError(
                    f"classes={classes!r} is not the same as on the last call to partial_fit, it was {known!r}."
                )
        unknown = np.setdiff1d(sorted_labels(y, "y")[0], known, assume_unique=True)
        if unknown.size:
            raise ValueError(
                f"y has the label {unknown.tolist()[0]!r}, which is not among the classes {known.tolist()}."
            )
        if first:
            self.class_weight_ = class_factors(self.class_weight, classes=known, y=known)
            self.classes_ = known

    def _pairs_of_classes(self) -> list[Pair]:
        n = len(self.classes_)
        return [Pair(1, 0)] if n == 2 else [Pair(i, j) for i in range(n) for j in range(i + 1, n)]

    def _begin(self, X: Any, weight: Array) -> None:
        """A stream that begins, with these rows or with the machine that ``fit`` has left."""
        fitted = hasattr(self, "support_")
        if not fitted:
            kernel = make_kernel(
                self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0
            )
            self.kernel_ = (
                kernel
                if isinstance(kernel, FromCallable)
                else kernel.resolve(MemoryRows(X, weight=weight))
            )
        like = finite(ready(self.kernel_, X))
        self._refuse_small_cache(like)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        nothing = X[:0].copy()
        pairs = [empty(like, nothing) for _ in self._pairs_of_classes()]
        self._stream = Stream(
            seed, 0, 0, replace(like.take(slice(0, 0)), source=None, picked=None), pairs
        )
        if fitted:
            self._go_on_from_fit()

    def _go_on_from_fit(self) -> None:
        """The expansions of the pairs, from the support vectors of the fitted machine."""
        stream, X = self._stream, self.support_vectors_
        label, order = (
            np.repeat(np.arange(len(self.classes_)), self.n_support_),
            np.arange(self.support_.size),
        )
        coef = np.abs(self.dual_coef_)
        for k, pair in enumerate(self._pairs_of_classes()):
            rows = pair.rows(label)
            other = np.where(label[rows] == pair.positive, pair.negative, pair.positive)
            a = coef[0 if coef.shape[0] == 1 else other - (other > label[rows]), rows]
            rows, a = rows[a > 0], a[a > 0]
            upper = np.maximum(
                a, float(self.C) * self.class_weight_[label[rows]]
            )  # weights of rows are not known any more
            sign = np.where(label[rows] == pair.positive, 1.0, -1.0)
            stream.pairs[k] = self._restored(X[rows], a, upper, sign, order[rows])
        stream.n_seen = order.size

    def _readied(self, X: Any) -> tuple[Any, Operand]:
        """Rows in the form that the stream has: as given, and readied for products."""
        like, raw = self._stream.like, self._stream.pairs[0].vectors.raw
        if sp.issparse(raw) != sp.issparse(X):
            X = sp.csr_matrix(X) if sp.issparse(raw) else X.toarray()
        if like.sq is None:
            return X, finite(ready(self.kernel_, X))
        operand = ready(
            self.kernel_,
            X.toarray() if sp.issparse(X) and not sp.issparse(like.X) else X,
            like=like,
        )
        if sp.issparse(like.X) and not sp.issparse(operand.X):
            operand = replace(operand, X=sp.csr_matrix(operand.X))
        finite(operand)
        assert operand.sq is not None
        if (
            like.dtype == np.float32
            and safe_dtype(self.kernel_, operand.sq.astype(np.float64), X.shape[1]) == np.float64
        ):
            self._upgrade()
            return self._readied(X)
        return X, operand

    def _upgrade(self) -> None:
        """Rows have come for which float32 is not enough: from here on in float64."""
        stream = self._stream
        stream.like = replace(stream.like, X=stream.like.X.astype(np.float64), sq=np.empty(0))
        for k, S in enumerate(stream.pairs):
            raw, a, upper, sign, ids = S.everything()
            stream.pairs[k] = self._restored(raw, a, upper, sign, ids)

    def _restored(self, X: Any, a: Array, upper: Array, sign: Array, ids: Array) -> Expanding:
        raw, operand = self._readied(X)
        return restored(operand, raw, a, upper, sign, ids, self._cache_bytes)

    def _expose(self, pairs: list[Pair], results: list[Result]) -> None:
        """The public attributes, in LIBSVM's layout, from the expansions of all pairs."""
        parts = [S.everything() for S in self._stream.pairs]
        ids = np.concatenate([part[4] for part in parts])
        label = np.concatenate(
            [
                np.where(part[3] > 0, pair.positive, pair.negative)
                for pair, part in zip(pairs, parts, strict=True)
            ]
        )
        weighty = np.flatnonzero(np.concatenate([part[1] for part in parts]) > 0)
        _, first = np.unique(ids[weighty], return_index=True)
        first = weighty[first]
        first = first[np.argsort(label[first], kind="stable")]
        place = {int(i): at for at, i in enumerate(ids[first])}
        coef = np.zeros((len(self.classes_) - 1, first.size))
        for pair, (_, a, _, sign, own) in zip(pairs, parts, strict=True):
            for positive, mine, other in (
                (True, pair.positive, pair.negative),
                (False, pair.negative, pair.positive),
            ):
                rows = np.flatnonzero((a > 0) & ((sign > 0) == positive))
                line = 0 if coef.shape[0] == 1 else other - (other > mine)
                coef[line, [place[int(i)] for i in own[rows]]] = sign[rows] * a[rows]
        raws = [part[0] for part in parts]
        vectors = (
            raws[0]
            if len(raws) == 1
            else sp.vstack(raws, format="csr")
            if sp.issparse(raws[0])
            else np.concatenate(raws)
        )
        self.support_, self.support_vectors_ = ids[first], vectors[first]
        self.dual_coef_, self.intercept_ = coef, np.array([-S.level for S in self._stream.pairs])
        self.n_support_ = np.bincount(label[first], minlength=len(self.classes_)).astype(np.int32)
        self.n_iter_ = np.array([result.n_iter for result in results], np.int32)
        self.n_seen_ = self._stream.n_seen
        self.shape_fit_ = (self.n_seen_, int(self.support_vectors_.shape[1]))

    # -- what a file must hold for the stream to go on ----------------------------------------------------------------------------------

    @property
    def stream_(self) -> dict[str, Any]:
        """All that ``partial_fit`` needs to go on, as plain values: for model files."""
        if "_stream" not in self.__dict__:
            raise AttributeError(
                "There is no stream: partial_fit was not called since the last fit."
            )
        S, like = self._stream, self._stream.like
        form = "given" if like.sq is None else "sparse" if sp.issparse(like.X) else "dense"
        values = {
            "seed": S.seed,
            "n_calls": S.n_calls,
            "n_seen": S.n_seen,
            "form": form,
            "dtype": str(like.dtype),
            "shift": like.shift,
        }
        return {**values, "pairs": [pair.to_dict() for pair in S.pairs]}

    @stream_.setter
    def stream_(self, values: dict[str, Any]) -> None:
        d, dtype = int(self.n_features_in_), np.dtype(values["dtype"])
        X: Any = (
            sp.csr_matrix((0, d), dtype=dtype)
            if values["form"] == "sparse"
            else np.empty((0, d), dtype)
        )
        like = Operand(
            self.kernel_,
            X,
            None if values["form"] == "given" else np.empty(0, dtype),
            values["shift"],
        )
        pairs = [empty(like, pair["raw"]) for pair in values["pairs"]]
        self._stream = Stream(values["seed"], values["n_calls"], values["n_seen"], like, pairs)
        for k, pair in enumerate(values["pairs"]):
            pairs[k] = Expanding.from_dict(
                pair, like, self._readied(pair["raw"])[1], self._readied(pair["f_raw"])[1]
            )
