"""Rows that were opened: what every reader has, and the rows that estimators take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.rows import BlockedRows

Array = NDArray[Any]
Piece = tuple[Any, Array | None, Array | None]
BLOCK_VALUES = 1 << 22  # of a block by default: 32 megabytes of float64
FEWEST, MOST = 256, 1 << 18  # rows of a block by default


class Reader(Protocol):
    """What knows a format."""

    n_rows: int
    n_features: int
    names: list[str] | None  # of the features
    edges: list[int] | None  # of the batches as they come, if they mean something
    labelled: bool
    kind: str  # for messages: "3 Parquet files"

    def read(self, first: int, last: int) -> Piece:
        """X, y and weight of consecutive rows."""

    def place(self, row: int) -> str:
        """Where a row is, for messages: "data/a.parquet, row 17"."""


def rows_of_batch(reader: Any, batch_rows: int | None) -> list[int]:
    """Edges of the blocks."""
    if batch_rows is None:
        if reader.edges is not None:
            return list(reader.edges)
        most = max(FEWEST, min(MOST, BLOCK_VALUES // max(1, reader.n_features)))
        batch_rows = 1 << (most.bit_length() - 1)
    elif not isinstance(batch_rows, Integral) or isinstance(batch_rows, bool) or batch_rows < 1:
        raise ValueError(f"batch_rows={batch_rows!r} is not a number of rows, 1 or more.")
    return [*range(0, reader.n_rows, int(batch_rows)), reader.n_rows]


def refuse_twice(target: Any, weight: Any, features: list[Any]) -> None:
    """Raise ValueError if a column is to be two things: a model would see what it is to say."""
    if target is not None and weight is not None and target == weight:
        raise ValueError(f"The column {target!r} cannot be both the target and the weight.")
    for what, of in (("target", target), ("weight", weight)):
        if of is not None and of in features:
            raise ValueError(
                f"The column {of!r} is the {what}, and cannot be a feature, too: leave it out of "
                "features."
            )


class OpenedRows(BlockedRows):
    """Rows of files, arrays or batches, for ``fit``, ``predict`` and ``score``.

    Made by :func:`slimsvm.open_rows`.

    Attributes
    ----------
    n, n_features : int
        Number of rows, and of features.
    names : list of str or None
        Of the features, where the source has names.
    transformer : estimator or None
        What :meth:`transformed` applies.
    bytes_to_read : int
        What the format itself needs while rows are read, beside two blocks.
    """

    def __init__(
        self, reader: Any, edges: list[int], transformer: Any = None, n_features: int | None = None
    ) -> None:
        if reader.n_rows == 0:
            raise ValueError(f"There are no rows in {reader.kind}.")
        self.reader, self.transformer = reader, transformer
        self.names: list[str] | None = reader.names
        self.n_features_in = reader.n_features
        self.shown: Callable[[int], None] | None = None  # told of each block that is read
        width = reader.n_features if n_features is None else n_features
        self.bytes_to_read: int = getattr(reader, "bytes_to_read", 0)
        super().__init__(self._checked, edges, width, ahead=True)

    def __repr__(self) -> str:
        after = "" if self.transformer is None else f", after {self.transformer!r}"
        return (
            f"OpenedRows({self.n:,} rows of {self.n_features_in:,} features in {self.n_blocks} "
            f"block{'s' * (self.n_blocks != 1)}, from {self.reader.kind}{after})"
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        raise TypeError(
            "These rows are not in memory, and no array: fit, predict and score of slimsvm's "
            "estimators take them. Scale them by rows.transformed(StandardScaler()), not in a "
            "Pipeline; search for parameters on some of them (rows.take(numbers).X and .y)."
        )

    @property
    def labelled(self) -> bool:
        """Whether there are targets."""
        return bool(self.reader.labelled)

    def _checked(self, k: int) -> Piece:
        """A block as it is read: finite, and transformed."""
        first, last = int(self.edges[k]), int(self.edges[k + 1])
        X, y, weight = self.reader.read(first, last)
        self._refuse_not_finite(first, X, y, weight)
        if self.shown is not None:
            self.shown(k)
        if self.transformer is not None:
            X = applied(self.transformer, X, self.names)
            refuse_transformed(self.transformer, X, last - first, self.reader.place, first)
        return X, y, weight

    def _refuse_not_finite(self, first: int, X: Any, y: Any, weight: Any) -> None:
        values = X.data if sp.issparse(X) else X
        if not _all_finite(values):
            dense = sp.csr_matrix(X) if sp.issparse(X) else X
            row, column = _first_not_finite(dense)
            name = f"{self.names[column]!r}" if self.names is not None else f"{column}"
            self._refuse(first + row, f"column {name}", dense[row, column])
        for what, of in (("the target", y), ("the weight", weight)):
            if of is not None and of.dtype.kind == "f" and not _all_finite(of):
                row = int(np.flatnonzero(~np.isfinite(of))[0])
                self._refuse(first + row, what, of[row])
        if weight is not None and weight.size and weight.min() < 0:
            row = int(np.argmin(weight))
            raise ValueError(
                f"{self.reader.place(first + row)}: the weight is {weight[row]:g}, and weights "
                "must not be negative."
            )

    def _refuse(self, row: int, what: str, value: Any) -> None:
        kind = "missing (NaN)" if np.isnan(value) else "infinity"
        raise ValueError(
            f"{self.reader.place(row)}: {what} is {kind}. Input contains NaN or infinity, which "
            "SVMs cannot use; fill or drop such rows first."
        )

    def transformed(self, transformer: Any) -> OpenedRows:
        """The same rows after a scikit-learn transformer, block by block as they are read.

        A model that is fitted on them keeps the transformer, and applies it to new rows.

        Parameters
        ----------
        transformer : transformer of scikit-learn
            Fitted; or not, with ``partial_fit``: then it is fitted here, in one pass.

        Returns
        -------
        OpenedRows

        Examples
        --------
        >>> import numpy as np
        >>> import slimsvm
        >>> from sklearn.preprocessing import StandardScaler
        >>> X = np.arange(6.0).reshape(3, 2)
        >>> rows = slimsvm.open_rows(X, target=np.array([0, 1, 1])).transformed(StandardScaler())
        >>> rows.take(np.array([1])).X
        array([[0., 0.]])
        """
        fitted = fitted_on(transformer, self._blocks_to_learn_from)
        before = self.transformer
        if before is not None:
            from sklearn.pipeline import make_pipeline

            fitted = make_pipeline(before, fitted)
        some = self.reader.read(0, 1)[0]
        width = int(applied(fitted, some, self.names).shape[1])
        return OpenedRows(self.reader, list(self.edges), fitted, width)

    def _blocks_to_learn_from(self, learn: Callable[[Any, Any, Any], Any], state: Any) -> Any:
        for k in range(self.n_blocks):
            block = self._block(k)
            state = learn(state, block.X, block.weight)
        return state


def applied(transformer: Any, X: Any, names: list[str] | None = None) -> Any:
    """Transformed rows: an array of float32 or float64, or CSR."""
    if names is not None and hasattr(transformer, "feature_names_in_"):
        import pandas

        X = pandas.DataFrame(X, columns=names)
    out = transformer.transform(X)
    if sp.issparse(out):
        return out.tocsr()
    out = np.asarray(out)
    return out if out.dtype in (np.float32, np.float64) else out.astype(np.float64)


def refuse_transformed(
    transformer: Any, X: Any, n: int, place: Callable[[int], str], first: int
) -> None:
    """Raise ValueError unless the transformer has made a finite row of each row."""
    if X.shape[0] != n:
        raise ValueError(
            f"{transformer!r} has made {X.shape[0]:,} rows of {n:,}; it must keep all, as they are "
            "in a Pipeline."
        )
    values = X.data if sp.issparse(X) else X
    if not _all_finite(values):
        row, column = _first_not_finite(sp.csr_matrix(X) if sp.issparse(X) else X)
        raise ValueError(
            f"{place(first + row)}: {transformer!r} makes NaN or infinity of it (in column "
            f"{column}), which SVMs cannot use."
        )


def fitted_on(transformer: Any, each_block: Callable[..., Any]) -> Any:
    """The transformer, fitted: as it is, or by ``partial_fit`` of all blocks of rows."""
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not hasattr(transformer, "transform"):
        raise ValueError(f"{transformer!r} is not a transformer: it has no method transform.")
    try:
        check_is_fitted(transformer)
        return transformer
    except NotFittedError:
        pass
    if not hasattr(transformer, "partial_fit"):
        raise ValueError(
            f"{transformer!r} is not fitted and has no partial_fit, so it cannot be fitted block "
            "by block. Fit it on some rows first (rows.take(...).X), and pass it fitted."
        )
    return each_block(learn_from, clone(transformer))


def learn_from(transformer: Any, X: Any, weight: Array | None) -> Any:
    """The transformer after one more block."""
    if weight is not None and not weight.all():
        X = X[np.flatnonzero(weight)]
    return transformer.partial_fit(X) if X.shape[0] else transformer


def _all_finite(values: Array) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def _first_not_finite(X: Any) -> tuple[int, int]:
    for row in range(X.shape[0]):
        x = X[[row]].toarray()[0] if sp.issparse(X) else X[row]
        if not np.isfinite(x).all():
            return row, int(np.flatnonzero(~np.isfinite(x))[0])
    raise AssertionError("all values are finite")


class Consecutive:
    """Consecutive rows out of pieces that come one after the other.

    Rows that follow those read last come from the piece that is still held; for others the source
    is gone through again, from a piece that it can begin with.

    Parameters
    ----------
    begin : callable
        begin(row) -> iterator of (number of the first row, piece), at or before that row.
    cut : callable
        cut(piece, first, last) -> that part of the piece.
    size : callable
        Number of rows of a piece.
    jump : int or None
        So many rows ahead, beginning anew is quicker than going on; None: never.
    n : int or None
        Number of rows: with the last one, what was open for the pass is let go.
    """

    def __init__(
        self,
        begin: Callable[[int], Iterator[tuple[int, Any]]],
        cut: Callable[[Any, int, int], Any],
        size: Callable[[Any], int],
        jump: int | None = None,
        n: int | None = None,
    ) -> None:
        self.begin, self.cut, self.size, self.jump, self.n = begin, cut, size, jump, n
        self._coming: Iterator[tuple[int, Any]] | None = None
        self._held: tuple[int, Any] | None = None
        self._at = 0

    def read(self, first: int, last: int) -> list[Any]:
        """The pieces of rows first to last."""
        far = self.jump is not None and first - self._at > self.jump
        if self._coming is None or first < self._at or far:
            self._coming, self._held = self.begin(first), None
        found, self._at = [], first
        try:
            while self._at < last:
                if self._held is None:
                    self._held = next(self._coming)
                start, piece = self._held
                end = start + self.size(piece)
                if end > self._at:
                    upto = min(last, end)
                    found.append(self.cut(piece, self._at - start, upto - start))
                    self._at = upto
                if end <= self._at:
                    self._held = None
        except StopIteration:
            self._coming = None
            raise ValueError(
                f"The rows end after {self._at:,}, but there were {last:,} or more when they were "
                "opened."
            ) from None
        except BaseException:
            self._coming = None
            raise
        if last == self.n:
            self._coming, self._held = None, None
        return found
