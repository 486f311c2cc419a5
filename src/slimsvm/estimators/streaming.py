"""partial_fit of the sparse estimators: rows that pass by once.

The solver is :mod:`slimsvm.solvers.stream_descent`; here are calls: what is checked, which classes
there are, and what is set.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from slimsvm.declarations import Attribute, attribute, demand
from slimsvm.ending import REASONS, Ending, Status
from slimsvm.estimators.descending import FORMS, descends, metric_given, refuse_beyond_float32
from slimsvm.kernels import make_kernel
from slimsvm.multiclass import class_factors, sorted_labels
from slimsvm.problems.mapped import Vectors, coordinates_for
from slimsvm.run import Result, run
from slimsvm.solvers.path import PathPoint
from slimsvm.solvers.path_descent import expansion_of
from slimsvm.solvers.stream_descent import (
    ADAM,
    BY_CLASS,
    PLAIN,
    ROWS,
    RowsOfCall,
    StreamDescent,
    StreamState,
    begun,
    from_dict,
    going_on,
    to_dict,
    vectors_of,
    with_classes,
)
from slimsvm.stream import refuse_another_kernel
from slimsvm.training import Data, Fit

Array = NDArray[Any]
LARGEST_SEED = 2**31 - 1


class Streaming:
    """What both sparse estimators do with a stream.

    Attributes
    ----------
    n_seen_
        Rows that ``partial_fit`` has learned from.
    stream_
        All that ``partial_fit`` needs to go on, as plain values: for model files.
    """

    fitted: ClassVar[tuple[Attribute, ...]] = (
        attribute("n_seen_", "count", optional=True),
        attribute("stream_", "stream", optional=True),
    )
    n_seen_: int
    _stream: Any
    _row_duals: Array | None

    def _streamed(self: Any, state: StreamState, data: Data, decay: float = 1.0) -> None:
        """Learn from the rows of a call, which are checked, and be the model then."""
        named = self.kernel != "rbf" or isinstance(self.gamma, str)  # a width that fits the rows
        kernel = None if named else make_kernel("rbf", gamma=self.gamma)
        refuse_beyond_float32(data.X, None if hasattr(self, "scheme") else data.target, kernel)
        with self._fitting() as fit:
            if decay < 1.0:
                for rows in {id(own): own for own in (state.kept, state.recent)}.values():
                    rows.weight = rows.weight * decay
            result = run(
                self._stream_solver(fit.threads),
                RowsOfCall(data.X, data.target, data.weight),
                tol=0.0,
                limits=fit.limits,
                start=state,
                watchers=fit.watchers,
            )
            ending = self._streamed_to(state, result, data.used.size, fit)
        ending.record_on(self)
        self._make_ready()

    def _stream_solver(self: Any, threads: int) -> StreamDescent:
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        metric = self.metric
        return StreamDescent(
            n_vectors=int(self.max_basis if self.n_basis == "auto" else self.n_basis),
            kernel=kernel,
            metric=FORMS[metric] if metric is None or isinstance(metric, str) else None,
            given=metric_given(metric, self.n_features_in_),
            epsilon=float(getattr(self, "epsilon", 0.0)),
            fit_intercept=bool(self.fit_intercept),
            n_threads=threads,
        )

    def _stream_for(self: Any, data: Data, n_outputs: int) -> StreamState:
        """The stream so far, or one that begins: with these rows, or with what ``fit`` has left."""
        known, classes = getattr(self, "_stream", None), hasattr(self, "scheme")
        if isinstance(known, dict):  # from a file
            known = from_dict(known, self.kernel_, self._stream_solver(1))
        if known is not None:
            assert isinstance(known, StreamState)
            return known
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        state = begun(seed, data.X, n_outputs, classes)
        if hasattr(self, "basis_coef_"):
            if not classes:
                state.offset = float(np.mean(data.target)) if self.fit_intercept else 0.0
                state.unit = float(np.std(data.target)) or 1.0
            going_on(self._stream_solver(1), state, self.kernel_, *self._as_vectors(data))
        return state

    def _as_vectors(self: Any, data: Data) -> tuple[Any, Vectors]:
        """The fitted model in inner coordinates."""
        basis, metric = self.basis_, getattr(self, "metric_", None)
        basis = basis.toarray() if sp.issparse(basis) else np.asarray(basis, np.float64)
        given = None if metric is None else metric.astype(np.float64)
        at = coordinates_for(self.kernel_, data.X, given, turns=False)
        own = getattr(self, "widths_", None)
        widths = np.ones(len(basis)) if own is None else own.astype(np.float64)
        if at.mean is not None:
            M = given
            basis = basis - (at.mean if M is None else at.mean * M if M.ndim == 1 else at.mean @ M)
        root = float(np.sqrt(self.kernel_.form()[1])) if np.ndim(at.turn) else float(at.turn)
        coef = np.asarray(self.basis_coef_, np.float64)
        return at, Vectors(basis * root, widths, coef, np.asarray(self.intercept_, np.float64))

    def _streamed_to(self: Any, S: StreamState, result: Result, n: int, fit: Fit) -> Ending:
        """Be the model that the stream has now; how the call ended."""
        assert S.kernel is not None and S.coordinates is not None
        v = vectors_of(S)
        f, metric, widths = expansion_of(v, S.coordinates, S.kernel, S.norm, S.form, False)
        about = result.certificate
        shown = 1.0 - S.wrong if S.watched else float("nan")
        point = PathPoint(
            v.n, f.basis, f.coef, f.intercept, None, S.loss, np.inf, shown, None,
            metric=metric, widths=widths
        )  # fmt: skip
        self.path_, self.n_iter_, self._row_duals = [point], max(1, S.n_steps), None
        self.n_seen_, self._stream = S.n_seen + S.waiting.n, S
        self.loss_ = "squared_epsilon_insensitive"
        if S.classes:
            self.loss_ = "softmax" if S.n_outputs > 2 else "logistic"
        self._take(point, S.kernel)
        reason, begin = result.status.reason, f"All {n:,} rows of this call have passed"
        if reason != "converged":
            begin = REASONS[reason].format(seconds=fit.limits.seconds, max_iter=-1)
            begin += f": {S.at:,} of the {n:,} rows of this call have passed"
        share = f"{100 * S.wrong:.2g} %"
        seen = f"; {share} of the last rows were wrong before they were learned from"
        if not S.classes:
            seen = f"; errors of the last rows, before learning, are {share} of the variance"
        seen = f"; {v.n:,} vectors{seen * (S.watched > 0)}"
        again = f", which began anew {S.n_alarms:,} times" if S.n_alarms else ""
        words = (
            f"{begin}, {self.n_seen_:,} of the stream{again}{seen}. "
            "A stream solves no fixed problem: there is no gap."
        )
        return Ending(about, Status(reason, words), result.history)

    def __getstate__(self) -> dict[str, Any]:
        given: Any = super().__getstate__()
        state = dict(given)
        if "_stream" in state:  # plain values: views of one array would come back as many
            state["_stream"] = self.stream_
        return state

    def _forget_stream(self) -> None:
        """A fit forgets the stream."""
        for name in ("_stream", "n_seen_"):
            self.__dict__.pop(name, None)

    @property
    def stream_(self) -> dict[str, Any]:
        """All that ``partial_fit`` needs to go on, as plain values: for model files."""
        if "_stream" not in self.__dict__:
            raise AttributeError(
                "There is no stream: partial_fit was not called since the last fit."
            )
        return self._stream if isinstance(self._stream, dict) else to_dict(self._stream)

    @stream_.setter
    def stream_(self, values: dict[str, Any]) -> None:
        self._stream = values  # made a stream by the next call


# -- what a call must be ---------------------------------------------------------------------------


def refuse_no_stream(model: Any, X: Any, first: bool) -> None:
    """Raise ValueError for a kernel or a basis that a stream cannot have, or another kernel."""
    asked = make_kernel(model.kernel, gamma=model.gamma, degree=model.degree, coef0=model.coef0)
    if not first:
        refuse_another_kernel(asked, model.kernel_)
    if not descends(model, asked, X):
        raise ValueError(
            "partial_fit is for vectors that are found by descent: basis='auto' or 'descent', the "
            "kernel 'rbf', 'poly' with coef0 >= 0 or 'linear', and a loss with a derivative; got "
            f"basis={model.basis!r}, kernel={model.kernel!r}, loss={model.loss!r}."
        )


def classes_of_call(
    model: Any, y: Any, classes: Any, known: Array | None, weight: Array
) -> tuple[Array, Array]:
    """All classes so far, those of this call among them, and the class number of every row."""
    if isinstance(model.class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs to see all labels, which partial_fit does not. Pass a "
            "dict of class weights."
        )
    found = sorted_labels(np.asarray(y)[weight > 0], "y")[0]
    for more in (known, None if classes is None else sorted_labels(classes, "classes")[0]):
        if more is not None:
            both = np.concatenate([more, found]) if found.size else np.asarray(more)
            found = sorted_labels(both, "y and the classes before")[0]
    label = np.zeros(np.shape(y)[0], int)
    label[weight > 0] = np.searchsorted(found, np.asarray(y)[weight > 0])
    return found, label


def factors_of(model: Any, classes: Array) -> Array:
    """Factors of the classes so far."""
    if classes.size < 2:
        return np.ones(classes.size)
    given = model.class_weight
    if isinstance(given, dict):  # of classes that come later, too
        given = {label: given[label] for label in classes.tolist() if label in given}
    return class_factors(given, classes=classes, y=classes)


def widened(state: Any, known: Array, classes: Array) -> None:
    """Tell a stream that there are more classes."""
    if isinstance(state, StreamState) and classes.size > known.size:
        with_classes(state, np.searchsorted(classes, known), classes.size)


def check_values(values: Any, n_features: int, n_outputs: int) -> None:
    """Raise ValueError unless it is what :func:`to_dict` writes."""
    shapes = {f"{name}_{x}" for name in ROWS for x in ("X", "target", "weight")}
    always = {*PLAIN, *BY_CLASS, *shapes, "form"}
    model = {*ADAM, "average", "t", "k", "d", "mean", "turn", "metric"}
    demand(set(values) in (always, always | model), "stream_ has not the entries of a stream")
    counts = ("seed", "n_outputs", *(name for name in PLAIN if name.startswith("n_")))
    right = all(isinstance(values[name], int) and values[name] >= 0 for name in counts)
    demand(right, "a count of stream_ is not one")
    demand(values["n_outputs"] == n_outputs, f"stream_ has not {n_outputs} outputs")
    for name in BY_CLASS:
        right = isinstance(values[name], np.ndarray) and values[name].shape == (n_outputs,)
        demand(right, f"{name} of stream_ has not {n_outputs} values")
    for name in ROWS:
        width = values["d"] if values["inner"] and name != "waiting" else n_features
        X, target, weight = (values[f"{name}_{x}"] for x in ("X", "target", "weight"))
        right = X.ndim == 2 and X.shape == (np.size(target), width) and target.ndim == 1
        right = right and np.shape(weight) == target.shape
        if values["classes"]:
            right = right and target.dtype.kind == "i"
            right = right and not (
                target.size and not 0 <= target.min() <= target.max() < n_outputs
            )
        demand(right, f"the rows {name} of stream_ are not what they should be")
    demand(values["n_kept"] == len(values["kept_target"]), "n_kept of stream_ is wrong")
    form = values["form"]
    right = len(form) == 4 and all(isinstance(v, int | float) for v in form)
    demand(right, "the form of stream_ is not that of a kernel")
    if "flat" not in values:
        demand(False, "stream_ has no model")
        return
    k, d, c = values["k"], values["d"], n_outputs
    right = (
        isinstance(k, int) and isinstance(d, int) and values["metric"] in ("full", "diagonal", None)
    )
    demand(right, "the sizes of stream_ are none")
    size = k * d + k + k * c + c + d + d * d * (values["metric"] == "full")
    for name in (*ADAM, "average"):
        array = values[name]
        right = (
            isinstance(array, np.ndarray) and array.shape == (size,) and array.dtype == np.float32
        )
        demand(right, f"{name} of stream_ has not {size} values")
    turn, mean = values["turn"], values["mean"]
    turned = d if np.ndim(turn) == 0 else np.shape(turn)[-1]
    right = turned == d and (np.ndim(turn) == 0 or np.shape(turn)[0] == n_features)
    right = right and (mean is None or np.shape(mean) == (n_features,))
    demand(right, "the coordinates of stream_ do not fit to its features")
