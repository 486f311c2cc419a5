"""What SparseSVC and SparseSVR share."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from slimsvm.basis import Basis, choices, is_choice
from slimsvm.declarations import parameter
from slimsvm.ending import FULL, SUBSPACE, Ending, Status, sentence
from slimsvm.estimators.fitting import Estimator
from slimsvm.models.sparse import SparseModel
from slimsvm.run import Result
from slimsvm.solvers.path_points import HISTORY, Scoring
from slimsvm.solvers.sparse_asked import AUTO, AUTO_FRACTION, DESCENT, KINKED, Asked
from slimsvm.training import Data, Fit

Array = NDArray[Any]
WIDTH = 88  # of a line of documentation
ACCURACY = Interval(Real, 0.0, 1.0, closed="both")
FRACTION = Interval(Real, 0.0, 1.0, closed="neither")
KEPT = (
    "Ended with coefficients that do better on rows held out than those of the lowest objective, "
    "or with the descent's, which are too many to improve: the objective of the model is "
    "{value:.4g}, and the optimum with the same vectors is at least {low:.4g}."
)
METRICS = StrOptions({"auto", "learned", "diagonal"})
OURS = (
    "'descent' finds vectors, widths, coefficients and a metric together, by mini-batches, then "
    "the best coefficients on all rows; for the kernels rbf, poly and linear, and a loss with a "
    "derivative;",
    "'auto' is 'descent' where that is possible and refine is left alone, otherwise 'pursuit';",
)


def basis_parameter(*, labels: bool) -> Any:
    """The parameter ``basis``, whose text is what the choices say of themselves."""

    def text() -> str:
        first = (
            "Where the basis vectors come from: one of these names; an object of :mod:`slimsvm."
            "basis` with settings of its own, such as Greedy(n_candidates=100, alone=True); or the "
            "vectors themselves."
        )
        items = [first, "", *(f"- {item}" for item in (*OURS, *words))]
        lines = [
            textwrap.wrap(item, WIDTH, subsequent_indent="  " * (item != first)) or [""]
            for item in items
        ]
        return "\n".join(line for item in lines for line in item)

    names, words = choices(labels)
    accepts = (StrOptions({*names, AUTO, DESCENT}), Basis, "array-like", "sparse matrix")
    return parameter(AUTO, *accepts, text=text)


class SparseEstimator(SparseModel, Estimator):
    """What both share: from data to a basis, a model on it, and the same at every smaller size.

    Parameters
    ----------
    C : float
        Weight of the errors: 1/2 |w|^2 + C sum_i weight_i loss(y_i, f(x_i)).
    refine : bool or 'auto'
        Whether the basis vectors are then moved to a local optimum. 'auto': if loss and kernel have
        derivatives and basis is neither an array nor 'all'.
    tol : float
        Relative gap within the span of the basis; refinement ends when a step gains less than this
        share of the objective.
    max_iter : int
        Limit on steps of refinement, and on cutting planes.
    max_memory : float
        Megabytes for kernel values between rows and basis; beyond, they are computed again in every
        pass. Default 2,000. With basis='all', for those among the support vectors; beyond, the fit
        is refused. Default 4,000.
    max_basis : int
        The largest size that n_basis='auto' looks at.
    accuracy_loss : float
        What n_basis='auto' gives up, at most, for a smaller basis.
    validation_fraction : float
        Share of the rows that is held out: to stop refinement, and for the scores in ``path_``.
    warm_start : bool
        Begin with the basis of the last fit; one that is given as an array is taken as it is.
    random_state : int, RandomState or None
        Draws starting points, rows and the split.
    basis : str, Basis or array of shape (m, n_features)
    metric : {'auto', 'learned', 'diagonal'}, array or None
        Of a descent with the rbf kernel: distances are between metric'x and basis vectors. 'auto'
        is 'learned', a full matrix, where there are at most twice as many features as vectors,
        otherwise 'diagonal', a factor for each feature. An array of shape (n_features,) or
        (n_features, q) is taken as it is.
    max_bytes : int
        Of a descent: as many vectors as a model of so many bytes holds, metric included
        (``model_nbytes_``), in place of n_basis; with n_basis='auto', at most.
    solver : CuttingPlane or None
        For a loss that is trained by cutting planes: such with settings of their own
        (:class:`slimsvm.solvers.cutting_plane.CuttingPlane`), which are followed to the letter,
        also for few rows, at the size asked for alone. With ``stop="violation"``, tol is the
        violation of the last cut.
    """

    _measure: ClassVar[Any]  # of scores, targets and weights: accuracy, or R^2
    break_ties = False
    solver: Any = None  # of those that have no such parameter

    # -- training ----------------------------------------------------------------------------------

    def _encoded(self, X: Any, y: Any, weight: Array) -> Data:
        data = super()._encoded(X, y, weight)
        fraction = self.validation_fraction or (AUTO_FRACTION if self.n_basis == "auto" else None)
        held = np.zeros(data.used.size, bool)
        if fraction is not None:
            held = self._held_out(data, fraction)
        data.target = self._targets(data.target, data.classes.size)
        if held.any():
            stays = ~held
            data.about["held_out"] = data.X[held], data.target[held], data.weight[held]
            data.X, data.target = data.X[stays], data.target[stays]
            data.weight, data.used = data.weight[stays], data.used[stays]
            data.sample_weight = data.sample_weight[stays]
        return data

    def _held_out(self, data: Data, fraction: float) -> Array:
        """Of every class, or of all rows, the fraction, but never all of it.

        A search that held rows out before says which these are (``_held_rows``, by their numbers).
        """
        rng, held = check_random_state(self.random_state), np.zeros(data.used.size, bool)
        given = self.__dict__.get("_held_rows")
        groups = [data.target == c for c in range(data.classes.size)] or [~held]
        for group in groups:
            own = np.flatnonzero(group)
            if given is None:
                chosen = rng.permutation(own)[: round(fraction * own.size)]
            else:
                chosen = own[np.isin(data.used[own], given)]
            held[chosen[: own.size - 1]] = True
        return held

    def _prepared(self, data: Data) -> None:
        data.kernel = self._kernel_for(data.X, data.sample_weight)
        data.about["descends"] = Asked.of(self).descends(data.kernel, data.X)
        if not data.about["descends"]:  # it takes rows in coordinates of its own
            super()._prepared(data)

    def _solved(self, data: Data, fit: Fit) -> Result:
        asked, descends = Asked.of(self), bool(data.about["descends"])
        loss = self._loss(descends, data.classes.size)
        data.about["loss"] = loss.name
        scoring = Scoring(self._measure, data.about.get("held_out"), fit.threads)
        warm = self.warm_start and hasattr(self, "basis_coef_")
        last = self._function() if warm else None
        if descends:
            from slimsvm.solvers.sparse_descent import solved_by_descent

            return solved_by_descent(asked, data, loss, fit, scoring=scoring, last=last)
        from slimsvm.oracles import LossOracle
        from slimsvm.solvers.sparse_path import Around, solved_on_a_path

        basis = None
        if last is not None and is_choice(asked.vectors):  # a given one is taken as it is
            shape = (data.X.shape[1], data.target.shape[1])
            basis = last.basis if (last.basis.shape[1], last.coef.shape[1]) == shape else None
        return solved_on_a_path(asked, data, loss, fit, Around(scoring, basis, LossOracle))

    def _solved_on_rows(self, data: Data, fit: Fit) -> Result:
        from slimsvm.far.sparse import solved_on_rows

        return solved_on_rows(self, data, fit)

    def _concluded(self, data: Data, solved: Result, fit: Fit) -> Ending:
        self._forget_stream()
        model, about, asked = solved.model, solved.certificate, Asked.of(self)
        chosen, tol, exact = model.chosen, float(self.tol), asked.all_rows
        self.path_, self.n_iter_, self._row_duals = model.points, solved.n_iter, model.row_duals
        self.loss_ = str(data.about["loss"])
        self._take(chosen, data.kernel)
        # not the scope that the run says: where there was no time to look, it says that of nothing
        certificate = chosen.certificate(tol, about.precision, FULL if exact else SUBSPACE)
        last_cut = self.solver is not None and self.solver.stop == "violation"
        if last_cut:
            about_cuts = {"violation": about.violation, "max_cuts": about.max_cuts}
            certificate = replace(certificate, **about_cuts)
        kinked = data.about["loss"] in KINKED
        unlimited = self.max_iter < 0 and kinked
        ended = "max_iter" if solved.n_iter >= asked.steps and not unlimited else "stalled"
        # a size that was not reached is not what was asked for, whatever the gap there is
        reason = fit.limits.reason() or ("converged" if certificate.holds else ended)
        kept = False
        if data.about["descends"] and not certificate.holds and not fit.limits.reason():
            reason = solved.status.reason
            kept = reason == "converged"
        n, further = chosen.n_basis, ""
        if reason == "converged" and n < model.wanted and not asked.auto:
            further = f"; no more of the {model.wanted} asked for are independent of these"
        words = sentence(
            reason,
            "cut" if last_cut else "gap",
            certificate,
            seconds=fit.limits.seconds,
            max_iter=int(self.max_iter),
            optimum=f"the optimum {'of all functions, with' if exact else 'in the span of'} {n:,} "
            f"basis vector{'s' * (n != 1)}",
            further=further,
        )
        if kept:  # tol is about the finish, which was not taken
            low = max(0.0, certificate.interval[0])
            words = KEPT.format(value=certificate.objective, low=low)
        none = np.empty(0)
        history = {name: solved.history.get(name, none) for name in ("seconds", *HISTORY)}
        return Ending(certificate, Status(reason, words), history)

    # -- streams -----------------------------------------------------------------------------------

    def _partial_fit(
        self, X: Any, y: Any, sample_weight: Any, classes: Any = None, decay: float = 1.0
    ) -> Self:
        from slimsvm.sparse_stream import learned  # here, since most models see no stream

        learned(self, X, y, sample_weight, classes, decay)
        return self
