"""How a fit ended: a certificate, a reason, and one sentence for each reason and measure.

What ``tol`` is about differs from solver to solver (the measure), and so does why it ended (the
reason). Every sentence says first how far the model is from the optimum, as a share of it: that
means the same for all of them.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
LOG = logging.getLogger("slimsvm")
# what a certificate is about
FULL, SUBSPACE, SAMPLED = "full", "subspace", "sampled"
DISTANCE, STREAM = "distance", "stream"
ROUNDING = 1e-14  # relative gap below which nothing is said but that
LOOSE = 0.5  # relative gap from which on a share of the objective says nothing of the optimum
OURS = ("slimsvm", "sklearn", "joblib")  # packages that a warning does not point at


@dataclass(frozen=True)
class Certificate:
    """How far from the optimum a model is, and of which problem.

    Attributes
    ----------
    scope : str
        "full": of the exact solution; "subspace": of the best one within the span of the basis
        (where vectors depend on one another up to rounding errors, coefficients have a price: what
        their kernel matrix has on its diagonal is 1e-10 more, in float32 1e-6), or over the rows
        that the method has kept; "sampled": of the exact solution, from sampled cuts,
        which are no bound (``gap`` is infinite; ``certify`` finds one);
        "distance": of the model that this one was compressed from without data: ``objective`` and
        ``gap`` are then the squared distance to it in feature space, ``violation`` is the distance
        as a share of its norm, and ``tol`` is 0; "stream": of nothing, since rows that pass by are
        no fixed problem: ``objective`` and ``violation`` are the mean loss and the share of errors
        (of a regression: of the variance) of about the last 2,000 rows, each predicted before it
        was learned from, ``gap`` is infinite and ``tol`` 0.
    objective : float
        Value of the problem that was minimised; the dual one, where the solver's is that (SVC and
        its kin).
    violation : float
        Largest violation of the KKT conditions, or the relative duality gap: what ``tol`` is about.
    gap : float
        Duality gap: the objective is at most so far above its optimum. It includes ``rounding``;
        infinite where nothing is known.
    tol : float
        The violation that was asked for.
    precision : str
        Type of the kernel values that this statement rests on.
    projection_error : float or None
        Of cutting planes in a subspace: how much of a cut at most lies outside of the span, delta
        in Joachims & Yu (2009). Exact up to 1,024 rows, beyond by blocks of so many, whose norms
        are added.
    bound : float or None
        Of a model in a subspace: the objective is at most so far from that of the exact solution
        with the same loss.
    max_cuts : float or None
        Of cutting planes as published, without a line search: the number of cuts after which they
        end at the latest (sampled ones: Yu & Joachims 2008; in a subspace, with the hinge loss and
        no intercept: Joachims & Yu 2009, theorem 1, for each class).
    risk_bound : float or None
        Of sampled ones: with probability ``confidence`` the objective is at most so far above its
        optimum. A worst case; where it is larger than the objective it says nothing.
    confidence : float or None
        Of ``risk_bound``.
    rounding : float
        About how much the rounding of kernel values to ``precision`` may have changed the
        objective.
    estimated : bool
        Whether ``objective`` is an estimate from a few samples: sampled cuts in constant time.
    """

    scope: str
    objective: float
    violation: float
    gap: float
    tol: float
    precision: str
    projection_error: float | None = None
    bound: float | None = None
    max_cuts: float | None = None
    risk_bound: float | None = None
    confidence: float | None = None
    rounding: float = 0.0
    estimated: bool = False

    def __post_init__(self) -> None:
        for name in ("violation", "gap"):  # of sums beyond the range of float64, nothing is known
            if np.isnan(getattr(self, name)):
                object.__setattr__(self, name, np.inf)
        if np.isnan(self.objective):  # how far a value is that is not known, says nothing
            object.__setattr__(self, "bound", None)

    @property
    def holds(self) -> bool:
        """Whether the tolerance was reached."""
        return self.violation <= self.tol

    @property
    def interval(self) -> tuple[float, float]:
        """Where the optimum is, of the problem that ``scope`` names.

        From ``objective - gap`` to ``objective + rounding``.
        """
        if np.isnan(self.objective):  # there was no time to compute it
            return -np.inf, np.inf
        known = not self.estimated and self.scope != STREAM
        above = self.objective + self.rounding if known else np.inf
        return self.objective - self.gap, float(above)

    def rounded(self, rounding: float) -> Certificate:
        """With what rounding errors may have changed: a part of the gap."""
        more = float(rounding)  # of NumPy, model files would bring back another type
        return replace(self, gap=float(self.gap) + more, rounding=self.rounding + more)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective; not a number where there is no such share."""
        size = abs(self.objective)
        if self.gap == 0.0:
            return 0.0
        return self.gap / size if size > 0.0 and np.isfinite(self.gap) else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dict(vars(self))  # plain values; asdict would copy deeply, once for every pair


@dataclass(frozen=True)
class Status:
    """Why a fit ended: a short reason, and a sentence."""

    reason: str  # one of REASONS, or "loaded", "trained"
    sentence: str = ""

    def __str__(self) -> str:
        return self.sentence or self.reason

    @property
    def converged(self) -> bool:
        """Whether what was asked for was reached."""
        return self.reason == "converged"


# reason -> how the sentence begins
REASONS = {
    "converged": "Converged",
    "max_iter": "Stopped at max_iter={max_iter} before the tolerance was reached",
    "max_time": "Stopped at max_time after {seconds:.1f} s",
    "max_memory": "Stopped at max_memory",
    "max_draws": "Stopped because no sample was violated as all examples together are",
    "interrupted": "Interrupted after {seconds:.1f} s",
    "stopped": "Stopped by a callback after {seconds:.1f} s",
    "stalled": "Stopped because rounding errors hide any further progress",
}
# what tol is about -> what is said of it
MEASURES = {
    "kkt": "the largest violation of a KKT condition is {violation:.2g}, with tol={tol:g}",
    "gap": "the relative duality gap is {violation:.2g}, with tol={tol:g}",
    "gradient": "the norm of the gradient is {violation:.2g}, with tol={tol:g}",
    "ball": "the farthest point lies outside of the ball by {violation:.2g} of its radius, "
    "with eps={tol:g}",
    "cut": "the last cut is violated by {violation:.2g} of the mean loss, with tol={tol:g}",
}
ADVICE = {"stalled": " Scale the features, or use a smaller C."}


def sentence(
    reason: str,
    measure: str,
    certificate: Certificate,
    *,
    seconds: float = 0.0,
    max_iter: int = -1,
    optimum: str = "the optimum",
    n_parts: int = 1,
    begins: Mapping[str, str] = REASONS,
    further: str = "",
) -> str:
    """What is said of an ending.

    Parameters
    ----------
    reason, measure : str
        Keys of REASONS and MEASURES.
    certificate : Certificate
        With the tolerance that was asked for.
    seconds, max_iter : numbers
        What has passed, and the limit.
    optimum : str
        Whose optimum the certificate is about.
    n_parts : int
        Pairs of classes of which the certificate is the sum.
    begins : mapping
        How the sentence begins for a reason, where that differs from REASONS.
    further : str
        What else is to be said, at the end.

    Examples
    --------
    >>> sentence("converged", "gap", Certificate("full", 2.0, 1e-4, 2e-4, 1e-3, "float64"))
    'Converged: within 0.01 % of the optimum; the relative duality gap is 0.0001, with tol=0.001.'
    """
    begin = {**REASONS, **begins}[reason].format(seconds=seconds, max_iter=max_iter)
    share = certificate.relative_gap
    near = f"within {percent(share)} of {optimum}"
    if certificate.gap - certificate.rounding <= ROUNDING * abs(certificate.objective):
        near = f"at {optimum}, up to rounding errors"
    elif certificate.rounding > 0.5 * certificate.gap:  # the bound is, not the point
        near += f", mostly a bound on rounding errors in {certificate.precision}"
    if share >= LOOSE and (reason == "converged" or share > 1.0):
        if reason == "converged":  # of the measure, not of the value
            asked = "eps" if measure == "ball" else "tol"
            begin += f" in what {asked} is about" if begin == REASONS["converged"] else ""
        low, high = certificate.interval
        near = f"{optimum} is only known to be between {low:.3g} and {high:.3g}"
    if not np.isfinite(share):
        near = f"how far from {optimum} is not known"
    about = MEASURES[measure].format(**certificate.to_dict())
    about = about.replace(" inf,", " not known,")
    worst = f"in the worst of {n_parts:,} pairs of classes " if n_parts > 1 else ""
    return f"{begin}: {near}; {worst}{about}{further}.{ADVICE.get(reason, '')}"


def percent(share: float) -> str:
    """A share in percent, in few digits.

    Examples
    --------
    >>> percent(0.000123), percent(0.997), percent(12.3)
    ('0.012 %', '99.7 %', '1,230 %')
    """
    if share < 0.99:  # two digits would make 100 of more
        return f"{100.0 * share:.2g} %"
    return f"{100.0 * share:.3g} %" if share < 1.0 else f"{100.0 * share:,.0f} %"


@dataclass(frozen=True, eq=False, repr=False)
class Ending:
    """What every estimator says of its fit."""

    certificate: Certificate
    status: Status
    history: dict[str, Array]

    @classmethod
    def of(
        cls, results: list[Any], measure: str, *, tol: float | None = None, **about: Any
    ) -> Ending:
        """The ending of a fit that solved one problem, or several: the pairs of classes.

        Objectives and gaps are added up, and the worst result speaks for all.

        Parameters
        ----------
        results : list of Result
            Of :func:`slimsvm.run.run`.
        measure : str
            What ``tol`` is about, one of MEASURES.
        tol : float, optional
            What was asked for, if solvers were asked for more.
        **about
            Passed on to :func:`sentence`.
        """
        certificate = merged([result.certificate for result in results])
        certificate = certificate if tol is None else replace(certificate, tol=tol)
        reason = worst(results).status.reason
        about = {"n_parts": len(results), **about}
        words = sentence(reason, measure, certificate, **about)
        return cls(certificate, Status(reason, words), joined([r.history for r in results]))

    def record_on(self, estimator: Any) -> None:
        """Set what every estimator says of its fit; warn unless it converged."""
        estimator.certificate_, estimator.status_ = self.certificate, self.status
        estimator.history_, estimator.fit_status_ = self.history, int(not self.status.converged)
        LOG.debug("%s: %s", type(estimator).__name__, self.status)
        if not self.status.converged:
            warn(str(self.status))


def worst(results: list[Any]) -> Any:
    """The result that speaks for all: the worst of those that did not converge, or of all."""
    return max(results, key=lambda r: (not r.status.converged, r.certificate.violation))


def merged(certificates: list[Certificate]) -> Certificate:
    """One certificate for several independent problems: sums, and the largest violation."""
    if len(certificates) == 1:
        return certificates[0]
    exact = all(certificate.precision == "float64" for certificate in certificates)
    scopes = [certificate.scope for certificate in certificates]
    return Certificate(
        next((scope for scope in scopes if scope != FULL), FULL),
        float(sum(certificate.objective for certificate in certificates)),
        max(certificate.violation for certificate in certificates),
        float(sum(certificate.gap for certificate in certificates)),
        certificates[0].tol,
        "float64" if exact else "float32",
        rounding=float(sum(certificate.rounding for certificate in certificates)),
    )


def joined(histories: list[dict[str, Array]]) -> dict[str, Array]:
    """The histories of several problems, one after the other; "problem" says which is which."""
    if len(histories) == 1:
        return histories[0]
    # what all of them have: some solvers say more
    names = [name for name in histories[-1] if all(name in history for history in histories)]
    whole = {name: np.concatenate([h[name] for h in histories]) for name in names}
    sizes = [history["seconds"].size for history in histories]
    numbers = [np.full(size, at) for at, size in enumerate(sizes)]
    # some of them may be many problems, and say themselves which
    whole["problem"] = np.concatenate(
        [h.get("problem", own) for h, own in zip(histories, numbers, strict=True)]
    )
    return whole


def warn(message: str, category: type[Warning] | None = None) -> None:
    """Warn at the line of the user's program that called us, through however many of our calls.

    Without a category as scikit-learn's ConvergenceWarning.
    """
    if category is None:
        from sklearn.exceptions import ConvergenceWarning

        category = ConvergenceWarning
    frame: Any = sys._getframe(1)
    level = 2  # who called this function
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
