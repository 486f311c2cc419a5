"""Fits one by one that share what they can: kernel values, starts, or the rows of a fold.

NuSVC, NuSVR and OneClassSVM take kernel values from one matrix of all rows for each kernel.
LinearSVC and LinearSVR go up C in every fold, each from the weights of the last one. What sparse
models share are the rows of a fold, checked, and behind the other steps of a pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from slimsvm.estimators.classification import NuSVC
from slimsvm.estimators.linear import LinearSVC, LinearSVR
from slimsvm.estimators.one_class import OneClassSVM
from slimsvm.estimators.regression import NuSVR
from slimsvm.estimators.sparse import SparseSVC, SparseSVR
from slimsvm.kernels import Kernel, Precomputed
from slimsvm.search.held_out import Space
from slimsvm.search.shared import Candidate
from slimsvm.search.stand_in import Known
from slimsvm.threads import parallel

Array = NDArray[Any]
KERNELS, STARTS, ROWS = (
    "{} kernel matrices",
    "their starts: each C begins with the weights of the last one",
    "the rows of their folds",
)
IN_WORDS: dict[Any, str] = {
    NuSVC: KERNELS,
    NuSVR: KERNELS,
    OneClassSVM: KERNELS,
    LinearSVC: STARTS,
    LinearSVR: STARTS,
    SparseSVC: ROWS,
    SparseSVR: ROWS,
}
# receives the candidate, the fold and what is known of it
Enter = Callable[[Candidate, int, Known], None]
Fold = tuple[int, Array, Array]  # its number, training rows, held-out rows


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
    ) -> None:
        self.X, self.y, self.weight, self.enter = X, y, weight, enter
        self.decision, self.train_too, self.threads, self.stop = decision, train_too, threads, stop
        self.failed = False

    def run(self, folds: list[Fold], candidates: list[Candidate], max_bytes: float) -> int:
        """Fit all; the number of kernel matrices."""
        if IN_WORDS[type(candidates[0].estimator)] is KERNELS:
            return self._with_matrices(folds, candidates, max_bytes)
        chains = list(_chains(candidates))
        tasks = [(fold, chain) for fold in folds for chain in chains]
        parallel(lambda k: self._chain(*tasks[k]), len(tasks), self.threads)
        return 0

    def _chain(self, fold: Fold, chain: list[Candidate]) -> None:
        """One fold: candidates that differ in C alone, ascending."""
        number, train, test = fold
        X_train, rows = self.X[train], [self.X[test]]
        rows += [X_train] if self.train_too else []
        model = clone(chain[0].estimator)
        if len(chain) > 1:
            model.set_params(warm_start=True)
        for candidate in chain:
            if self.stop():
                return
            model.set_params(C=candidate.estimator.C)
            self._fit(candidate, number, model, X_train, train, rows)

    def _with_matrices(
        self, folds: list[Fold], candidates: list[Candidate], max_bytes: float
    ) -> int:
        """Each kernel once; the fits take their parts of its matrix."""
        by_kernel: dict[Kernel, list[tuple[Fold, Candidate]]] = {}
        for fold in folds:
            _, train, _ = fold
            w = np.ones(train.size) if self.weight is None else _safe_indexing(self.weight, train)
            for candidate in candidates:
                X = self.X[train]
                X = X[:, train] if candidate.estimator._precomputed else X
                kernel = candidate.estimator._kernel_for(X, np.asarray(w, np.float64))
                by_kernel.setdefault(kernel, []).append((fold, candidate))
        space = Space(self.X, None, self.threads, max_bytes, self.stop)
        for kernel, K, _ in space.matrices(list(by_kernel)):
            tasks = by_kernel[kernel]

            def fit(k: int, K: Array = K, tasks: Any = tasks) -> None:
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
    ) -> None:
        """One fit and its predictions."""
        y = None if self.y is None else _safe_indexing(self.y, train)
        given = {}
        if self.weight is not None:
            given["sample_weight"] = _safe_indexing(self.weight, train)
        try:
            model.fit(X, y, **given)
            known = Known(getattr(model, "classes_", None))
            for own in rows:
                known.predicted.append(model.predict(own))
                decides = self.decision and hasattr(model, "decision_function")
                known.decision.append(model.decision_function(own) if decides else None)
        except Exception:  # the ordinary way says it
            self.failed = True
            return
        self.enter(candidate, fold, known)


def _chains(candidates: list[Candidate]) -> Iterator[list[Candidate]]:
    """Candidates that differ in C alone, ascending; where a start says nothing, each alone."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        own = candidate.estimator.get_params()
        if IN_WORDS[type(candidate.estimator)] is STARTS:
            own.pop("C")
        groups.setdefault(repr(sorted(own.items())), []).append(candidate)
    for group in groups.values():
        if IN_WORDS[type(group[0].estimator)] is STARTS:
            yield sorted(group, key=lambda candidate: float(candidate.estimator.C))
        else:
            yield from ([candidate] for candidate in group)
