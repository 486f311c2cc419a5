"""Where the data lives: rows in blocks with fixed edges, and the passes over them.

Whatever touches all rows is a *task* that a :class:`Rows` calls for every block: a function of a
module, or a frozen dataclass, that takes the block and a small state (a basis, coefficients) and
returns something small. Tasks and their state can be sent to where a block is; the rows stay there.
Parts are combined in a tree whose shape follows from the number of blocks alone, so that equal
edges give equal bits wherever the blocks are.

There are two levels. A *block* is where data lives: everything in memory, a batch of a file, a
partition. Within a block a task cuts chunks that suit the cache and works on them with the threads
of the block. Rows in memory are one block.

What a task will want again (kernel values, scores) it leaves in ``block.kept``, together with what
says of which state it is. It may be gone at the next task, and is made again then, with the same
bits. See :class:`slimsvm.problems.span.Span`.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any, ClassVar, Protocol
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.threads import undisturbed

Array = NDArray[Any]
Task = Callable[..., Any]  # task(block, *state) -> part
Labels = Callable[..., tuple[Any, Any]]  # task(block) -> targets and weights of its rows
CHUNK_VALUES = 1 << 19  # four megabytes of float64: stays in the outer cache
COPIES = ("prepared", "chunks")  # kept with a block, and no smaller than its rows
LABELS = "labels"  # kept with a block that is read: targets and weights, as they were given
FAN_IN = 8  # parts that are added up one after the other, at each level of the tree


class Block:
    """Consecutive rows, with what belongs to them.

    Parameters
    ----------
    start : int
        The number of the first row among all.
    X : array or CSR matrix, or a function that returns it
        The rows; a function is called when they are first asked for.
    y : array, optional
        Targets: one for each row, or several columns of them.
    weight : array of shape (n,), optional
        C times the weight of each row.
    kept : dict, optional
        What tasks left here for the next ones. It may be emptied between any two of them.
    n_threads : int
        For the work on this block.
    picked : int array, optional
        Which rows of X are meant; they are gathered when they are first asked for.
    n : int, optional
        Number of rows, where X is a function.
    """

    kept_empty: ClassVar[tuple[str, ...]] = ("kept",)  # of what checkpoints hold

    def __init__(
        self,
        start: int,
        X: Any,
        y: Array | None = None,
        weight: Array | None = None,
        kept: dict[str, Any] | None = None,
        *,
        n_threads: int = 1,
        picked: Array | None = None,
        n: int | None = None,
    ) -> None:
        self.start, self._X, self.y, self.weight = start, X, y, weight
        self.kept: dict[str, Any] = {} if kept is None else kept
        self.n_threads, self._picked, self._n = n_threads, picked, n

    @property
    def X(self) -> Any:
        """The rows."""
        if self._picked is not None:
            self._X, self._picked = self._X[self._picked], None
        if callable(self._X):
            self._X = self._X()
        return self._X

    @property
    def n(self) -> int:
        """Number of rows."""
        if self._n is not None:
            return self._n
        return int(self._X.shape[0] if self._picked is None else self._picked.size)

    def chunks(self) -> Iterator[tuple[Any, Array | None, Array | None]]:
        """X, y and weight of consecutive parts that stay in the outer cache."""
        X, (n, d) = self.X, self.X.shape
        width = max(1, X.nnz // max(1, n)) if sp.issparse(X) else d
        step = max(1, CHUNK_VALUES // max(1, width))
        for first in range(0, max(1, n), step):
            part = slice(first, min(n, first + step))
            yield X[part], *(None if a is None else a[part] for a in (self.y, self.weight))


class PerRow:
    """A part of a task's state that has an entry for each row.

    Every block gets those of its own rows.

    For what must be known of all rows at one place anyway, such as the scores of which an oracle
    selects one. It costs the sending of 8 bytes a row and column where blocks are elsewhere.

    Examples
    --------
    >>> rows = MemoryRows(np.array([[1.0], [2.0]]))
    >>> rows.sum(lambda block, v: v @ block.X, PerRow(np.array([10.0, 1.0])))
    array([12.])
    """

    def __init__(self, values: Any) -> None:
        self.values = values

    def part(self, first: int, last: int) -> Any:
        """That of rows first to last."""
        return self.values[first:last]


class Rows(Protocol):
    """The rows of one data set, with targets and weights, wherever they are."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def n_threads(self) -> int:
        """Threads for what is done with all rows at one place."""

    def sum(self, task: Task, *state: Any) -> Any:
        """The sum of task(block, *state) over all blocks, in a fixed order (:class:`TreeSum`).

        Parts are numbers, arrays, or tuples of these.
        """

    def map(self, task: Task, *state: Any) -> list[Any]:
        """task(block, *state) of all blocks, in order."""

    def at(self, indices: Array, task: Task, *state: Any) -> Iterator[tuple[Array, Any]]:
        """task(block, places, *state) of the blocks that have some of these rows.

        With each part, which of the indices it is about; places are those in the block.
        """

    def take(self, indices: Array) -> MemoryRows:
        """Some rows, brought here."""

    def relabelled(self, task: Labels) -> Rows:
        """The same rows with the targets and weights that task(block) returns."""


class MemoryRows:
    """Rows in memory, or in a memory map: one block.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows.
    y, weight : arrays, optional
        Targets and weights.
    n_threads : int
        For the work on them; results are the same bits for any number.

    Examples
    --------
    >>> def total(block, factor):
    ...     return factor * block.X.sum()
    >>> rows = MemoryRows(np.arange(6.0).reshape(3, 2))
    >>> float(rows.sum(total, 2.0))
    30.0
    >>> rows.take(np.array([2, 0])).X
    array([[4., 5.],
           [0., 1.]])
    """

    def __init__(
        self,
        X: Any,
        y: Array | None = None,
        weight: Array | None = None,
        n_threads: int = 1,
        *,
        kept: dict[str, Any] | None = None,
        picked: Array | None = None,
    ) -> None:
        self.block = Block(0, X, y, weight, kept, n_threads=n_threads, picked=picked)
        self.n, self.n_features = self.block.n, int(X.shape[1])

    @property
    def X(self) -> Any:
        """The rows."""
        return self.block.X

    @property
    def y(self) -> Array | None:
        """Targets."""
        return self.block.y

    @property
    def weight(self) -> Array | None:
        """Weights."""
        return self.block.weight

    @property
    def n_threads(self) -> int:
        """For the work on the rows."""
        return self.block.n_threads

    def sum(self, task: Task, *state: Any) -> Any:
        """task of the one block."""
        return task(self.block, *for_block(state, 0, self.n))

    def map(self, task: Task, *state: Any) -> list[Any]:
        """The same, in a list."""
        return [task(self.block, *for_block(state, 0, self.n))]

    def at(self, indices: Array, task: Task, *state: Any) -> Iterator[tuple[Array, Any]]:
        """task of the one block, for these of its rows."""
        yield np.arange(indices.size), task(self.block, indices, *state)

    def take(self, indices: Array) -> MemoryRows:
        """Some rows, with what is kept of them and can be taken in parts.

        X is gathered if it is asked for.
        """
        block = self.block
        kept = {key: of.take(indices) for key, of in block.kept.items() if key in COPIES[:1]}
        source, picked = block._X, indices if block._picked is None else block._picked[indices]
        y, weight = (None if of is None else of[indices] for of in (block.y, block.weight))
        return MemoryRows(source, y, weight, block.n_threads, kept=kept, picked=picked)

    def relabelled(self, task: Labels) -> MemoryRows:
        """The same rows with other targets and weights; what was kept of the rows alone stays."""
        block = self.block
        kept = {key: of for key, of in block.kept.items() if key in COPIES}
        y, weight = task(block)
        return MemoryRows(block._X, y, weight, block.n_threads, kept=kept, picked=block._picked)

    def fingerprint(self) -> str:
        """A hash of the rows, targets and weights: whether two fits saw the same data."""
        return fingerprint_of(self.block)


class BlockedRows:
    """Rows in many blocks, each of which is read when a pass needs it.

    Between passes a block has what tasks kept with it, and its targets and weights, but neither its
    rows nor copies of them. A task that asks for none of these rows does not read them again.

    Parameters
    ----------
    read : callable
        read(k) -> X, y and weight of block k; X may be a function that returns it.
    edges : sequence of int
        Where blocks begin, and the number of rows at the end.
    n_features : int
        Number of features.
    n_threads : int
        For the work on a block.
    ahead : bool
        Whether the next block is read, by a thread of its own, while one is worked on.

    Examples
    --------
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> rows = BlockedRows(lambda k: (X[2 * k : 2 * k + 2], None, None), [0, 2, 3], 2)
    >>> rows.map(lambda block: (block.start, block.n))
    [(0, 2), (2, 1)]
    >>> rows.take(np.array([2, 0])).X
    array([[4., 5.],
           [0., 1.]])
    """

    def __init__(
        self,
        read: Callable[[int], tuple[Any, Array | None, Array | None]],
        edges: Sequence[int],
        n_features: int,
        n_threads: int = 1,
        *,
        ahead: bool = False,
    ) -> None:
        self.read, self.edges = read, np.asarray(edges, np.int64)
        self.n, self.n_features, self.n_threads = int(self.edges[-1]), n_features, n_threads
        self.kept: list[dict[str, Any]] = [{} for _ in range(self.edges.size - 1)]
        self._ahead = _Ahead(self.read, len(self.kept)) if ahead else None
        self._keeps_labels = True

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.kept)

    def _read(self, k: int) -> tuple[Any, Array | None, Array | None]:
        return self.read(k) if self._ahead is None else self._ahead(k)

    def _block(self, k: int) -> Block:
        known = self.kept[k].get(LABELS)
        if known is None:
            X, y, weight = self._read(k)
            if self._keeps_labels:
                self.kept[k][LABELS] = [None if of is None else _Small(of) for of in (y, weight)]
        else:
            y, weight = (None if of is None else of.values() for of in known)

            def X() -> Any:
                found = self._read(k)[0]
                return found() if callable(found) else found

        first, last = int(self.edges[k]), int(self.edges[k + 1])
        return Block(first, X, y, weight, self.kept[k], n_threads=self.n_threads, n=last - first)

    def _part(self, k: int, task: Task, state: tuple[Any, ...]) -> Any:
        block = self._block(k)
        part = task(block, *for_block(state, block.start, block.start + block.n))
        for key in COPIES:
            block.kept.pop(key, None)
        return part

    def sum(self, task: Task, *state: Any) -> Any:
        """Block after block; see :meth:`Rows.sum`."""
        sums = TreeSum()
        for k in range(self.n_blocks):
            sums.add(self._part(k, task, state))
        return sums.total()

    def map(self, task: Task, *state: Any) -> list[Any]:
        """Block after block."""
        return [self._part(k, task, state) for k in range(self.n_blocks)]

    def at(self, indices: Array, task: Task, *state: Any) -> Iterator[tuple[Array, Any]]:
        """Each block that has any of these rows is read once."""
        for k, which, places in by_block(self.edges, indices):
            yield which, task(self._block(k), places, *state)

    def take(self, indices: Array) -> MemoryRows:
        """Some rows, brought here."""
        return gathered(self, indices)

    def relabelled(self, task: Labels) -> BlockedRows:
        """The same rows; their labels are made when they are read."""

        def read(k: int) -> tuple[Any, Any, Any]:
            block = self._block(k)
            return (lambda: block.X), *task(block)

        again = BlockedRows(read, list(self.edges), self.n_features, self.n_threads)
        again._keeps_labels = False  # they follow from those that are kept here
        return again

    def with_features(self, task: Callable[[Any], Any], n_features: int) -> BlockedRows:
        """The same rows with the features that task(X) returns."""

        def read(k: int) -> tuple[Any, Any, Any]:
            block = self._block(k)
            return (lambda: task(block.X)), block.y, block.weight

        again = BlockedRows(read, list(self.edges), n_features, self.n_threads)
        again._keeps_labels = False
        return again

    def fingerprint(self) -> str:
        """A hash of the rows, targets and weights, with the edges of the blocks."""
        digest = hashlib.sha256(repr(self.edges.tolist()).encode())
        for of_block in self.map(fingerprint_of):
            digest.update(of_block.encode())
        return digest.hexdigest()


class _Ahead:
    """Reads a block, and begins with the next one before it is asked for.

    At most one block is held here, so that a pass has two of them in memory. A thread reads one
    block and ends: what is left of a pass that was interrupted is no thread that waits.
    """

    def __init__(self, read: Callable[[int], Any], n_blocks: int) -> None:
        self.read, self.n_blocks = read, n_blocks
        self._one_at_a_time = threading.Lock()
        self._next: tuple[int, Future[Any]] | None = None

    def __call__(self, k: int) -> Any:
        coming, self._next = self._next, None
        if coming is not None and coming[0] == k:
            found = coming[1].result()
        else:  # after the block that nobody wanted
            with self._one_at_a_time:
                found = self.read(k)
        if k + 1 < self.n_blocks:
            future: Future[Any] = Future()
            thread = threading.Thread(target=self._fill, args=(k + 1, future), name="slimsvm-read")
            undisturbed(thread.start)  # Ctrl-C in it would leave a thread that never begins
            self._next = k + 1, future  # Ctrl-C before this: nobody waits for the block
        return found

    def _fill(self, k: int, future: Future[Any]) -> None:
        try:
            with self._one_at_a_time:
                future.set_result(self.read(k))
        except BaseException as error:  # raised where the block is asked for
            future.set_exception(error)


class _Small:
    """Targets or weights between passes: whole numbers in as few bytes as they need."""

    def __init__(self, values: Any) -> None:
        values = np.asarray(values)
        self.dtype = values.dtype
        self.kept: Array = values
        if values.dtype.kind in "iuf" and values.size:
            for small in (np.int8, np.int16, np.int32):
                if values.itemsize > np.dtype(small).itemsize and _fits(values, small):
                    self.kept = values.astype(small)
                    break

    def values(self) -> Array:
        """As they were given."""
        return np.asarray(self.kept, self.dtype)


def _fits(values: Array, small: Any) -> bool:
    """Whether all values are whole numbers of a smaller type."""
    bounds = np.iinfo(small)
    if not (values.min() >= bounds.min and values.max() <= bounds.max):
        return False
    return bool(np.array_equal(values, values.astype(small)))


class Gathered:
    """Rows that come from many blocks, each put into its place at once."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._dense: list[Any] = [None, None, None]
        self._sparse: list[tuple[Array, Any]] = []

    def put(self, places: Array, X: Any, y: Array | None, weight: Array | None) -> None:
        """Some of the rows."""
        if sp.issparse(X):
            self._sparse.append((places, X))
        for i, part in enumerate((None if sp.issparse(X) else X, y, weight)):
            if part is None:
                continue
            if self._dense[i] is None:
                self._dense[i] = np.empty((self.n, *part.shape[1:]), part.dtype)
            elif part.dtype != self._dense[i].dtype:  # such as longer words
                with np.errstate(invalid="ignore"):  # of places that are not filled yet
                    self._dense[i] = self._dense[i].astype(np.result_type(self._dense[i], part))
            self._dense[i][places] = part

    def all(self) -> tuple[Any, Any, Any]:
        """X, y and weight."""
        X, y, weight = self._dense
        if self._sparse:
            places = np.concatenate([of for of, _ in self._sparse])
            X = sp.vstack([of for _, of in self._sparse], format="csr")
            if np.any(places[1:] < places[:-1]):
                X = X[np.argsort(places, kind="stable")]
        return X, y, weight


def by_block(edges: Array, indices: Array) -> Iterator[tuple[int, Array, Array]]:
    """Blocks that have some of these rows, which of them these are, and their places in the block.

    Where there are no rows at all, none of the first block: for its type and shape.
    """
    indices = np.asarray(indices, np.intp)
    at = np.searchsorted(edges, indices, side="right") - 1
    for k in [int(k) for k in np.unique(at)] if indices.size else [0]:
        which = np.flatnonzero(at == k)
        yield k, which, indices[which] - int(edges[k])


def gathered(rows: Rows, indices: Array) -> MemoryRows:
    """Rows by their numbers, brought here from all blocks that have some of them."""
    found = Gathered(len(indices))
    for which, part in rows.at(indices, rows_at):
        found.put(which, *part)
    return MemoryRows(*found.all(), rows.n_threads)


def rows_at(block: Block, places: Array) -> tuple[Any, Any, Any]:
    """X, y and weight of some rows of a block; places in the block."""
    X, y, weight = block.X, block.y, block.weight
    return X[places], *(None if of is None else of[places] for of in (y, weight))


def fingerprint_of(block: Block) -> str:
    """A task: a hash of the rows, targets and weights of a block."""
    digest = hashlib.sha256(repr((block.X.shape, str(block.X.dtype))).encode())
    for X, y, weight in block.chunks():
        pieces = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
        for piece in (*pieces, y, weight):
            if piece is not None:
                digest.update(np.ascontiguousarray(piece).data)
    return digest.hexdigest()


class TreeSum:
    """A sum in the shape of a tree, in which every FAN_IN consecutive parts are added up in order.

    The same shape, and so the same bits, as if whole levels were made at once somewhere else;
    never more than one part a level is in memory.

    Examples
    --------
    >>> sums = TreeSum()
    >>> for part in range(100):
    ...     sums.add(part)
    >>> sums.total()
    4950
    """

    def __init__(self) -> None:
        self._levels: list[tuple[Any, int]] = []  # what was added up, and how many

    def add(self, part: Any) -> None:
        """The next part."""
        level = 0
        while True:
            if level == len(self._levels):
                self._levels.append((None, 0))
            total, n = self._levels[level]
            total, n = (part if n == 0 else added(total, part)), n + 1
            if n < FAN_IN:
                self._levels[level] = total, n
                return
            self._levels[level] = None, 0
            part, level = total, level + 1

    def total(self) -> Any:
        """The sum of all parts."""
        carried, any_ = None, False
        for total, n in self._levels:
            if n:
                carried = added(total, carried) if any_ else total
                any_ = True
        return carried


def is_far(X: Any) -> bool:
    """Whether these are rows that are not in memory: opened ones, or a Dask collection."""
    if isinstance(X, np.ndarray):
        return False
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(hasattr(of, "__dask_graph__") for of in X)
    return hasattr(type(X), "relabelled") or hasattr(X, "__dask_graph__")


def for_block(state: tuple[Any, ...], first: int, last: int) -> list[Any]:
    """The state of a task for the block of rows first to last: see :class:`PerRow`."""
    return [of.part(first, last) if isinstance(of, PerRow) else of for of in state]


_COUNT, _HERE = count(), uuid4().hex


def serial() -> str:
    """A number that nothing else has, in any process.

    By it, a block knows whether what it kept is what is meant.
    """
    return f"{_HERE}-{os.getpid()}-{next(_COUNT)}"


def added(total: Any, part: Any) -> Any:
    """The sum of two parts."""
    if isinstance(total, tuple):
        return tuple(added(a, b) for a, b in zip(total, part, strict=True))
    return total + part


def joined(parts: list[Any]) -> Array:
    """Arrays of the rows of all blocks, one after the other, as one.

    Columns lie in memory as they do in the parts.
    """
    if len(parts) == 1:
        return np.asarray(parts[0])
    if parts[0].ndim == 2 and parts[0].flags.f_contiguous:
        return np.concatenate([part.T for part in parts], axis=1).T
    return np.concatenate(parts)
