"""Rows of a Dask collection: every pass is a set of pure tasks, and a tree of sums.

A task takes the partitions of one place, a few at once, works on them, and returns something small
(:mod:`slimsvm.sources.partitions`); parts are added up in the tree of
:class:`slimsvm.rows.TreeSum`, so that results are the same bits for any number of workers. There is
no other state: a worker that is lost, or comes later, changes nothing but the time, since Dask runs
a task again that is lost. What tasks keep beside a block (:mod:`slimsvm.sources.kept`) is made
again where it is missing.

The client is Dask's own choice: the current one of ``distributed``, or a scheduler of this process.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.rows import FAN_IN, Labels, MemoryRows, PerRow, Task, by_block, gathered, serial
from slimsvm.sources.batches import refuse_names
from slimsvm.sources.kept import forget
from slimsvm.sources.opened import fitted_on
from slimsvm.sources.partitions import (
    About,
    Before,
    Own,
    Sent,
    given_block,
    learned,
    look_at,
    nodes_of,
    parts_of,
    together,
)

Array = NDArray[Any]
HELD_SHARE = 0.5  # of the memory of the workers: partitions that fit stay there between passes
AT_ONCE = 32  # blocks of one task, at most: what is lost with a worker
TASKS_A_THREAD = 2  # in a pass, at least, where there are blocks enough: workers are not all alike
HERE = 64  # blocks up to which the parts of a sum are added up at the client
ASKED = 5.0  # seconds after which it is asked again where partitions are
# bytes of a task's state up to which it goes with each task, and not once to each worker
WITH_TASKS = 1 << 17


def is_dask(X: Any) -> bool:
    """Whether this is a Dask collection, or a list of delayed blocks."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(hasattr(of, "__dask_graph__") for of in X)
    return hasattr(X, "__dask_graph__")


# -- at the client ---------------------------------------------------------------------------------


class Places:
    """Partitions, and which of them are worked on by one task.

    Those that stay with the workers go together, a few that are at one place: a task costs the
    scheduler about as much as a small pass over a block takes. Others go alone, as they are read in
    every pass.
    """

    def __init__(self, pieces: list[Any], held: bool) -> None:
        self.pieces, self.held = pieces, held
        self._groups = [[k] for k in range(len(pieces))]
        self._asked = -np.inf

    def groups(self) -> list[list[int]]:
        """Numbers of blocks, for each task; the first ones first."""
        client = current_client() if self.held else None
        if client is not None and time.monotonic() > self._asked + ASKED:
            where, threads = client.who_has(self.pieces), client.nthreads()
            places = [where.get(of.key, ()) for of in self.pieces]
            self._groups = grouped(places, sum(threads.values()))
            self._asked = time.monotonic()
        return self._groups


def grouped(places: list[Any], n_threads: int) -> list[list[int]]:
    """Blocks that are at one place, in groups that leave every thread a few.

    Examples
    --------
    >>> grouped([["a"], ["b"], ["a"], ["b"], ["a"], ["a", "b"], ["a"], ["b"]], 2)
    [[0, 2], [1, 3], [4, 6], [5, 7]]
    """
    size = max(1, min(AT_ONCE, len(places) // (TASKS_A_THREAD * max(1, n_threads))))
    own: dict[Any, list[int]] = {}
    alone = []
    for k, at in enumerate(places):
        if at:
            own.setdefault(min(at, key=lambda of: len(own.get(of, ()))), []).append(k)
        else:
            alone.append([k])  # nobody has it: it is made again
    found = [of[i : i + size] for of in own.values() for i in range(0, len(of), size)]
    return sorted(found + alone)


class DaskRows:
    """Rows of Dask partitions; see :class:`slimsvm.rows.Rows`.

    Parameters
    ----------
    places : Places
        X, y and weight of the blocks, as delayed objects.
    abouts : list of About
        What is known of each.
    before : Before
        What is done with each before any task.
    n_features : int
        Number of features.
    names : list of str, optional
        Of the features.
    labelled : bool
        Whether there are targets.
    """

    def __init__(
        self,
        places: Places,
        abouts: list[About],
        before: Before,
        n_features: int,
        names: list[str] | None = None,
        labelled: bool = True,
    ) -> None:
        self._places, self._abouts, self._before = places, abouts, before
        self.names, self.labelled = names, labelled
        self.n_features, self.n_threads, self.n_features_in = n_features, 1, n_features
        self.edges = np.array([*(of.start for of in abouts), abouts[-1].start + abouts[-1].n])
        self.n, self.n_blocks = int(self.edges[-1]), len(abouts)
        self.transformer: Any = None
        self._serials: set[str] = {before.serial}

    def __repr__(self) -> str:
        return (
            f"DaskRows({self.n:,} rows of {self.n_features:,} features in {self.n_blocks} blocks)"
        )

    def _parts(
        self, work: Any, task: Task, state: tuple[Any, ...], groups: list[list[int]], own: Any
    ) -> list[Any]:
        """A delayed part for each group of blocks; own(k) is the state of a block alone."""
        from dask import delayed

        token, far = serial(), current_client() is not None
        sent: Any = Sent(task, state, self._before, self.n_blocks)
        if far:
            sent = _dumped(sent)
        if not far or len(sent) > WITH_TASKS:
            sent = delayed(sent, name=f"slimsvm-state-{token}", traverse=False)
        run = delayed(work, pure=False, traverse=False)
        name, found = getattr(task, "__name__", type(task).__name__), []
        for group in groups:
            about: Any = Own(group, [self._abouts[k] for k in group], [own(k) for k in group])
            pieces = [self._places.pieces[k] for k in group]
            key = f"slimsvm-{name}-{token}-{group[0]}"
            found.append(run(sent, _dumped(about) if far else about, *pieces, dask_key_name=key))
        return found

    def _of_block(self, state: tuple[Any, ...]) -> Any:
        per_row = [of for of in state if isinstance(of, PerRow)]

        def own(k: int) -> tuple[Any, ...]:
            about = self._abouts[k]
            return tuple(of.part(about.start, about.start + about.n) for of in per_row)

        return own

    def sum(self, task: Task, *state: Any) -> Any:
        """A tree of sums; see :class:`slimsvm.rows.TreeSum`."""
        import dask

        token, level = serial(), 0
        parts = self._parts(nodes_of, task, state, self._places.groups(), self._of_block(state))
        add = dask.delayed(together, pure=False, traverse=False)
        while len(parts) > (1 if self.n_blocks > HERE else HERE):
            parts = [
                add(
                    self.n_blocks,
                    *parts[i : i + FAN_IN],
                    dask_key_name=f"slimsvm-sum-{token}-{level}-{i}",
                )
                for i in range(0, len(parts), FAN_IN)
            ]
            level += 1
        (total,) = together(self.n_blocks, *dask.compute(*parts)).values()
        return total

    def map(self, task: Task, *state: Any) -> list[Any]:
        """All parts, brought here."""
        import dask

        groups, found = self._places.groups(), dict[int, Any]()
        parts = self._parts(parts_of, task, state, groups, self._of_block(state))
        for group, own in zip(groups, dask.compute(*parts), strict=True):
            found |= dict(zip(group, own, strict=True))
        return [found[k] for k in range(self.n_blocks)]

    def at(self, indices: Array, task: Task, *state: Any) -> Iterator[tuple[Array, Any]]:
        """Parts of the blocks that have some of these rows, all brought here at once."""
        import dask

        of = {k: (which, places) for k, which, places in by_block(self.edges, indices)}
        groups = [[k for k in group if k in of] for group in self._places.groups()]
        groups = [group for group in groups if group]
        first = PerRow(None)  # the places come first, and are of a block alone
        parts = self._parts(parts_of, task, (first, *state), groups, lambda k: (of[k][1],))
        for group, own in zip(groups, dask.compute(*parts), strict=True):
            yield from zip([of[k][0] for k in group], own, strict=True)

    def take(self, indices: Array) -> MemoryRows:
        """Some rows, brought here."""
        return gathered(self, indices)

    def _with(self, **changes: Any) -> DaskRows:
        before = replace(self._before, serial=serial(), **changes)
        about = (self.n_features, self.names, self.labelled)
        again = DaskRows(self._places, self._abouts, before, *about)
        again.n_threads, again.n_features_in = self.n_threads, self.n_features_in
        again.transformer = self.transformer
        again._serials = self._serials  # one set for all: forgotten together
        again._serials.add(before.serial)
        return again

    def relabelled(self, task: Labels) -> DaskRows:
        """The same rows; their labels are made where they are."""
        return self._with(labels=(*self._before.labels, task))

    def with_features(self, task: Any, n_features: int) -> DaskRows:
        """The same rows with the features that task(X) returns."""
        again = self._with(features=(*self._before.features, task))
        again.n_features = n_features
        return again

    def transformed(self, transformer: Any) -> DaskRows:
        """The same rows after a scikit-learn transformer; see :meth:`OpenedRows.transformed`."""
        from dask import delayed

        def each_block(learn: Any, state: Any) -> Any:
            work = delayed(learned, pure=False)
            for piece in self._places.pieces:
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


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a frame, if all are words; as for frames in memory."""
    names = list(X.columns) if hasattr(X, "columns") else []
    return names if names and all(isinstance(of, str) for of in names) else None


def current_client() -> Any:
    """The client of ``distributed`` that Dask would use, if there is one.

    None within a task: it would wait for others while it holds the thread that is to run them.
    What Dask itself computes there lets go of the thread.
    """
    import sys

    if "distributed" not in sys.modules:
        return None
    from distributed import default_client, get_worker

    try:
        get_worker()
    except ValueError:
        pass
    else:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def from_dask(X: Any, y: Any = None, weight: Any = None) -> DaskRows:
    """Rows of a Dask array, DataFrame, or list of delayed blocks; one pass looks at all of them."""
    import dask
    from dask.delayed import Delayed

    if isinstance(X, Delayed):  # which has any attribute that it is asked for
        X = [X]
        y, weight = ([of] if isinstance(of, Delayed) else of for of in (y, weight))
    names = names_of(X)
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
    # blocks that are delayed are frames or arrays: nobody knows before
    as_given = blocks[0] if isinstance(X, list | tuple) else [None] * len(pieces)
    known = enumerate(zip(pieces, as_given, strict=True))
    found = list(dask.compute(*(look(piece, k, names, own) for k, (piece, own) in known)))
    filled = [(k, of) for k, of in enumerate(found) if of["n"]]
    if not filled:
        raise ValueError(f"There are no rows in the {len(found)} partitions of X.")
    first = filled[0][1]
    for k, of in filled:
        for what in ("width", "dtype", "sparse", "labelled", "weighted"):
            if of[what] != first[what]:
                raise ValueError(
                    f"Partition {k} has {what} {of[what]!r}, but partition {filled[0][0]} "
                    f"{first[what]!r}: all must be alike."
                )
        refuse_names(f"Partition {k}", of["names"], f"partition {filled[0][0]}", first["names"])
    if not first["width"]:
        raise ValueError("The partitions of X have no columns.")
    names = names or first["names"]
    if names is not None and len(names) != first["width"]:
        names = None
    places = _held([pieces[k] for k, _ in filled], sum(of["bytes"] for _, of in filled))
    start, abouts = 0, []
    for k, of in filled:
        abouts.append(About(k, start, of["n"], of["check"]))
        start += of["n"]
    before = Before(serial(), held=places.held)
    return DaskRows(places, abouts, before, first["width"], names, first["labelled"])


def _held(pieces: list[Any], n_bytes: int) -> Places:
    """Partitions that stay with the workers, if these have room for them."""
    import dask

    client = current_client()
    if client is None:
        return Places(pieces, held=False)
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if n_bytes > HELD_SHARE * sum(of.get("memory_limit") or 0 for of in workers):
        return Places(pieces, held=False)
    from distributed import wait

    kept = list(dask.persist(*pieces))
    wait(kept)  # until it is known where they are
    return Places(kept, held=True)


def _dumped(given: Any) -> bytes:
    """As bytes, in the way in which Dask itself sends tasks; it does not look into them."""
    from distributed.protocol.pickle import dumps

    return bytes(dumps(given))


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
