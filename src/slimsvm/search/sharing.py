"""What the fits of a search have in common, computed once: from candidates and folds to a book.

Shared are searches over parameters of ``SVC`` and ``SVR`` that leave the kernel values of the rows
the same for several fits: C and epsilon, and everything that names a kernel. Other estimators share
less (:mod:`slimsvm.search.fold_fits`). The estimator may be the last step of a Pipeline whose
other steps are not searched: these are fitted once a fold.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from slimsvm.estimators.classification import SVC
from slimsvm.estimators.regression import SVR
from slimsvm.kernels import FromCallable, Kernel, Precomputed
from slimsvm.multiclass import OneVsOne
from slimsvm.precision import is_small
from slimsvm.run import Limits
from slimsvm.search.active_rows import ActiveRows
from slimsvm.search.fold_fits import KERNELS, ROWS, FoldFits, kind_of
from slimsvm.search.held_out import Consumer, FoldProblem, Point, Space, Votes
from slimsvm.search.shared import Candidate, NotShared, Shared
from slimsvm.search.stand_in import Book, Known

Array = NDArray[Any]
# parameters that candidates may differ in where solutions go from each C to the next
SEARCHED = {
    SVC: {"C", "kernel", "gamma", "degree", "coef0", "class_weight", "tol", "shrinking"}
    | {"cache_size", "decision_function_shape", "break_ties"},
    SVR: {"C", "epsilon", "kernel", "gamma", "degree", "coef0", "tol", "shrinking", "cache_size"},
}
# parameters of the others that are about one fit, and what was shared in words
ABOUT_ONE_FIT = {"warm_start", "max_time", "max_iter", "verbose", "n_jobs", "random_state"}
ABOUT_ONE_FIT |= {"probability", "solver"}
ALWAYS_SHARED = ("linear", "poly", "rbf", "precomputed")
# parameters that change no result: a search may go on with others
ABOUT_THE_WORK = ("n_jobs", "verbose", "cache_size", "memory", "max_memory")
ALONG = "went from each C to the next, and carried the scores of held-out rows along"
PATHS = "{} kernel matrices, " + ALONG
ACTIVE = "kernel values of the rows that matter for each of {} kernels, " + ALONG


def _part(show: Callable[[float], None], k: int, n: int, share: float) -> None:
    """Part k of n is done so far."""
    show((k + share) / n)


class Sharing:
    """The shared work of one call of ``fit`` of a search.

    Raises NotShared where there is none; the message says why.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        fit_params: dict[str, Any],
        max_memory: float,
        threads: int,
    ) -> None:
        self.whole, self.X, self.y = estimator, X, y
        self.max_bytes, self.threads = max_memory * 1e6, threads
        self.prefix, self.name = "", ""
        if type(estimator) is Pipeline:
            self.name, estimator = estimator.steps[-1]
            self.prefix = f"{self.name}__"
        if type(estimator) not in SEARCHED and not kind_of(estimator):
            raise NotShared(f"fits of {type(estimator).__name__} share nothing here")
        self.estimator = estimator
        self.n = _num_samples(X)
        self._refuse(estimator)
        weights = {key: value for key, value in fit_params.items() if value is not None}
        self.sample_weight = weights.pop(f"{self.prefix}sample_weight", None)
        if weights:
            raise NotShared(f"fit is given {', '.join(weights)}")
        if getattr(estimator, "_skl_callbacks", None):
            raise NotShared("the estimator has callbacks")
        self.stop: Callable[[], str] = lambda: ""
        self.limits = Limits()
        self.keep_outputs = self._above = False
        self.show: Callable[[float], None] = lambda share: None  # how much of the work is done
        self.checkpoint: Any = None
        self._book: Book | None = None
        self.n_kernels = self.n_shared = self.n_fits = 0
        self.seconds, self.reasons = 0.0, dict[str, None]()

    @staticmethod
    def _refuse(estimator: Any) -> None:
        if getattr(estimator, "probability", "deprecated") not in ("deprecated", False):
            raise NotShared("probability=True has fits of its own inside")
        for name in ("max_time", "solver"):
            if kind_of(estimator) is not ROWS and getattr(estimator, name, None) is not None:
                raise NotShared(f"{name} is about a single fit")
        limited = type(estimator) in SEARCHED and estimator.max_iter != -1
        if limited or getattr(estimator, "warm_start", False):
            raise NotShared("max_iter and warm_start are about a single fit")

    # -- the book ----------------------------------------------------------------------------------

    def refuse_names(self, names: set[str]) -> None:
        """Raise NotShared where other parameters are searched."""
        own = SEARCHED.get(type(self.estimator), set(self.estimator.get_params()) - ABOUT_ONE_FIT)
        allowed = {self.prefix + name for name in own}
        if names - allowed:
            raise NotShared(f"{', '.join(sorted(names - allowed))} is searched")
        if not names:
            raise NotShared("nothing is searched")

    def takes_all(self, grids: list[Any]) -> bool:
        """Whether no candidate is left for fits one by one, but for what cannot be foreseen."""
        if type(self.estimator) not in SEARCHED:
            return False
        kernels: list[Any] = [self.estimator.kernel]
        for grid in grids:
            asked = grid.get(f"{self.prefix}kernel", ())
            kernels += list(asked) if isinstance(asked, (list, tuple)) else [asked]
        return all(isinstance(one, str) and one in ALWAYS_SHARED for one in kernels)

    def write(
        self,
        book: Book,
        candidates: list[dict[str, Any]],
        splits: list[tuple[Array, Array]],
        decision: bool,
        train_too: bool,
    ) -> None:
        """Enter what can be known about all candidates in all folds."""
        begin = time.perf_counter()
        self.n_fits += len(candidates) * len(splits)
        found = [
            c for k, one in enumerate(candidates) if (c := self._candidate(k, one)) is not None
        ]
        folds = []
        for fold, (train, test) in enumerate(splits):
            train, test = np.asarray(train), np.asarray(test)
            if train.dtype == bool or np.unique(train).size < train.size or train.size < 2:
                self.reasons["rows occur twice in a fold, or are masks"] = None
                continue
            book.folds[np.asarray(train, np.int64).tobytes()] = fold
            folds.append((fold, train, test))
        before = len(book.known)
        self._decision, self._train_too, self._book = decision, train_too, book
        self._only_votes = not decision and not self.keep_outputs
        self._splits, self._all = splits, self.whole.get_params()
        if self.checkpoint is not None:
            self._facts = self._facts_of(book)
            book.known.update(self.checkpoint.of_search(self._facts))
        if not self.prefix:
            X = self._checked_rows()
            self._work_through(X, self.y, self.sample_weight, folds, found)
        else:
            show = self.show
            for k, own in enumerate(folds):
                if not self.stop():
                    self.show = partial(_part, show, k, len(folds))
                    Z, y, weight, places = self._transformed(*own)
                    self._work_through(Z, y, weight, [places], found)
        if self.checkpoint is not None:
            self.checkpoint.keep_search(self._facts, book.known, end=True)
        self.seconds += time.perf_counter() - begin
        reason, new = self.stop(), len(book.known) - before
        self.n_shared += new
        if reason and new < len(candidates) * len(splits):
            book.reason = reason

    def _facts_of(self, book: Book) -> dict[str, Any]:
        """What makes a search the same, but for its points."""
        own = {k: repr(v) for k, v in self._all.items() if k not in book.names}
        return {
            "estimator": type(self.estimator).__name__,
            "searched": book.names,
            "parameters": {k: v for k, v in own.items() if not k.endswith(ABOUT_THE_WORK)},
            "outputs": [self._decision, self._train_too, self.keep_outputs],
            "rows": joblib.hash((self.X, self.y, self.sample_weight, self._splits)),
        }

    def _is_known(self, candidate: Candidate, fold: int) -> bool:
        """Whether the fit is in the book, from a checkpoint."""
        if self._book is None or self.checkpoint is None:
            return False
        return self._book.key({**self._all, **candidate.parameters}, fold) in self._book.known

    def outputs(self, splits: list[tuple[Array, Array]]) -> list[tuple[Array, Array, Array]]:
        """Of the estimator itself, for each fold: the rows, their outputs, and the classes."""
        found: list[tuple[Array, Array, Array]] = []
        self.reasons = {}
        self._train_too = self._only_votes = False
        candidates = [Candidate(0, {}, self.estimator)]
        X = self._checked_rows()

        def consume(
            point: Point, problem: FoldProblem, outputs: Array, votes: Votes | None
        ) -> None:
            found.append((problem.test, outputs.astype(np.float64), problem.classes))

        folds = [(k, train, test) for k, (train, test) in enumerate(splits)]
        self._work_through(X, self.y, self.sample_weight, folds, candidates, consume)
        return found

    def result(self) -> Shared:
        """What was shared."""
        reason = "; ".join(self.reasons) if self.n_shared < self.n_fits else ""
        what = PATHS if type(self.estimator) in SEARCHED else kind_of(self.estimator)
        what = ACTIVE if self._above else what
        return Shared(self.n_fits, self.n_shared, self.n_kernels, self.seconds, reason, what)

    def _candidate(self, number: int, parameters: dict[str, Any]) -> Candidate | None:
        own = {name.removeprefix(self.prefix): value for name, value in parameters.items()}
        try:
            estimator = clone(self.estimator).set_params(**clone(own, safe=False))
            estimator._validate_params()
        except Exception:  # whatever it is: the fit of this candidate says it
            self.reasons["not all parameters are valid"] = None
            return None
        kernel = getattr(estimator, "kernel", None)
        if (callable(kernel) and not isinstance(kernel, Kernel)) or isinstance(
            kernel, FromCallable
        ):
            self.reasons["the kernel is a function"] = None
            return None
        return Candidate(number, parameters, estimator)

    # -- rows --------------------------------------------------------------------------------------

    def _checked_rows(self) -> Any:
        """All rows as the estimator sees them."""
        X, _, _ = clone(self.estimator)._checked(self.X, self.y, self.sample_weight)
        if self.estimator._precomputed:
            rounding = 1e-9 * float(np.abs(X).max())
            if not np.allclose(X, X.T, rtol=0.0, atol=rounding):
                raise NotShared("the matrix of kernel values is not symmetric")
        return X

    def _transformed(self, fold: int, train: Array, test: Array) -> tuple[Any, ...]:
        """The rows of a fold behind the first steps of the pipeline: training rows, then others."""
        steps = clone(self.whole[:-1])
        y = None if self.y is None else _safe_indexing(self.y, train)
        weight = self.sample_weight
        first = steps.fit_transform(_safe_indexing(self.X, train), y) if len(steps) else None
        if first is None:
            first, second = (_safe_indexing(self.X, rows) for rows in (train, test))
        else:
            second = steps.transform(_safe_indexing(self.X, test))
        if sp.issparse(first) or sp.issparse(second):
            Z = sp.vstack([first, second]).tocsr()
        else:
            Z = np.vstack([np.asarray(first), np.asarray(second)])
        rows = np.concatenate([train, test])
        y = None if self.y is None else _safe_indexing(self.y, rows)
        weight = None if weight is None else _safe_indexing(weight, rows)
        Z, _, _ = clone(self.estimator)._checked(Z, y, None)
        here = np.arange(train.size), train.size + np.arange(test.size)
        return Z, y, weight, (fold, *here)

    # -- problems ----------------------------------------------------------------------------------

    def _work_through(
        self,
        X: Any,
        y: Any,
        weight: Any,
        folds: list[Any],
        candidates: list[Candidate],
        consume: Consumer | None = None,
    ) -> None:
        """All candidates in folds of the same rows."""
        if type(self.estimator) not in SEARCHED:
            self._fit_through(X, y, weight, folds, candidates)
            return
        problems = [
            problem
            for fold, train, test in folds
            for problem in self._problems(X, y, weight, fold, train, test, candidates)
        ]
        if not problems:
            return
        label = None
        if problems[0].classes.size:
            label = np.unique(np.asarray(y), return_inverse=True)[1].ravel()
        by_kernel: dict[Kernel, list[FoldProblem]] = {}
        for problem in problems:
            by_kernel.setdefault(problem.kernel, []).append(problem)
        numbers: dict[int, Candidate] = {c.number: c for c in candidates}
        # of one kind together, by growing gamma: inner products in float32 do for the first ones
        kernels = sorted(by_kernel, key=lambda k: (k.name, float(getattr(k, "gamma", 0.0))))

        def enter(point: Point, problem: FoldProblem, outputs: Array, votes: Votes | None) -> None:
            self._enter(numbers[point.candidate], problem, outputs, votes)

        solved = self._solved(X, label, kernels, by_kernel, consume or enter)
        for k, missed in enumerate(solved):
            self.n_kernels += 1
            self.show((k + 1) / len(kernels))
            if missed and not self.stop():
                self.reasons["rounding errors of kernel values were in the way"] = None
            if self.stop():
                self.reasons[self.stop()] = None
                return

    def _solved(
        self, X: Any, label: Array | None, kernels: list[Kernel], problems: Any, consume: Consumer
    ) -> Iterator[list[tuple[int, int]]]:
        """Solve the problems, kernel by kernel; what missed its tolerance."""
        if self._above:
            how = (self.max_bytes, self.threads, self.limits, self.stop)
            active = ActiveRows(X, label, *how)
            for kernel in kernels:
                yield active.solve(kernel, problems[kernel], consume)
            return
        space = Space(X, label, self.threads, self.max_bytes, self.stop)
        by_pairs = all(one.only_votes for own in problems.values() for one in own)
        for kernel, matrix in space.matrices(kernels, by_pairs):
            yield space.solve(matrix, problems[kernel], consume)

    def _fit_through(
        self, X: Any, y: Any, weight: Any, folds: list[Any], candidates: list[Candidate]
    ) -> None:
        """Real fits, where solutions cannot be carried along."""
        if not candidates:
            return
        fits = FoldFits(
            X,
            y,
            weight,
            self._record,
            decision=self._decision,
            train_too=self._train_too,
            threads=self.threads,
            stop=self.stop,
            is_known=self._is_known,
        )
        self.n_kernels += fits.run(folds, candidates, self.max_bytes)
        if fits.failed:
            self.reasons["a fit failed"] = None

    def refuse_size(self) -> None:
        """See whether kernel values fit into memory; raise NotShared where that is needed."""
        need = (8 if is_small(self.n) else 4) * self.n**2
        paths = type(self.estimator) in SEARCHED
        if need <= self.max_bytes or not (paths or kind_of(self.estimator) is KERNELS):
            return
        two = is_regressor(self.estimator) or np.unique(np.asarray(self.y)).size == 2
        if paths and two and not self.estimator._precomputed:
            self._above = True
            return
        why = "" if not paths else ", which pairs of several classes cannot do without"
        raise NotShared(
            f"kernel values of {self.n:,} rows need {need / 1e6:,.3g} MB{why}, and max_memory is "
            f"{self.max_bytes / 1e6:,g} MB"
        )

    def n_done(self, n_folds: int) -> int:
        """Candidates that are in the book for all folds."""
        assert self._book is not None
        counts = Counter(key[1:] for key in self._book.known)
        return sum(count >= n_folds for count in counts.values())

    def _problems(
        self,
        X: Any,
        y: Any,
        weight: Any,
        fold: int,
        train: Array,
        test: Array,
        candidates: list[Candidate],
    ) -> list[FoldProblem]:
        """The problems of a fold: one for each kernel and each set of class weights."""
        try:
            columns = train if self.estimator._precomputed else slice(None)
            X_train = X[train][:, columns] if self.estimator._precomputed else X[train]
            y_train = _safe_indexing(y, train)
            w_train = None if weight is None else _safe_indexing(weight, train)
            checked = clone(self.estimator)._checked(X_train, y_train, w_train)
        except Exception:  # the ordinary way says it, fold by fold
            self.reasons["rows of a fold are not valid"] = None
            return []
        rows = np.concatenate([test, train]) if self._train_too else test
        made: dict[Any, FoldProblem] = {}
        encoded: dict[str, Any] = {}
        for candidate in candidates:
            if self._is_known(candidate, fold):
                continue
            own = candidate.estimator
            group = repr(getattr(own, "class_weight", None))
            try:
                if group not in encoded:
                    encoded[group] = own._encoded(*checked)
                data = encoded[group]
                kernel = own._kernel_for(checked[0], data.sample_weight)
                if not (kernel.positive or isinstance(kernel, Precomputed)):
                    self.reasons["the solution is not unique with such a kernel"] = None
                    continue
                place = (kernel, group)
                if place not in made:
                    target, used = np.asarray(data.target), train[data.used]
                    about = (test.size, data.classes, self._only_votes)
                    made[place] = FoldProblem(fold, kernel, used, target, data.weight, rows, *about)
            except Exception:
                self.reasons["a fold has not what every fit needs"] = None
                continue
            epsilon = float(getattr(own, "epsilon", 0.0))
            C = own._finite_C
            made[place].points.append(Point(candidate.number, C, epsilon, float(own.tol)))
        return list(made.values())

    def _enter(
        self, candidate: Candidate, problem: FoldProblem, outputs: Array, votes: Votes | None
    ) -> None:
        """Predictions from outputs, into the book."""
        own, known = candidate.estimator, Known(None)
        if problem.classes.size:
            known.classes = problem.classes
            scheme = OneVsOne(problem.classes.size)
            shape, ties = own.decision_function_shape, bool(own.break_ties)
            if ties and shape == "ovo" and problem.classes.size > 2:
                return  # prediction complains
            chosen = scheme.chosen(outputs, shape, ties)
            if votes is not None:
                some, chosen = chosen, votes.chosen.copy()
                chosen[votes.rest] = some
            predicted = known.classes[chosen]
            decision = scheme.decision(outputs, shape) if self._decision else None
        else:
            predicted, decision = outputs[:, 0], None
        n = problem.n_test
        known.outputs = outputs[:n] if self.keep_outputs else None
        for rows in (slice(0, n), slice(n, None))[: 2 if self._train_too else 1]:
            known.predicted.append(predicted[rows])
            known.decision.append(None if decision is None else np.asarray(decision[rows]))
        self._record(candidate, problem.fold, known)

    def _record(self, candidate: Candidate, fold: int, known: Known) -> None:
        """Into the book."""
        train, test = self._splits[fold]
        known.rows = [np.asarray(test), np.asarray(train)]
        assert self._book is not None
        self._book.known[self._book.key({**self._all, **candidate.parameters}, fold)] = known
        if self.checkpoint is not None:
            self.checkpoint.keep_search(self._facts, self._book.known)
