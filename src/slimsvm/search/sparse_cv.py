"""SparseSVCCV: a sparse model whose C and gamma come from one pass over columns for each gamma.

Search: k rows, drawn at random, are the columns of K_XB for each gamma, whitened by the
eigenvectors of K_BB, so that the penalty is |w|^2. What is minimised is the squared error of class
indicators of +1 and -1,

    |w|^2 / 2 + C/2 sum_i v_i (w'z_i - t_i)^2,

which needs only the sums Z'VZ and Z'Vt: those of a fold's training rows are the total minus the
fold's. One eigenvalue decomposition a fold gives all C. So the search costs O(n k^2) for each gamma
whatever the number of folds and Cs, and goes through any number of rows in pieces.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight

from slimsvm.declarations import declared, of_new_rows, parameter
from slimsvm.ending import warn
from slimsvm.estimators.parameters import ClassWeight
from slimsvm.estimators.sparse import SparseSVC
from slimsvm.kernels import RBF
from slimsvm.search.choosing import (
    ABOVE,
    BELOW,
    DIGITS,
    LEAST_C,
    N_CS,
    STEP,
    ChoosesClassifier,
    of_search,
    typical_gamma,
)
from slimsvm.search.course import Course
from slimsvm.search.shared import Shared
from slimsvm.solvers.sparse_asked import AUTO_FRACTION
from slimsvm.threads import n_threads
from slimsvm.tiles import Strips, block, prepare

Array = NDArray[Any]
COLUMNS = 300  # at most; more hardly change which gamma is best
MOST_ROWS = 50_000  # of the search
LEAST_VALUE = 1e-6  # eigenvalue of K_BB, relative to the largest: below it, float32 has noise
WHAT = "the columns of {} gammas: the sums of a fold are the total minus the fold's"


class _Outputs(ClassifierMixin, BaseEstimator):
    """What a scorer sees of a point and a fold: known decision values."""

    def __init__(self, classes_: Array, scores: Array) -> None:
        self.classes_, self.scores = classes_, scores

    def fit(self, X: Any, y: Any) -> _Outputs:
        """Nothing is left to do."""
        return self

    def decision_function(self, X: Any) -> Array:
        """The values that are known."""
        return self.scores[:, 1] if self.classes_.size == 2 else self.scores

    def predict(self, X: Any) -> Array:
        """The class with the largest one."""
        return np.asarray(self.classes_[self.scores.argmax(axis=1)])


@declared
class SparseSVCCV(ChoosesClassifier):
    """Sparse support vector classification that chooses C and gamma by itself, for many rows.

    The search looks at least-squares models on some hundred columns of the kernel matrix, whose
    sums over the rows of all folds are made once for each gamma; the model is a
    :class:`slimsvm.SparseSVC` on all rows. Features should be of similar size: scale them first.

    Parameters
    ----------
    n_basis : int or 'auto'
        Number of basis vectors of the model. 'auto': the smallest that is as good as larger ones on
        rows of the first fold, by which C and gamma were judged as well.
    Cs : array-like of float
        Points of the grid; by default seven from the data.
    search : {'race', 'grid'}
        'race': on at most 50,000 rows, drawn at random. 'grid': on all rows.
    scoring : str or callable
        What is to be large, of predictions or decision values; by default accuracy.
    tol : float
        Of the model: its relative duality gap where its loss has one.
    max_memory : float
        Megabytes for columns; a search of more rows takes a random sample of them.
    random_state : int, RandomState instance or None
        Of the rows of the search, its columns, and the model.

    Attributes
    ----------
    cv_results_
        ``params``, ``mean_test_score``, ``std_test_score`` and the scores of the folds.
    oof_decision_function_
        Decision values of each row by the search's model without its fold; NaN without one. Of two
        classes a vector.

    Examples
    --------
    >>> from slimsvm import SparseSVCCV
    >>> from slimsvm.datasets import checkers
    >>> X, y = checkers(2000, seed=0)
    >>> model = SparseSVCCV(30).fit(X, y)
    >>> model.score(X, y) > 0.9, model.best_estimator_.basis_.shape[0] <= 30
    (True, True)
    """

    n_basis: int | str = parameter(
        100, Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), positional=True
    )
    Cs: Any = of_search("Cs")
    gammas: Any = of_search("gammas")
    search: Literal["race", "grid"] = of_search("search")
    scoring: str | Callable[..., Any] | None = of_search("scoring")
    cv: int | BaseCrossValidator | Iterable[Any] | None = of_search("cv")
    class_weight: ClassWeight = of_search("class_weight")
    tol: float = of_search("tol")
    max_time: float | None = of_search("max_time")
    max_memory: float = of_search("max_memory")
    n_jobs: int | None = of_search("n_jobs")
    verbose: int = of_search("verbose")
    random_state: Any = of_search("random_state")

    def _estimator(self) -> SparseSVC:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return SparseSVC(
            self.n_basis,
            class_weight=self.class_weight,
            tol=self.tol,
            n_jobs=self.n_jobs,
            random_state=seed,
        )

    def _chosen(self, X: Any, y: Array, weight: Array | None, course: Course) -> None:
        rng = check_random_state(self.random_state)
        most = int(self.max_memory * 1e6 / (4.0 * COLUMNS))
        most = min(most, MOST_ROWS) if self.search == "race" else most
        rows = np.arange(y.size)
        if y.size > most and not self._fixed:
            rows = np.sort(rng.permutation(y.size)[: max(most, 2)])
        own = X if rows.size == y.size else X[rows]
        self._rows, label = rows, np.searchsorted(self.classes_, y[rows])
        weights = np.ones(rows.size) if weight is None else weight[rows].astype(np.float64)
        if self.class_weight is not None:
            weights = weights * compute_sample_weight(self.class_weight, y[rows])
        splits = self._folds(own, y[rows])
        self._first_test = rows[rng.permutation(splits[0][1])]
        columns = _Columns(own, label, weights, splits, n_threads(self.n_jobs), rng)
        scorer = check_scoring(
            _Outputs(self.classes_, np.empty((0, 2))), scoring=self.scoring or "accuracy"
        )
        middle = typical_gamma(own, self.random_state)
        gammas = self._axis("gammas", middle * STEP ** np.arange(-BELOW, ABOVE + 1.0))
        Cs = self._axis("Cs", LEAST_C * STEP ** np.arange(0.0, N_CS))
        begin, scores = time.perf_counter(), list[Array]()
        course.plan(y.size, gammas.size)
        show = course.of_pass(y.size, gammas.size)
        facts = {"scores": [gammas.tolist(), Cs.tolist()]}
        kept: dict[int, Array] = self._stages.of_search(facts) if self._stages else {}
        for g, gamma in enumerate(gammas):
            if course.limits.reason() and scores:
                warn(
                    f"{len(scores)} of {gammas.size} gammas were looked at when the search had to "
                    "end; the best of these is chosen.",
                    UserWarning,
                )
                break
            if g not in kept:
                kept[g] = np.empty((len(splits), Cs.size))
                for f, (test, values) in enumerate(columns.outputs(float(gamma), Cs)):
                    for c in range(Cs.size):
                        known = _Outputs(self.classes_, values[c])
                        kept[g][f, c] = scorer(known, own[test], y[rows][test])
                if self._stages is not None:
                    self._stages.keep_search(facts, kept)
            scores.append(kept[g])
            show(len(scores) / gammas.size)
        self.scores_ = np.stack(scores, axis=1)
        gammas = gammas[: len(scores)]
        mean = np.round(self.scores_.mean(axis=0), DIGITS)
        if not np.isfinite(mean).any():
            raise ValueError(
                f"No point of the search has a score that is a number (scoring={self.scoring!r}, "
                f"{len(splits)} folds). Try another score, or other folds."
            )
        g, at = divmod(int(np.nanargmax(mean)), Cs.size)
        self.gammas_, self.Cs_ = gammas, Cs
        self.best_params_ = {"C": float(Cs[at]), "gamma": float(gammas[g])}
        self.best_score_ = float(self.scores_[:, g, at].mean())
        self.cv_results_ = _results(self.scores_, gammas, Cs)
        self.n_fits_ = self.scores_.size
        self.shared_ = Shared(
            self.n_fits_,
            self.n_fits_,
            gammas.size,
            time.perf_counter() - begin,
            what=WHAT,
            sample=rows.size if rows.size < y.size else 0,
        )
        shape = (y.size,) if self.classes_.size == 2 else (y.size, self.classes_.size)
        self._oof = np.full(shape, np.nan)
        for test, values in columns.outputs(float(gammas[g]), Cs[at : at + 1]):
            self._oof[rows[test]] = _Outputs(self.classes_, values[0]).decision_function(None)

    def _before_last(self, final: Any, used: Array) -> None:
        if self.n_basis == "auto":
            test = self._first_test
            final._held_rows = used[test[: max(1, round(AUTO_FRACTION * used.size))]]
        del self._first_test

    def _folds(self, X: Any, y: Array) -> list[tuple[Array, Array]]:
        if self.cv is None:
            fewest = int(np.unique(y, return_counts=True)[1].min())
            splitter: Any = StratifiedKFold(max(2, min(5, fewest)))
        else:
            splitter = check_cv(self.cv, y, classifier=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            return list(splitter.split(X, y))

    def _after(self, X: Any, y: Array, used: Array, weight: Array | None) -> None:
        self.best_estimator_.__dict__.pop("_held_rows", None)
        self.oof_decision_function_ = np.full((y.size, *self._oof.shape[1:]), np.nan)
        self.oof_decision_function_[used] = self._oof
        del self._oof

    @of_new_rows("array of shape (n_samples, n_classes)")
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, from the loss of the model."""
        X = self._new_rows(X)
        return np.asarray(self.best_estimator_.predict_proba(X))


class _Columns:
    """Whitened columns of the kernel matrix, and the sums of their products by fold."""

    def __init__(
        self, X: Any, label: Array, weight: Array, splits: Any, threads: int, rng: Any
    ) -> None:
        self.X, self.weight, self.splits, self.threads = X, weight, splits, threads
        n, n_classes = label.size, int(label.max()) + 1
        self.basis = np.sort(rng.permutation(n)[: min(COLUMNS, n)])
        self.target = np.full((n, n_classes), -1.0, np.float32)
        self.target[np.arange(n), label] = 1.0

    def outputs(self, gamma: float, Cs: Array) -> Any:
        """For each fold its held-out rows, and values of shape (Cs, rows, classes)."""
        operand = prepare(RBF(gamma), self.X, dtype=np.float32)
        Z = block(operand, Strips(operand.take(self.basis)), self.threads)
        values, vectors = np.linalg.eigh(Z[self.basis].astype(np.float64))
        kept = values > LEAST_VALUE * values[-1]
        whitening = (vectors[:, kept] / np.sqrt(values[kept])).astype(np.float32)
        Z = np.column_stack([Z @ whitening, np.ones(Z.shape[0], np.float32)])
        everything = self._sums(Z, slice(None))
        for train, test in self.splits:
            whole = len(train) + len(test) == Z.shape[0]
            left = self._sums(Z, test if whole else train)
            G, b = (everything[0] - left[0], everything[1] - left[1]) if whole else left
            values, vectors = np.linalg.eigh(G)
            in_axes = vectors.T @ b
            coef = [vectors @ (in_axes / (np.maximum(values, 0.0) + 1.0 / C)[:, None]) for C in Cs]
            yield test, [Z[test] @ w.astype(np.float32) for w in coef]

    def _sums(self, Z: Array, rows: Any) -> tuple[Array, Array]:
        own = Z[rows]
        weighted = own * self.weight[rows, None].astype(np.float32)
        return (weighted.T @ own).astype(np.float64), (weighted.T @ self.target[rows]).astype(
            np.float64
        )


def _results(scores: Array, gammas: Array, Cs: Array) -> dict[str, Any]:
    """In the form of scikit-learn's ``cv_results_``."""
    points = [{"C": float(C), "gamma": float(g)} for g in gammas for C in Cs]
    flat = scores.reshape(scores.shape[0], -1)
    found: dict[str, Any] = {
        "params": points,
        "mean_test_score": flat.mean(axis=0),
        "std_test_score": flat.std(axis=0),
        "rank_test_score": 1
        + (flat.mean(axis=0)[None, :] > flat.mean(axis=0)[:, None]).sum(axis=1),
    }
    for name in ("C", "gamma"):
        found[f"param_{name}"] = np.ma.masked_array([point[name] for point in points])
    return found | {f"split{f}_test_score": row for f, row in enumerate(flat)}
