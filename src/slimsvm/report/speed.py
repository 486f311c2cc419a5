"""How long a prediction takes: measured, not estimated."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.export.description import described
from slimsvm.export.numbers import CODE_BYTES, numbers_of
from slimsvm.oracles import Chain

BATCH = 10_000  # rows; more gain nothing
MAX_VALUES = 1 << 25  # of one batch of dense rows: 256 MB
MAX_SECONDS = 1.0  # of one measurement; slow models get smaller batches
REPEATS = 3
ONE_ROW_SECONDS = 0.05  # of all calls with one row


def seconds_per_row(estimator: Any, n_jobs: int | None = None) -> tuple[float, int]:
    """Seconds that ``predict`` takes for one of many rows, and how many rows were measured.

    It is the best of three measurements. The rows are drawn from the vectors of the model, so that
    sparse ones are as sparse as real rows; checks of the input are part of the time.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.report.speed import seconds_per_row
    >>> seconds, n_rows = seconds_per_row(SVC().fit([[0.0], [1.0]], [0, 1]))
    >>> 0 < seconds < 1, n_rows
    (True, 10000)
    """
    before = estimator.get_params(deep=False)["n_jobs"]
    estimator.set_params(n_jobs=n_jobs)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            rows = random_rows(estimator, BATCH)
            first = _measured(estimator, rows[:100])  # the first call compiles
            first = min(first, _measured(estimator, rows[:100]))
            n = int(
                np.clip(
                    MAX_SECONDS / max(first, 1e-9) * 100, min(100, rows.shape[0]), rows.shape[0]
                )
            )
            return min(_measured(estimator, rows[:n]) for _ in range(REPEATS)) / n, n
    finally:
        estimator.set_params(n_jobs=before)


def seconds_of_one_row(estimator: Any) -> float:
    """Seconds of ``predict`` for one row alone: the median of many calls.

    Examples
    --------
    >>> from slimsvm import SVC
    >>> from slimsvm.report.speed import seconds_of_one_row
    >>> 0 < seconds_of_one_row(SVC().fit([[0.0], [1.0]], [0, 1])) < 1
    True
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        row = random_rows(estimator, 1)
        first = min(_measured(estimator, row), _measured(estimator, row))
        n_calls = int(np.clip(ONE_ROW_SECONDS / max(first, 1e-9), 5, 200))
        return float(np.median([_measured(estimator, row) for _ in range(n_calls)]))


def measured(estimator: Any, n_jobs: int | None = None) -> dict[str, Any]:
    """What a prediction takes: microseconds here, bytes and multiplications elsewhere.

    The latter are left out for models that have no export.
    """
    seconds, n_rows = seconds_per_row(estimator, n_jobs)
    facts: dict[str, Any] = {
        "rows_measured": n_rows,
        "microseconds_per_row": 1e6 * seconds,
        "microseconds_one_row": 1e6 * seconds_of_one_row(estimator),
    }
    try:
        d = described(estimator)
        sizes = {form: numbers_of(d, form).nbytes + CODE_BYTES for form in ("float32", "int8")}
    except ValueError:
        return facts
    return {**facts, "multiplications_per_row": d.n_multiplications, "c_bytes": sizes}


def random_rows(estimator: Any, n_rows: int) -> Any:
    """Rows like those that the model may get; fewer if they would take too much memory."""
    rng = np.random.default_rng(0)
    n_features = int(estimator.n_features_in_)
    first = getattr(estimator, "estimators_", [estimator])[0]  # of a CrossTraining
    vectors = getattr(first, "basis_", getattr(first, "support_vectors_", None))
    if not sp.issparse(vectors):
        n_rows = max(1, min(n_rows, MAX_VALUES // max(1, n_features)))
    # linear weights, a constant, kernel values
    if vectors is None or vectors.shape[0] == 0 or vectors.shape[1] != n_features:
        return rng.standard_normal((n_rows, n_features))
    return vectors[rng.integers(vectors.shape[0], size=n_rows)]


def of_sequences(estimator: Any) -> bool:
    """Whether an estimator takes lists of sequences, not rows."""
    return isinstance(getattr(estimator, "oracle_", None), Chain)


def _measured(estimator: Any, rows: Any) -> float:
    given = [rows] if of_sequences(estimator) else rows  # one long sequence
    begin = time.perf_counter()
    estimator.predict(given)
    return time.perf_counter() - begin
