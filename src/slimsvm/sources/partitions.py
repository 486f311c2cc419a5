"""What runs where the partitions of a Dask collection are: looking at them, and parts of passes.

A pass has a task for every few blocks that are at one place. It gets the blocks, what is to be done
with each of them (:class:`Sent`, in few bytes), and returns parts: of a sum those nodes of the tree
of :class:`slimsvm.rows.TreeSum` that its blocks make up, so that the bits do not depend on which
blocks are together.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from slimsvm.rows import COPIES, FAN_IN, Block, Labels, PerRow, Task, added
from slimsvm.sources.batches import checksum, names_of_batch, piece_of
from slimsvm.sources.kept import put, taken
from slimsvm.sources.opened import Piece, applied, refuse_transformed
from slimsvm.threads import single_threaded_blas

Array = NDArray[Any]
Nodes = dict[tuple[int, int], Any]  # level and number in it -> the sum of what is below
KEPT_BYTES = 2e9  # by each process, beside its blocks
SMALL_LABELS = 32  # bytes a row: coded targets and weights that are kept, and not made again


@dataclass(frozen=True)
class About:
    """What is known of a block."""

    k: int  # of the partition
    start: int
    n: int
    check: int


@dataclass(frozen=True)
class Before:
    """What is done with every block before any task."""

    serial: str
    labels: tuple[Labels, ...] = ()
    features: tuple[Any, ...] = ()  # what is made of X, last of all
    transformer: Any = None
    held: bool = False  # partitions stay with the workers: what was looked at does not change
    max_bytes: float = KEPT_BYTES


class Sent:
    """A task and its state, for all blocks; no dataclass, into which Dask would look."""

    def __init__(self, task: Task, state: tuple[Any, ...], before: Before, n_blocks: int) -> None:
        self.task, self.before, self.n_blocks = task, before, n_blocks
        self.state = tuple(PerRow(None) if isinstance(of, PerRow) else of for of in state)


class Own:
    """What a task for some blocks is about: their numbers, what is known of them, their state."""

    def __init__(self, numbers: list[int], abouts: list[About], state: list[Any]) -> None:
        self.numbers, self.abouts, self.state = numbers, abouts, state


def given_block(X: Any, y: Any, weight: Any, k: int) -> Piece:
    """A partition as arrays."""
    if isinstance(X, tuple | list) and y is None and weight is None:
        X, y, weight = (*X, None, None)[:3]
    try:
        y, weight = _one_column(y, "y", k), _one_column(weight, "sample_weight", k)
        return piece_of((X, y, weight), k)
    except ValueError as error:
        raise ValueError(str(error).replace("Batch", "Partition", 1)) from error


def _one_column(given: Any, what: str, k: int) -> Any:
    if given is None or getattr(given, "ndim", 1) != 2:
        return given
    if given.shape[1] != 1:
        raise ValueError(f"Batch {k}: {what} has {given.shape[1]} columns; expected one.")
    return given.iloc[:, 0] if hasattr(given, "iloc") else np.asarray(given)[:, 0]


def look_at(piece: Piece, k: int, names: list[str] | None, given: Any = None) -> dict[str, Any]:
    """Number of rows, features and bytes of a partition; refuses what is not finite.

    The names of its features too, where the partition is given as it was.
    """
    X, y, weight = piece
    own = names_of_batch(given)
    names = own or names
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
        "sparse": sp.issparse(X),
        "bytes": size,
        "names": own,
        "check": checksum(*piece),
    }


def opened(piece: Piece, about: About, before: Before) -> Block:
    """The block, as tasks see it, with what is kept of it.

    A partition that stays with a worker is the same object in every pass: it is compared with the
    first pass once, and its targets are coded once.
    """
    kept = taken((before.serial, about.k))
    seen: Seen | None = kept.get("seen")
    X, y, weight = piece
    known = before.held and seen is not None and seen.of() is X
    if not known and (X.shape[0], checksum(*piece)) != (about.n, about.check):
        raise ValueError(
            f"Partition {about.k} is not what it was in the first pass: a lazy collection must "
            "give the same rows every time. If it is made of random numbers or of files that "
            "change, persist it first (X = X.persist())."
        )
    if before.transformer is not None:
        X = applied(before.transformer, X)
        place = f"partition {about.k}, row {{:,}} (counted from 0)".format
        refuse_transformed(before.transformer, X, about.n, place, 0)
    block = Block(about.start, X, y, weight, kept)
    if known and seen is not None and seen.coded is not None:
        block.y, block.weight = seen.coded
    else:
        for task in before.labels:
            block.y, block.weight = task(block)
        size = sum(of.nbytes for of in (block.y, block.weight) if of is not None)
        coded = (block.y, block.weight) if size <= SMALL_LABELS * about.n else None
        kept["seen"] = Seen(weakref.ref(piece[0]), coded)
    if before.features:
        for features in before.features:
            X = features(X)
        block = Block(about.start, X, block.y, block.weight, kept)
    return block


@dataclass
class Seen:
    """A partition that was looked at, if it is still there, with its targets and weights."""

    of: Any
    coded: Any


def parts_of(sent: Any, own: Any, *pieces: Piece) -> list[Any]:
    """The parts of some blocks."""
    sent, own = loaded(sent), loaded(own)
    with single_threaded_blas():
        return [
            _part(sent, about, state, piece)
            for about, state, piece in zip(own.abouts, own.state, pieces, strict=True)
        ]


def _part(sent: Sent, about: About, state: tuple[Any, ...], piece: Piece) -> Any:
    """That of one; what the task keeps beside the block stays here."""
    block, before, given = opened(piece, about, sent.before), sent.before, iter(state)
    found = [next(given) if isinstance(of, PerRow) else of for of in sent.state]
    part = sent.task(block, *found)
    for key in COPIES:
        block.kept.pop(key, None)
    put((before.serial, about.k), block.kept, before.max_bytes)
    return part


def nodes_of(sent: Any, own: Any, *pieces: Piece) -> Nodes:
    """The parts of some blocks as nodes of the tree of sums."""
    sent, own = loaded(sent), loaded(own)
    parts = parts_of(sent, own, *pieces)
    nodes = {(0, k): part for k, part in zip(own.numbers, parts, strict=True)}
    return collapsed(nodes, sent.n_blocks)


def collapsed(nodes: Nodes, n_blocks: int) -> Nodes:
    """Nodes whose neighbours are all there are added up, in order, level after level.

    Examples
    --------
    >>> collapsed({(0, k): k for k in range(9)}, 20)
    {(0, 8): 8, (1, 0): 28}
    >>> collapsed({(0, k): k for k in range(20)}, 20)
    {(2, 0): 190}
    """
    level, size = 0, n_blocks
    while size > 1:
        for i in sorted({k // FAN_IN for at, k in nodes if at == level}):
            below = [(level, k) for k in range(i * FAN_IN, min(size, (i + 1) * FAN_IN))]
            if all(of in nodes for of in below):
                total = nodes.pop(below[0])
                for of in below[1:]:
                    total = added(total, nodes.pop(of))
                nodes[level + 1, i] = total
        level, size = level + 1, -(-size // FAN_IN)
    return nodes


def together(n_blocks: int, *parts: Nodes) -> Nodes:
    """The nodes of several tasks."""
    nodes: Nodes = {}
    for of in parts:
        nodes |= of
    return collapsed(nodes, n_blocks)


def loaded(given: Any) -> Any:
    """What was sent as bytes, or as it is within this process."""
    if not isinstance(given, bytes):
        return given
    from distributed.protocol.pickle import loads

    return loads(given)


def learned(transformer: Any, piece: Piece, learn: Any) -> Any:
    """A transformer after one more block."""
    from copy import deepcopy

    return learn(deepcopy(transformer), piece[0], piece[2])
