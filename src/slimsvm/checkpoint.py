"""Checkpoints: a file with the model of now, and with what a fit needs to go on from there."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.ending import Status, warn
from slimsvm.keeping import Keeper, Kept, kept_by
from slimsvm.run import Limits
from slimsvm.snapshots import Frozen
from slimsvm.training import Data

Array = NDArray[Any]
# what does not change the problem: a fit may go on with others
OTHERS = ("verbose", "n_jobs", "max_time", "cache_size", "max_memory")
LARGEST_SEED = 2**31 - 1


class Checkpoint:
    """A callback that keeps a fit in a file, so that nothing is lost when the process dies.

    The file is a model that :func:`slimsvm.load` reads at any moment, and it is replaced whole. A
    fit with the same parameters and data that finds it goes on from there; with others it begins
    anew, and a warning says what differs. At the end the file holds the finished model. Of a search
    (:class:`slimsvm.GridSearchCV`, :class:`slimsvm.RandomizedSearchCV`, :class:`slimsvm.SVCCV`,
    :class:`slimsvm.SVRCV`) it holds what is known of its fits, and is no model.

    Parameters
    ----------
    path : str or path-like
        The file, in a folder that exists.
    every : float
        Seconds from one writing to the next: so much work is lost at most, and one step of the
        solver, about a second. Fits of ``SparseSVC`` and ``SparseSVR`` with ``basis="pursuit"`` or
        ``"random"``, say, and a loss without a kink keep a model, but begin anew.

    Examples
    --------
    >>> import os, tempfile
    >>> import slimsvm
    >>> X, y = slimsvm.datasets.checkers(300, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.slim")
    ...     model = slimsvm.SVC().set_callbacks(slimsvm.Checkpoint(path, every=30)).fit(X, y)
    ...     (slimsvm.load(path).predict(X) == model.predict(X)).all()
    np.True_
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 60.0) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ValueError(f"path must be the name of a file, got {path!r}.")
        number = isinstance(every, Real) and not isinstance(every, bool)
        if not number or not 0 < every < np.inf:
            raise ValueError(f"every must be a positive number of seconds, got {every!r}.")
        self.path, self.every = os.fspath(path), float(every)
        # keepers and facts of fits that go on, by their threads: one object may be given to several
        self._fits: dict[int, tuple[Keeper, dict[str, Any]]] = {}

    # -- scikit-learn's callbacks -----------------------------------------------------------------

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is to be done before a fit."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nor after it."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nor before a step."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """After a step the solver itself is asked: see :mod:`slimsvm.keeping`."""
        return False

    # -- a fit -------------------------------------------------------------------------------------

    @contextmanager
    def keeping(self, estimator: Any, data: Data, model: Callable[[], Any]) -> Iterator[int]:
        """Keep the runs of a fit; ``model`` makes that of now. Yields the seed of its draws."""
        self._check_path()
        facts = _facts(estimator, data)
        known, seed = self._found(facts)
        facts["seed"] = seed
        rough: list[Any] = []

        def write(keeper: Keeper) -> None:
            try:
                with keeper.as_it_is():
                    now = model()
            except Exception:  # whatever it is: the fit itself goes on
                with kept_by(None):
                    rough[:] = rough or [_of_few_rows(estimator, data)]
                now = rough[0]
            if now is None:
                return
            self._write(now, keeper.so_far(), facts)

        keeper = Keeper(self.every, write, known)
        self._fits[threading.get_ident()] = keeper, facts
        try:
            with keeper.watching():
                yield seed
        except BaseException:  # there will be no finish
            del self._fits[threading.get_ident()]
            raise

    def finish(self, model: Any) -> None:
        """Write the finished model; a fit that finds it has nothing left to do."""
        keeper, facts = self._fits.pop(threading.get_ident())
        self._write(model, keeper.so_far(), facts)

    # -- a search ----------------------------------------------------------------------------------

    def of_search(self, facts: dict[str, Any]) -> dict[Any, Any]:
        """What an earlier search left, if it is this one's: scores of its fits, by their points.

        The file of a search is no model, since there is none before the search ends.
        """
        self._check_path()
        self._last, self._lock = time.monotonic(), threading.Lock()
        if not os.path.exists(self.path):
            return {}
        try:
            with np.load(self.path, allow_pickle=False) as file:
                stored = json.loads(bytes(file["search"]))
                arrays = [file[f"a{k}"] for k in range(stored["n"])]
            then: dict[str, Any] = stored["facts"]
            known: dict[Any, Any] = Frozen.of(stored["tree"], arrays).thawed()
        except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{self.path} is there, but is no checkpoint of a search, and is left as it is "
                f"({error}). Move it away, or give another path."
            ) from error
        for name, now in facts.items():
            if then.get(name) != now:
                warn(
                    f"The checkpoint {self.path} is not gone on from: {name} "
                    f"{'are others' if name == 'rows' else f'was {then.get(name)}, not {now}'}.",
                    UserWarning,
                )
                return {}
        return known

    def keep_search(self, facts: dict[str, Any], known: dict[Any, Any], end: bool = False) -> None:
        """Write what is known, if it is time to."""
        from slimsvm.persistence.atomic import replacing

        with self._lock:
            if not end and time.monotonic() - self._last < self.every:
                return
            try:
                frozen = Frozen(dict(known))
                about = {"facts": facts, "tree": frozen.tree, "n": len(frozen.arrays)}
                search = np.frombuffer(json.dumps(about).encode(), np.uint8)
                arrays: dict[str, Any] = {f"a{k}": a for k, a in enumerate(frozen.arrays)}
                with replacing(self.path) as file:
                    np.savez_compressed(file, search=search, **arrays)
            except (OSError, TypeError) as error:
                warn(
                    f"The checkpoint {self.path} could not be written ({error}); the search goes "
                    "on.",
                    UserWarning,
                )
            self._last = time.monotonic()

    def in_stages(self, estimator: Any, rows: str) -> Stages:
        """For a fit of the estimator that has several searches; ``rows`` is a hash of its rows."""
        given = estimator.get_params()
        own = {name: repr(value) for name, value in given.items() if name not in OTHERS}
        about = {"estimator": type(estimator).__name__, "parameters": own, "rows": rows}
        return Stages(self, about)

    def _check_path(self) -> None:
        target = Path(os.path.realpath(self.path))
        if target.is_dir():
            raise ValueError(f"The checkpoint {self.path} is a folder; give the name of a file.")
        if not target.parent.is_dir():
            raise ValueError(
                f"The folder of the checkpoint, {target.parent}, does not exist; make it first."
            )
        if not os.access(target.parent, os.W_OK):
            raise ValueError(
                f"The checkpoint {self.path} cannot be written: its folder is not writable."
            )

    def _found(self, facts: dict[str, Any]) -> tuple[Kept | None, int]:
        """What an earlier fit left, if it is this one's; and the seed."""
        from slimsvm.persistence.native import read_checkpoint

        # fits without random_state are the same each time, with a checkpoint too
        free = "random_state" in facts["parameters"]
        fresh = int(np.random.default_rng().integers(LARGEST_SEED)) if free else 0
        if not os.path.exists(self.path):
            return None, fresh
        try:
            kind, about, arrays = read_checkpoint(self.path)
        except ValueError as error:
            raise ValueError(
                f"{self.path} is there, but is no checkpoint to go on from, and is left as it is: "
                f"{error} Move it away, or give another path."
            ) from error
        if kind != facts["class"]:
            raise ValueError(
                f"{self.path} is a checkpoint of {kind}, not of {facts['class']}, and is left as "
                "it is: give another path."
            )
        try:
            why = _difference(about, facts)
            if why:
                warn(f"The checkpoint {self.path} is not gone on from: {why}.", UserWarning)
                return None, fresh
            kept = about["kept"]
            if _seal(kept["tree"], [arrays[name] for name in kept["arrays"]]) != about["seal"]:
                raise ValueError("the state of its solver is not what was written")
            known: Kept = _stored(kept, arrays)
            return known, int(about["seed"])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise ValueError(
                f"The checkpoint {self.path} makes no sense ({error!r}); move it away."
            ) from error

    def _write(self, model: Any, kept: Kept, facts: dict[str, Any]) -> None:
        from slimsvm.persistence.native import write

        def further(keep: Callable[[str, Array], str]) -> dict[str, Any]:
            frozen = Frozen(_plain(kept))
            names = [keep(f"checkpoint{k}.npy", array) for k, array in enumerate(frozen.arrays)]
            stored = {"tree": frozen.tree, "arrays": names}
            seal = _seal(frozen.tree, frozen.arrays)
            return {"checkpoint": {**facts, "kept": stored, "seal": seal}}

        try:
            write(model, self.path, None, further)
        except OSError as error:
            warn(
                f"The checkpoint {self.path} could not be written ({error}); the fit goes on.",
                UserWarning,
            )


class Stages(Checkpoint):
    """The checkpoint of a fit that has several searches, one after the other, in one file.

    Parameters
    ----------
    checkpoint : Checkpoint
        That of the fit.
    facts : dict
        What makes the fit the same.
    """

    def __init__(self, checkpoint: Checkpoint, facts: dict[str, Any]) -> None:
        super().__init__(checkpoint.path, checkpoint.every)
        self._whole, self._of_all = checkpoint, facts
        self._stages: dict[Any, Any] = checkpoint.of_search(facts)

    def of_search(self, facts: dict[str, Any]) -> dict[Any, Any]:
        """What an earlier fit left of this one of its searches."""
        return dict(self._stages.get(_name_of(facts), {}))

    def keep_search(self, facts: dict[str, Any], known: dict[Any, Any], end: bool = False) -> None:
        """Write what is known of all searches so far, if it is time to."""
        self._stages[_name_of(facts)] = known
        self._whole.keep_search(self._of_all, self._stages, end)

    def of_last_fit(self) -> Checkpoint:
        """The one for the fit that follows the searches, in a file of its own beside this one."""
        return Checkpoint(f"{self.path}.last", self.every)


def _name_of(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def _plain(kept: Kept | None) -> Any:
    """What is kept, with the parts of frozen values as plain ones."""
    if kept is None:
        return None
    parts = [kept.state, *kept.results]
    taken = [None if part is None else (part.tree, part.arrays) for part in parts]
    lines = [(record.step, record.seconds, dict(record.values)) for record in kept.records]
    return [kept.solver, taken[0], lines, taken[1:], _plain(kept.now)]


def _stored(entry: Any, arrays: dict[str, Array]) -> Any:
    """The way back."""
    from slimsvm.run import Record

    def made(plain: Any) -> Kept | None:
        if plain is None:
            return None
        solver, state, lines, results, now = plain
        records = [Record(*line) for line in lines]
        frozen = [None if part is None else Frozen.of(*part) for part in (state, *results)]
        return Kept(solver, frozen[0], records, [part for part in frozen[1:] if part], made(now))

    return made(Frozen.of(entry["tree"], [arrays[name] for name in entry["arrays"]]).thawed())


def _seal(tree: Any, arrays: Sequence[Array]) -> str:
    """A digest of what is kept of solvers: their states are not checked in any other way."""
    seal = hashlib.sha256(json.dumps(json.loads(json.dumps(tree)), sort_keys=True).encode())
    for array in arrays:
        seal.update(f"{array.dtype.str}{array.shape}".encode())
        seal.update(np.ascontiguousarray(array).tobytes())
    return seal.hexdigest()


def _facts(estimator: Any, data: Data) -> dict[str, Any]:
    """What makes a fit the same: class, parameters, data."""
    from slimsvm.persistence.values import encode
    from slimsvm.rows import MemoryRows

    name = type(estimator).__name__
    parameters: dict[str, Any] = {}
    for key, value in sorted(estimator.get_params(deep=False).items()):
        if key not in OTHERS:
            try:
                parameters[key] = json.loads(json.dumps(encode(value, key, _digest)))
            except ValueError as error:
                raise ValueError(f"A checkpoint cannot keep this {name}: {error}") from error
    far = data.about.get("rows")  # that are not in memory
    rows = MemoryRows(data.X, data.target, data.weight) if far is None else far
    classes = [str(label) for label in np.asarray(data.classes).tolist()]
    return {
        "class": name,
        "parameters": parameters,
        "fingerprint": rows.fingerprint(),
        "classes": classes,
    }


def _digest(name: str, array: Array) -> str:
    """In place of an array that is a parameter."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _difference(about: dict[str, Any], facts: dict[str, Any]) -> str:
    """Why a checkpoint is not that of a fit; empty if it is."""
    then, now = about.get("parameters", {}), facts["parameters"]
    for key in sorted({*then, *now}):
        if then.get(key) != now.get(key):
            return f"it was made with {key}={then.get(key)!r}, not {now.get(key)!r}"
    if about.get("classes") != facts["classes"]:
        return f"its classes are {about.get('classes')}, not {facts['classes']}"
    if about.get("fingerprint") != facts["fingerprint"]:
        return "rows, targets or weights are others"
    return ""


def _of_few_rows(estimator: Any, data: Data) -> Any:
    """A model of some rows, as long as there is none of all; None where there is none either."""
    from copy import copy

    from slimsvm.training import Fit

    model = copy(estimator)
    for name in ("_callback_fit_ctx", "_skl_callbacks_to_teardown", "_skl_callbacks"):
        model.__dict__.pop(name, None)
    limits = Limits(stopped=True)
    try:
        ending = model._concluded_on_few_rows(data, Fit(limits, 1, ()))
    except Exception:
        warn(
            f"{type(estimator).__name__} has no model before its fit ends: only then the "
            "checkpoint is written, and a fit that was ended before begins anew.",
            UserWarning,
        )
        return None
    words = "Kept by a checkpoint before there was a model of all rows: it is that of some of them."
    model.certificate_, model.status_ = ending.certificate, Status("stopped", words)
    model.history_, model.fit_status_ = ending.history, 1
    return model
