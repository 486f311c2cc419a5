"""Rows of a Dask collection: every pass is a set of pure tasks, and a tree of sums.

A task reads a partition, works on it, and returns something small; parts are added up in the tree
of :class:`slimsvm.rows.TreeSum`, so that results are the same bits for any number of workers. There
is no other state: a worker that is lost, or comes later, changes nothing but the time, since Dask
runs a task again that is lost. What tasks keep beside a block (:mod:`slimsvm.sources.kept`) is made
again where it is missing.

The client is Dask's own choice: the current one of ``distributed``, or a scheduler of this process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.rows import (
    COPIES,
    FAN_IN,
    Block,
    Labels,
    MemoryRows,
    PerRow,
    Task,
    added,
    by_block,
    gathered,
    serial,
)
from slimsvm.sources.batches import checksum, piece_of
from slimsvm.sources.kept import forget, put, taken
from slimsvm.sources.opened import Piece, applied, fitted_on
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
KEPT_BYTES = 2e9  # by each process, beside its blocks
HELD_SHARE = 0.5  # of the memory of the workers: partitions that fit stay there between passes


def is_dask(X: Any) -> bool:
    """Whether this is a Dask collection, or a list of delayed blocks."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(hasattr(of, "__dask_graph__") for of in X)
    return hasattr(X, "__dask_graph__")


# -- what runs where the blocks are ----------------------------------------------------------------


@dataclass(frozen=True)
class About:
    """What is known of a block, and what is done with it before any task."""

    k: int
    start: int
    n: int
    check: int
    serial: str
    labels: tuple[Labels, ...] = ()
    features: tuple[Any, ...] = ()  # what is made of X, last of all
    transformer: Any = None
    max_bytes: float = KEPT_BYTES


@dataclass(frozen=True)
class Sent:
    """A task and its state, sent once; Dask does not look into it."""

    task: Task
    state: tuple[Any, ...]


def given_block(X: Any, y: Any, weight: Any, k: int) -> Piece:
    """A partition as arrays."""
    if isinstance(X, tuple | list) and y is None and weight is None:
        X, y, weight = (*X, None, None)[:3]
    if y is not None and getattr(y, "ndim", 1) == 2:
        y = np.asarray(y)[:, 0]
    if weight is not None and getattr(weight, "ndim", 1) == 2:
        weight = np.asarray(weight)[:, 0]
    try:
        return piece_of((X, y, weight), k)
    except ValueError as error:
        raise ValueError(str(error).replace("Batch", "Partition", 1)) from error


def look_at(piece: Piece, k: int, names: list[str] | None) -> dict[str, Any]:
    """Number of rows, features and bytes of a partition; refuses what is not finite."""
    X, y, weight = piece
    where = f"partition {k}"
    of: Any
    for what, of in (("", X), ("the target", y), ("the weight", weight)):
        values = of.data if sp.issparse(of) else of
        if values is None or values.dtype.kind != "f" or np.isfinite(values).all():
            continue
        at = np.argwhere(~np.isfinite(of.toarray() if sp.issparse(of) else of))[0]
        column = f"column {names[at[1]]!r}" if names and not what else f"column {at[-1]}"
        raise ValueError(
            f"{where}, row {at[0]:,} (counted from 0): {what or column} is NaN or infinity. Input "
            "contains NaN or infinity, which SVMs cannot use; fill or drop such rows first."
        )
    if weight is not None and weight.size and weight.min() < 0:
        raise ValueError(f"{where}: a weight is {weight.min():g}; weights must not be negative.")
    size = sum(of.nbytes for of in (y, weight) if of is not None)
    size += X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
    return {
        "n": X.shape[0],
        "width": X.shape[1],
        "labelled": y is not None,
        "weighted": weight is not None,
        "dtype": str(X.dtype),
        "bytes": size,
        "check": checksum(*piece),
    }


def opened(piece: Piece, about: About) -> Block:
    """The block, as tasks see it, with what is kept of it."""
    if (piece[0].shape[0], checksum(*piece)) != (about.n, about.check):
        raise ValueError(
            f"Partition {about.k} is not what it was in the first pass: a lazy collection must "
            "give the same rows every time. If it is made of random numbers or of files that "
            "change, persist it first (X = X.persist())."
        )
    X, y, weight = piece
    if about.transformer is not None:
        X = applied(about.transformer, X)
    kept = taken((about.serial, about.k))
    block = Block(about.start, X, y, weight, kept)
    for task in about.labels:
        block.y, block.weight = task(block)
    if about.features:
        for features in about.features:
            X = features(X)
        block = Block(about.start, X, block.y, block.weight, kept)
    return block


def part_of(piece: Piece, sent: Sent, own: tuple[Any, ...], about: About) -> Any:
    """The part of one block."""
    block = opened(piece, about)
    state = iter(own)
    given = [next(state) if isinstance(of, PerRow) else of for of in sent.state]
    return _done(sent.task, block, given, about)


def some_of(piece: Piece, sent: Sent, places: Array, about: About) -> Any:
    """The part of some rows of one block."""
    return _done(sent.task, opened(piece, about), (places, *sent.state), about)


def _done(task: Task, block: Block, state: Any, about: About) -> Any:
    """A task's part; what it keeps beside the block stays here."""
    with single_threaded_blas():
        part = task(block, *state)
    for key in COPIES:
        block.kept.pop(key, None)
    put((about.serial, about.k), block.kept, about.max_bytes)
    return part


def sum_of(*parts: Any) -> Any:
    """The sum, in order."""
    total = parts[0]
    for part in parts[1:]:
        total = added(total, part)
    return total


def learned(transformer: Any, piece: Piece, learn: Any) -> Any:
    """A transformer after one more block."""
    from copy import deepcopy

    return learn(deepcopy(transformer), piece[0], piece[2])


# -- at the client ---------------------------------------------------------------------------------


class DaskRows:
    """Rows of Dask partitions; see :class:`slimsvm.rows.Rows`.

    Parameters
    ----------
    pieces : list of Delayed
        X, y and weight of the blocks.
    abouts : list of About
        What is known of each.
    n_features : int
        Number of features.
    names : list of str, optional
        Of the features.
    labelled : bool
        Whether there are targets.
    """

    def __init__(
        self,
        pieces: list[Any],
        abouts: list[About],
        n_features: int,
        names: list[str] | None = None,
        labelled: bool = True,
    ) -> None:
        self._pieces, self._abouts, self.names, self.labelled = pieces, abouts, names, labelled
        self.n_features, self.n_threads, self.n_features_in = n_features, 1, n_features
        self.edges = np.array([*(of.start for of in abouts), abouts[-1].start + abouts[-1].n])
        self.n, self.n_blocks = int(self.edges[-1]), len(abouts)
        self.transformer: Any = None
        self._serials: set[str] = {abouts[0].serial}

    def __repr__(self) -> str:
        return (
            f"DaskRows({self.n:,} rows of {self.n_features:,} features in {self.n_blocks} blocks)"
        )

    def _parts(self, task: Task, state: tuple[Any, ...]) -> list[Any]:
        """A delayed part for each block."""
        from dask import delayed

        token = serial()
        small = tuple(PerRow(None) if isinstance(of, PerRow) else of for of in state)
        sent = delayed(Sent(task, small), name=f"slimsvm-state-{token}", traverse=False)
        work = delayed(part_of, pure=False, traverse=False)
        name = getattr(task, "__name__", type(task).__name__)
        parts = []
        for piece, about in zip(self._pieces, self._abouts, strict=True):
            ends = about.start, about.start + about.n
            own = tuple(of.part(*ends) for of in state if isinstance(of, PerRow))
            key = f"slimsvm-{name}-{token}-{about.k}"
            parts.append(work(piece, sent, own, about, dask_key_name=key))
        return parts

    def sum(self, task: Task, *state: Any) -> Any:
        """A tree of sums; see :class:`slimsvm.rows.TreeSum`."""
        from dask import delayed

        level, parts, token = 0, self._parts(task, state), serial()
        add = delayed(sum_of, pure=False, traverse=False)
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [
                add(*group, dask_key_name=f"slimsvm-sum-{token}-{level}-{i}")
                if len(group) > 1
                else group[0]
                for i, group in enumerate(groups)
            ]
            level += 1
        return parts[0].compute()

    def map(self, task: Task, *state: Any) -> list[Any]:
        """All parts, brought here."""
        import dask

        return list(dask.compute(*self._parts(task, state)))

    def at(self, indices: Array, task: Task, *state: Any) -> Iterator[tuple[Array, Any]]:
        """Parts of the blocks that have some of these rows, all brought here at once."""
        import dask

        token, found = serial(), list(by_block(self.edges, indices))
        sent = dask.delayed(Sent(task, state), name=f"slimsvm-state-{token}", traverse=False)
        work = dask.delayed(some_of, pure=False, traverse=False)
        name = getattr(task, "__name__", type(task).__name__)
        parts = [
            work(
                self._pieces[k],
                sent,
                places,
                self._abouts[k],
                dask_key_name=f"slimsvm-{name}-{token}-{k}",
            )
            for k, _, places in found
        ]
        yield from zip([which for _, which, _ in found], dask.compute(*parts), strict=True)

    def take(self, indices: Array) -> MemoryRows:
        """Some rows, brought here."""
        return gathered(self, indices)

    def _with(self, **changes: Any) -> DaskRows:
        own = serial()
        abouts = [replace(about, serial=own, **changes) for about in self._abouts]
        again = DaskRows(self._pieces, abouts, self.n_features, self.names, self.labelled)
        again.n_threads, again.n_features_in = self.n_threads, self.n_features_in
        again.transformer = self.transformer
        again._serials = self._serials  # one set for all: forgotten together
        again._serials.add(own)
        return again

    def relabelled(self, task: Labels) -> DaskRows:
        """The same rows; their labels are made where they are."""
        return self._with(labels=(*self._abouts[0].labels, task))

    def with_features(self, task: Any, n_features: int) -> DaskRows:
        """The same rows with the features that task(X) returns."""
        again = self._with(features=(*self._abouts[0].features, task))
        again.n_features = n_features
        return again

    def transformed(self, transformer: Any) -> DaskRows:
        """The same rows after a scikit-learn transformer; see :meth:`OpenedRows.transformed`."""
        from dask import delayed

        def each_block(learn: Any, state: Any) -> Any:
            work = delayed(learned, pure=False)
            for piece in self._pieces:
                state = work(state, piece, learn)
            return state.compute()

        if self.transformer is not None:
            raise ValueError("These rows are transformed already; pass a Pipeline instead.")
        fitted = fitted_on(transformer, each_block)
        again = self._with(transformer=fitted)
        again.transformer = fitted
        again.n_features = int(again.take(np.arange(1)).X.shape[1])
        return again

    def fingerprint(self) -> str:
        """A hash of the rows, targets and weights, with the edges of the blocks."""
        known = repr([(about.n, about.check) for about in self._abouts])
        return hashlib.sha256(known.encode()).hexdigest()

    def forget(self) -> None:
        """Let the workers forget what they kept for these rows, and for relabelled ones."""
        serials = tuple(self._serials)
        forget(serials)
        client = current_client()
        if client is not None:
            client.run(_forget_there, serials, on_error="ignore", wait=False)


async def _forget_there(serials: tuple[str, ...]) -> None:
    """The same on a worker; nobody waits for it, since the worker may be gone."""
    forget(serials)


def current_client() -> Any:
    """The client of ``distributed`` that Dask would use, if there is one."""
    import sys

    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def from_dask(X: Any, y: Any = None, weight: Any = None) -> DaskRows:
    """Rows of a Dask array, DataFrame, or list of delayed blocks; one pass looks at all of them."""
    import dask

    names = [str(of) for of in X.columns] if hasattr(X, "columns") else None
    beside = (_beside(X, of, what) for what, of in (("y", y), ("sample_weight", weight)))
    blocks: list[Any] = [_delayed(X, "X"), *beside]
    for what, own in zip(("y", "sample_weight"), blocks[1:], strict=True):
        if own is not None and len(own) != len(blocks[0]):
            raise ValueError(
                f"{what} has {len(own)} partitions, but X has {len(blocks[0])}: they must be cut "
                "at the same rows. Take them from the same DataFrame, or use repartition/rechunk."
            )
    parts = [own or [None] * len(blocks[0]) for own in blocks]
    read = dask.delayed(given_block, pure=False)
    pieces = [read(*of, k) for k, of in enumerate(zip(*parts, strict=True))]
    look = dask.delayed(look_at, pure=False)
    found = list(dask.compute(*(look(piece, k, names) for k, piece in enumerate(pieces))))
    filled = [(k, of) for k, of in enumerate(found) if of["n"]]
    if not filled:
        raise ValueError(f"There are no rows in the {len(found)} partitions of X.")
    first = filled[0][1]
    for k, of in filled:
        for what in ("width", "dtype", "labelled", "weighted"):
            if of[what] != first[what]:
                raise ValueError(
                    f"Partition {k} has {what} {of[what]!r}, but partition {filled[0][0]} "
                    f"{first[what]!r}: all must be alike."
                )
    if names is not None and len(names) != first["width"]:
        names = None
    pieces = _held([pieces[k] for k, _ in filled], sum(of["bytes"] for _, of in filled))
    name, start, abouts = serial(), 0, []
    for k, of in filled:
        abouts.append(About(k, start, of["n"], of["check"], name))
        start += of["n"]
    return DaskRows(pieces, abouts, first["width"], names, first["labelled"])


def _held(pieces: list[Any], n_bytes: int) -> list[Any]:
    """Partitions that stay with the workers, if these have room for them."""
    import dask

    client = current_client()
    if client is None:
        return pieces
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if n_bytes > HELD_SHARE * sum(of.get("memory_limit") or 0 for of in workers):
        return pieces
    return list(dask.persist(*pieces))


def _delayed(collection: Any, what: str) -> list[Any]:
    """One delayed block for each partition."""
    if isinstance(collection, list | tuple):
        return list(collection)
    if not hasattr(collection, "to_delayed"):  # a Delayed: one block
        return [collection]
    chunks: Any = getattr(collection, "chunks", ())
    if len(chunks) == 2 and len(chunks[1]) > 1:  # features of a row must be together
        collection = collection.rechunk({1: -1})
    found = collection.to_delayed()
    if isinstance(found, np.ndarray):
        found = found.ravel().tolist()
    if not found:
        raise ValueError(f"{what} has no partitions.")
    return list(found)


def _beside(X: Any, given: Any, what: str) -> list[Any] | None:
    """Blocks of targets or weights, cut where X is cut."""
    if given is None:
        return None
    lengths: Any = X.chunks[0] if hasattr(X, "chunks") else None
    known = lengths is not None and not np.isnan(np.sum(lengths))
    if not is_dask(given):
        values = np.asarray(given)
        if not known:
            raise ValueError(
                f"{what} is in memory, but the lengths of the partitions of X are not known: pass "
                f"{what} as a column of the same DataFrame, or call X.compute_chunk_sizes()."
            )
        if values.shape[0] != sum(lengths):
            raise ValueError(f"{what} has {values.shape[0]} entries, but X {sum(lengths)} rows.")
        return list(np.split(values, np.cumsum(lengths)[:-1]))
    if known and hasattr(given, "chunks") and not np.isnan(np.sum(given.chunks[0])):
        if given.shape[0] != X.shape[0]:
            raise ValueError(f"{what} has {given.shape[0]} entries, but X {X.shape[0]} rows.")
        if given.chunks[0] != lengths:
            given = given.rechunk({0: lengths})
    return _delayed(given, what)
