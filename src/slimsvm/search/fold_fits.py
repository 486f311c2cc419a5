"""Fits one by one that share what they can: kernel values, starts, or the rows of a fold.

NuSVC, NuSVR and OneClassSVM take kernel values from one matrix of all rows for each kernel.
LinearSVC and LinearSVR go up C in every fold, each from the weights of the last one. What sparse
and reduced models share are the rows of a fold, checked, and behind the other steps of a pipeline;
where a smaller basis is the beginning of a larger one (cutting planes with pursued vectors that
stay where they are), candidates that differ in n_basis alone are points of one path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from slimsvm.kernels import Kernel, Precomputed
from slimsvm.search.held_out import Space
from slimsvm.search.matrices import WholeMatrix
from slimsvm.search.shared import Candidate
from slimsvm.search.stand_in import Known
from slimsvm.threads import parallel

Array = NDArray[Any]
KERNELS, STARTS, ROWS = (
    "{} kernel matrices",
    "their starts: each C begins with the weights of the last one",
    "the rows of their folds, and where one basis begins with another, its path",
)
# by the names of classes, so that nothing is imported that is not searched
IN_WORDS = {
    "NuSVC": KERNELS,
    "NuSVR": KERNELS,
    "OneClassSVM": KERNELS,
    "LinearSVC": STARTS,
    "LinearSVR": STARTS,
    "SparseSVC": ROWS,
    "SparseSVR": ROWS,
    "ReducedSVC": ROWS,
    "CrammerSingerSVC": ROWS,
}
NESTED = ("pursuit", "pursuit_rows")  # bases of which the first vectors are a smaller one
# receives the candidate, the fold and what is known of it
Enter = Callable[[Candidate, int, Known], None]
Fold = tuple[int, Array, Array]  # its number, training rows, held-out rows


def kind_of(estimator: Any) -> str:
    """What its fits can share, in words; empty: nothing here."""
    own = type(estimator)
    return IN_WORDS.get(own.__name__, "") if own.__module__.startswith("slimsvm.") else ""


def is_nested(estimator: Any) -> bool:
    """Whether smaller bases are on the path of a larger one, as if each were fitted alone."""
    asked = [getattr(estimator, name, None) for name in ("refine", "loss", "basis", "solver")]
    return (
        asked[:2] == [False, "hinge"]
        and isinstance(asked[2], str)
        and asked[2] in NESTED
        and asked[3] is None
        and isinstance(estimator.n_basis, Integral)
        and estimator.validation_fraction is None
        and isinstance(estimator.random_state, Integral)
    )


class FoldFits:
    """Real fits of all candidates to some folds of the same rows."""

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: Any,
        enter: Enter,
        *,
        decision: bool,
        train_too: bool,
        threads: int,
        stop: Callable[[], str],
        is_known: Callable[[Candidate, int], bool] = lambda candidate, fold: False,
    ) -> None:
        self.X, self.y, self.weight, self.enter = X, y, weight, enter
        self.is_known = is_known
        self.decision, self.train_too, self.threads, self.stop = decision, train_too, threads, stop
        self.failed = False

    def run(self, folds: list[Fold], candidates: list[Candidate], max_bytes: float) -> int:
        """Fit all; the number of kernel matrices."""
        if kind_of(candidates[0].estimator) is KERNELS:
            return self._with_matrices(folds, candidates, max_bytes)
        chains = list(_chains(candidates))
        tasks = [
            (fold, left)
            for fold in folds
            for chain in chains
            if (left := [one for one in chain if not self.is_known(one, fold[0])])
        ]
        parallel(lambda k: self._chain(*tasks[k]), len(tasks), self.threads)
        return 0

    def _chain(self, fold: Fold, chain: list[Candidate]) -> None:
        """One fold: candidates that differ in C alone, ascending."""
        number, train, test = fold
        X_train, rows = self.X[train], [self.X[test]]
        rows += [X_train] if self.train_too else []
        if is_nested(chain[0].estimator):
            self._sizes(number, chain, X_train, train, rows)
            return
        model = clone(chain[0].estimator)
        if len(chain) > 1:
            model.set_params(warm_start=True)
        for candidate in chain:
            if self.stop():
                return
            model.set_params(**{"C": candidate.estimator.C} if len(chain) > 1 else {})
            self._fit(candidate, number, model, X_train, train, rows)

    def _sizes(
        self, fold: int, chain: list[Candidate], X: Any, train: Array, rows: list[Any]
    ) -> None:
        """One fold: candidates that differ in the size of the basis alone, the largest first."""
        largest = self._fit(chain[-1], fold, clone(chain[-1].estimator), X, train, rows)
        on_path = {point.n_basis for point in getattr(largest, "path_", ())}
        for candidate in chain[:-1]:
            if self.stop():
                return
            size = candidate.estimator.n_basis
            if size in on_path:
                self._predict(candidate, fold, largest.truncated(size), rows)
            else:
                self._fit(candidate, fold, clone(candidate.estimator), X, train, rows)

    def _with_matrices(
        self, folds: list[Fold], candidates: list[Candidate], max_bytes: float
    ) -> int:
        """Each kernel once; the fits take their parts of its matrix."""
        by_kernel: dict[Kernel, list[tuple[Fold, Candidate]]] = {}
        for fold in folds:
            _, train, _ = fold
            w = np.ones(train.size) if self.weight is None else _safe_indexing(self.weight, train)
            for candidate in candidates:
                if self.is_known(candidate, fold[0]):
                    continue
                X = self.X[train]
                X = X[:, train] if candidate.estimator._precomputed else X
                kernel = candidate.estimator._kernel_for(X, np.asarray(w, np.float64))
                by_kernel.setdefault(kernel, []).append((fold, candidate))
        space = Space(self.X, None, self.threads, max_bytes, self.stop)
        for kernel, matrix in space.matrices(list(by_kernel)):
            assert isinstance(matrix, WholeMatrix)
            tasks = by_kernel[kernel]

            def fit(k: int, K: Array = matrix.K, tasks: Any = tasks) -> None:
                (number, train, test), candidate = tasks[k]
                if self.stop():
                    return
                part = K[np.ix_(train, train)]
                rows = [K[np.ix_(test, train)], *([part] if self.train_too else [])]
                model = clone(candidate.estimator).set_params(kernel=Precomputed.name)
                self._fit(candidate, number, model, part, train, rows)

            parallel(fit, len(tasks), self.threads)
        return len(by_kernel)

    def _fit(
        self, candidate: Candidate, fold: int, model: Any, X: Any, train: Array, rows: list[Any]
    ) -> Any:
        """One fit and its predictions; the model, if it could be fitted."""
        y = None if self.y is None else _safe_indexing(self.y, train)
        given = {}
        if self.weight is not None:
            given["sample_weight"] = _safe_indexing(self.weight, train)
        try:
            model.fit(X, y, **given)
        except Exception:  # the ordinary way says it
            self.failed = True
            return None
        self._predict(candidate, fold, model, rows)
        return model

    def _predict(self, candidate: Candidate, fold: int, model: Any, rows: list[Any]) -> None:
        known = Known(getattr(model, "classes_", None))
        decides = self.decision and hasattr(model, "decision_function")
        try:
            for own in rows:
                known.predicted.append(model.predict(own))
                known.decision.append(model.decision_function(own) if decides else None)
        except Exception:  # the ordinary way says it
            self.failed = True
            return
        self.enter(candidate, fold, known)


def _chains(candidates: list[Candidate]) -> Iterator[list[Candidate]]:
    """Candidates that one fit, or one after the other, can serve, ascending; others alone."""
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in candidates:
        own, axis = candidate.estimator.get_params(), ""
        if kind_of(candidate.estimator) is STARTS:
            axis = "C"
        elif is_nested(candidate.estimator):
            axis = "n_basis"
        own.pop(axis, None)
        groups.setdefault((axis, repr(sorted(own.items()))), []).append(candidate)
    for (axis, _), group in groups.items():
        if axis:
            yield sorted(group, key=lambda candidate: float(getattr(candidate.estimator, axis)))
        else:
            yield from ([candidate] for candidate in group)
