"""scikit-learn's names for support vector machines, made to mean ours: in memory, for a while.

``sklearn.svm.SVC`` and its kin are handled in three ways, so that no reference to them is missed:

1. their names in ``sklearn.svm``, and in every module that imported them before, become ours;
2. scikit-learn's own classes make objects of ours when they are called: that reaches references in
   functions, lists and dictionaries. ``sklearn.svm._classes`` keeps them, so that their pickles can
   be written and read as ever;
3. what joblib sends to its workers asks them to do the same for the time of the call.

The classes below are ours with one addition: what they refuse although scikit-learn would do it
(:class:`slimsvm.training.Unsupported`) is done by scikit-learn's class, with one line of reason.
They derive from scikit-learn's, too, so that they are its instances for whoever asks, and have a
module and a name, so that what is pickled under the patch is loaded without it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from types import TracebackType
from typing import Any, Self

import joblib.parallel
import sklearn
import sklearn.svm
from sklearn.svm import _classes as originals
from sklearn.utils.fixes import parse_version

from slimsvm import estimators
from slimsvm.ending import warn
from slimsvm.training import Unsupported

OLDEST = "1.9"  # of scikit-learn: the interface that ours are made after
NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")
TIMED = ("predict", "decision_function", "predict_proba", "predict_log_proba", "score_samples")
HOME = "sklearn.svm._classes"


# -- what was replaced -----------------------------------------------------------------------------


@dataclass
class Tally:
    """How often a class did something, and for how long."""

    calls: int = 0
    seconds: float = 0.0


@dataclass
class Profile:
    """What happened under a patch, in this process: calls and seconds by class and method."""

    ours: dict[tuple[str, str], Tally] = field(default_factory=dict)
    theirs: dict[tuple[str, str], Tally] = field(default_factory=dict)  # by class and reason

    def add(self, kept: dict[tuple[str, str], Tally], name: str, what: str, since: float) -> None:
        """Note one call."""
        with _lock:
            tally = kept.setdefault((name, what), Tally())
            tally.calls += 1
            tally.seconds += time.perf_counter() - since

    def in_words(self) -> str:
        """A line for each class and method, and for each reason to leave it to scikit-learn."""
        lines = ["slimsvm: what was replaced (calls in this process, seconds)"]
        for (name, what), tally in sorted(self.ours.items()):
            lines.append(f"  {f'{name}.{what}':<30} {tally.calls:>7,} {tally.seconds:>10.3f} s")
        if not self.ours:
            lines.append("  nothing: no estimator of sklearn.svm was used")
        for (name, reason), tally in sorted(self.theirs.items()):
            lines.append(
                f"  {name}.fit by scikit-learn: {tally.calls:,} x, {tally.seconds:.3f} s: {reason}"
            )
        return "\n".join(lines)


_lock = threading.RLock()
_profile = Profile()
_inside = threading.local()  # whether a method that is timed runs another one


# -- the classes -----------------------------------------------------------------------------------


def _fit_or_hand_over(name: str, fit: Callable[..., Any]) -> Callable[..., Any]:
    """``fit`` of ours; by scikit-learn's class where ours says that it cannot."""

    @wraps(fit)
    def fit_here(self: Any, *args: Any, **kwargs: Any) -> Any:
        since = time.perf_counter()
        try:
            fit(self, *args, **kwargs)
            _profile.add(_profile.ours, name, "fit", since)
        except Unsupported as error:
            reason, kind, since = str(error), getattr(originals, name), time.perf_counter()
            warn(f"{name} is left to scikit-learn: {reason}", UserWarning)
            with _calling_plainly():
                theirs = kind(**{p: getattr(self, p) for p in kind._get_param_names()})
            theirs.fit(*args, **kwargs)
            _profile.add(_profile.theirs, name, reason, since)
            self.__dict__.clear()
            self.__class__ = kind
            self.__dict__.update(theirs.__dict__)
        return self

    return fit_here


def _timed(name: str, method: str, run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def run_timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(_inside, "yes", False):
            return run(self, *args, **kwargs)
        since, _inside.yes = time.perf_counter(), True
        try:
            return run(self, *args, **kwargs)
        finally:
            _inside.yes = False
            _profile.add(_profile.ours, name, method, since)

    return run_timed


class _Absent:
    """In place of a property of scikit-learn's class that is a fitted attribute of ours."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")


def _replacement(name: str) -> type:
    ours, theirs = getattr(estimators, name), getattr(originals, name)
    body: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": name,
        "__doc__": ours.__doc__,
        "fit": _fit_or_hand_over(name, ours.fit),
        "_saved_as": ours,
    }
    for method in TIMED:
        found = next((vars(base)[method] for base in ours.__mro__ if method in vars(base)), None)
        if callable(found):  # not one that is there only sometimes
            body[method] = _timed(name, method, found)
    known = {attribute for base in ours.__mro__ for attribute in vars(base)}
    for base in theirs.__mro__:
        for attribute, value in vars(base).items():
            if isinstance(value, property) and attribute not in known:
                body[attribute] = _Absent()
    return type(originals.SVC)(name, (ours, theirs), body)


REPLACEMENTS: dict[str, type] = {
    name: _replacement(name) for name in NAMES if name in estimators.REGISTRY
}
globals().update(REPLACEMENTS)  # where pickles look for them
_CLASSES = {
    id(kind) for name, ours in REPLACEMENTS.items() for kind in (getattr(originals, name), ours)
}
_without: dict[str, tuple[int, int]] = {}  # modules that have none of these: which, and their names


# -- the patch -------------------------------------------------------------------------------------


def _init_of_ours(original: type, ours: type) -> Callable[..., None]:
    """For the original class: whoever calls it gets one of ours. Unpickling calls no __init__."""
    init: Callable[..., None] = original.__init__  # type: ignore[misc]

    @wraps(init)  # the signature says which parameters there are
    def init_here(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is original and not getattr(_inside, "plainly", False):
            self.__class__ = ours
            ours.__init__(self, *args, **kwargs)  # type: ignore[misc]
        else:
            init(self, *args, **kwargs)

    return init_here


@contextmanager
def _calling_plainly() -> Iterator[None]:
    """scikit-learn's classes make their own objects."""
    before = getattr(_inside, "plainly", False)
    _inside.plainly = True
    try:
        yield
    finally:
        _inside.plainly = before


def _renamed(old: dict[int, type], skip_known: bool = False) -> None:
    """Let every name of a module that stands for an old class (by identity) stand for the new.

    With ``skip_known``, modules in which none of the classes was found stay unread as long as they
    have as many names as then.
    """
    for where, module in list(sys.modules.items()):
        if module is None or where == HOME or where.split(".")[0] == "slimsvm":
            continue
        try:
            names = vars(module)
        except TypeError:
            continue
        if skip_known and _without.get(where) == (id(module), len(names)):
            continue
        found = [
            (name, id(value))
            for name, value in list(names.items())
            if isinstance(value, type) and id(value) in _CLASSES
        ]
        for name, value in found:
            if value in old:
                names[name] = old[value]
        if not found:
            _without[where] = (id(module), len(names))


class _PatchedCalls(joblib.parallel.BatchedCalls):
    """A batch of joblib's that is carried out under the patch."""

    def __call__(self) -> Any:
        with _applied():
            return super().__call__()


_plain_reduce = joblib.parallel.BatchedCalls.__reduce__


def _reduce_patched(batch: Any) -> Any:
    """How a batch is sent to a worker while scikit-learn is patched."""
    return (_PatchedCalls, _plain_reduce(batch)[1])


_inits: dict[str, Any] = {}  # of the originals while they are patched
_depth = 0  # how many patches are to be taken back


def _apply(skip_known: bool = False) -> None:
    for name, ours in REPLACEMENTS.items():
        original = getattr(originals, name)
        _inits[name] = original.__init__
        original.__init__ = _init_of_ours(original, ours)
    old = {id(getattr(originals, name)): ours for name, ours in REPLACEMENTS.items()}
    _renamed(old, skip_known)
    joblib.parallel.BatchedCalls.__reduce__ = _reduce_patched


def _take_back(skip_known: bool = False) -> None:
    joblib.parallel.BatchedCalls.__reduce__ = _plain_reduce
    old = {id(ours): getattr(originals, name) for name, ours in REPLACEMENTS.items()}
    _renamed(old, skip_known)
    for name, init in _inits.items():
        getattr(originals, name).__init__ = init
    _inits.clear()


@contextmanager
def _applied() -> Iterator[None]:
    """The patch for a while, in silence: in a worker of joblib.

    Each batch of calls comes here, and those may take a millisecond: a look at all names of all
    modules (some 80,000, 25 ms) would take longer than they.
    """
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            _apply(skip_known=True)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _take_back(skip_known=True)


class Patch:
    """A patch that was applied; as a context manager, it is taken back at the end.

    Attributes
    ----------
    profile : Profile
        Calls and seconds by class and method, and what was left to scikit-learn and why.
    """

    @property
    def profile(self) -> Profile:
        """What happened since the patch was applied."""
        return _profile

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        unpatch_sklearn()


def patch_sklearn() -> Patch:
    """Let ``sklearn.svm`` mean slimsvm in this process, and in the workers that joblib starts.

    Names that were imported before are reached, too, and nothing on disk is changed. What slimsvm
    refuses although scikit-learn would do it is done by scikit-learn's class, with a warning that
    says why. Estimators that are pickled under the patch are loaded without it.

    Returns
    -------
    Patch
        A context manager: ``with patch_sklearn():`` takes the patch back at the end. It has a
        ``profile``.

    Raises
    ------
    RuntimeError
        If scikit-learn is older than 1.9.

    Warns
    -----
    UserWarning
        If scikit-learn is patched already; the patch then ends with the last of as many
        :func:`unpatch_sklearn`.

    See Also
    --------
    unpatch_sklearn : Takes it back.

    Examples
    --------
    >>> import slimsvm
    >>> from sklearn.svm import SVC
    >>> with slimsvm.patch_sklearn():
    ...     model = SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> isinstance(model, slimsvm.SVC), model.certificate_.holds
    (True, True)
    """
    global _depth, _profile
    if parse_version(sklearn.__version__).release < parse_version(OLDEST).release:
        raise RuntimeError(
            f"patch_sklearn needs scikit-learn {OLDEST} or newer, whose interface slimsvm has; "
            f"this is {sklearn.__version__}. Install a newer one, or import from slimsvm instead "
            "of sklearn.svm."
        )
    with _lock:
        _depth += 1
        if _depth == 1:
            _profile = Profile()
            _apply()
        else:
            warn(
                "scikit-learn is patched already: nothing was changed. It stays patched until "
                f"unpatch_sklearn has been called {_depth} times.",
                UserWarning,
            )
    return Patch()


def unpatch_sklearn() -> None:
    """Take :func:`patch_sklearn` back: ``sklearn.svm`` is scikit-learn's again.

    Estimators that were made under the patch stay what they are.

    Warns
    -----
    UserWarning
        If scikit-learn is not patched.

    Examples
    --------
    >>> import slimsvm, sklearn.svm
    >>> patch = slimsvm.patch_sklearn()
    >>> slimsvm.unpatch_sklearn()
    >>> sklearn.svm.SVC.__module__
    'sklearn.svm._classes'
    """
    global _depth
    with _lock:
        if _depth == 0:
            warn("scikit-learn is not patched: there is nothing to take back.", UserWarning)
            return
        _depth -= 1
        if _depth == 0:
            _take_back()
