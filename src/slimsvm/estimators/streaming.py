"""partial_fit of the sparse estimators: rows that pass by once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slimsvm.declarations import Attribute, attribute
from slimsvm.run import run
from slimsvm.solvers.sparse_asked import Asked
from slimsvm.solvers.sparse_descent import (
    FORMS,
    inner_vectors,
    metric_given,
    refuse_beyond_float32,
)
from slimsvm.solvers.stream_descent import (
    RowsOfCall,
    StreamDescent,
    StreamState,
    begun,
    from_dict,
    going_on,
)
from slimsvm.sparse_stream import ending_of, loss_of, point_of, refuse_no_stream
from slimsvm.stream import refuse_another_kernel
from slimsvm.training import Data

Array = NDArray[Any]


class KeptStream:
    """A stream that model files hold.

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
    _stream: Any  # plain values after a model file was read, until the next call

    @property
    def stream_(self) -> dict[str, Any]:
        """All that ``partial_fit`` needs to go on, as plain values: for model files."""
        if "_stream" not in self.__dict__:
            raise AttributeError(
                "There is no stream: partial_fit was not called since the last fit."
            )
        return self._stream if isinstance(self._stream, dict) else self._stream.to_dict()

    @stream_.setter
    def stream_(self, values: dict[str, Any]) -> None:
        self._stream = values

    def _forget_stream(self) -> None:
        """A fit forgets the stream."""
        for name in ("_stream", "n_seen_"):
            self.__dict__.pop(name, None)


class Streaming(KeptStream):
    """What both sparse estimators do with a stream."""

    _row_duals: Array | None

    def _batch(self, X: Any, y: Any, weight: Array, classes: Any) -> Data:
        """The rows of a call that have weight; ``classes`` are labels that will come."""
        raise NotImplementedError

    def _partial_fit(
        self: Any, X: Any, y: Any, sample_weight: Any, classes: Any = None, decay: float = 1.0
    ) -> Any:
        """Learn from the rows of a call; those before weigh ``decay`` of what they did."""
        first = not hasattr(self, "basis_coef_")
        with self._unchanged_on_failure():
            X, y, weight = self._checked(X, y, sample_weight, reset=first)
            if not first:
                refuse_another_kernel(self._named_kernel(), self.kernel_)
            refuse_no_stream(Asked.of(self), self._named_kernel(), X)
            data = self._batch(X, y, weight, classes)
            if first and not data.used.size:
                raise ValueError("All rows of the first call have weight zero; give some weight.")
            named = self.kernel != "rbf" or isinstance(self.gamma, str)  # its width fits the rows
            kernel = None if named else self._named_kernel()
            refuse_beyond_float32(data.X, None if data.classes.size else data.target, kernel)
            state = self._stream_for(data)
            if data.classes.size:
                state.widen(getattr(self, "classes_", data.classes), data.classes)
                self.classes_, self.class_weight_ = data.classes, data.factors
            self._streamed(state, data, decay)
        return self

    def _streamed(self: Any, state: StreamState, data: Data, decay: float) -> None:
        """Learn from rows that are checked, and be the model then."""
        with self._fitting() as fit:
            state.decay(decay)
            result = run(
                self._stream_solver(fit.threads),
                RowsOfCall(data.X, data.target, data.weight),
                tol=0.0,
                limits=fit.limits,
                start=state,
                watchers=fit.watchers,
            )
            point = point_of(state)
            self.path_, self.n_iter_, self._row_duals = [point], max(1, state.n_steps), None
            self.n_seen_, self._stream = state.n_seen + state.waiting.n, state
            self.loss_ = loss_of(state)
            self._take(point, state.kernel)
            ending = ending_of(state, result, point.n_basis, data.used.size, fit.limits)
        ending.record_on(self)
        self._make_ready()

    def _stream_solver(self: Any, threads: int) -> StreamDescent:
        metric, asked = self.metric, Asked.of(self)
        return StreamDescent(
            n_vectors=asked.wanted,
            kernel=self._named_kernel(),
            metric=FORMS[metric] if metric is None or isinstance(metric, str) else None,
            given=metric_given(metric, self.n_features_in_),
            epsilon=float(getattr(self, "epsilon", 0.0)),
            fit_intercept=bool(self.fit_intercept),
            n_threads=threads,
        )

    def _stream_for(self: Any, data: Data) -> StreamState:
        """The stream so far, or one that begins: with these rows, or with what ``fit`` has left."""
        known, classes = getattr(self, "_stream", None), hasattr(self, "scheme")
        if isinstance(known, dict):  # from a file
            known = from_dict(known, self.kernel_, self._stream_solver(1))
        if known is not None:
            assert isinstance(known, StreamState)
            return known
        n_outputs = len(getattr(self, "classes_", data.classes)) if classes else 1
        state = begun(Asked.of(self).seed(), data.X, n_outputs, classes)
        if hasattr(self, "basis_coef_"):
            if not classes:
                state.offset = float(np.mean(data.target)) if self.fit_intercept else 0.0
                state.unit = float(np.std(data.target)) or 1.0
            vectors, at = inner_vectors(self._function(), self.kernel_, data.X)
            going_on(self._stream_solver(1), state, self.kernel_, at, vectors)
        return state

    def __getstate__(self) -> dict[str, Any]:
        given: Any = super().__getstate__()
        state = dict(given)
        if "_stream" in state:  # plain values: views of one array would come back as many
            state["_stream"] = self.stream_
        return state
