"""``load``: a data set by its name, from the nearest place that has it.

1. The folder that SLIMSVM_DATA names: ``NAME.npz`` in the layout of ``readers``, or the files of
   the official source, packed or not. They are taken as they are.
2. The cache: a folder with ``NAME.npz`` of what was downloaded before. The net is not asked.
3. The official source: files are downloaded, checked, read, checked again, kept as ``NAME.npz`` in
   the cache, and removed.
"""

from __future__ import annotations

import difflib
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from slimsvm.datasets.catalogue import CATALOGUE, Entry, File
from slimsvm.datasets.download import ChecksumError, DownloadError, alone, fetch
from slimsvm.datasets.readers import UNREADABLE, Arrays, content_digest, pack, unpack
from slimsvm.ending import warn
from slimsvm.persistence.atomic import replacing

# what NumPy raises over a broken archive (one that is encrypted or packed in an unknown way
# included), and over one array in place of it
DAMAGED = (
    *UNREADABLE,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    TypeError,
    AttributeError,
)
FOUR = ("X_train", "y_train", "X_test", "y_test")


def names() -> list[str]:
    """Which data sets ``load`` knows.

    Returns
    -------
    list of str
        Their names.

    Examples
    --------
    >>> from slimsvm import datasets
    >>> datasets.names()[:5]
    ['a9a', 'ijcnn1', 'mnist', 'covtype', 'rcv1']
    """
    return list(CATALOGUE)


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Where downloaded data sets are kept; it need not be there yet.

    Parameters
    ----------
    cache : str, path-like or None
        A folder; None: the one that the environment variable SLIMSVM_CACHE names, else the place
        for caches of this user and system.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> from slimsvm.datasets import cache_folder
    >>> cache_folder("somewhere").as_posix()
    'somewhere'
    """
    named = cache if cache is not None else os.environ.get("SLIMSVM_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "slimsvm" / "datasets"


def load(
    name: str,
    *,
    return_X_y: bool = False,
    cache: str | os.PathLike[str] | None = None,
    download: bool = True,
    progress: bool | None = None,
) -> Any:
    """Load a data set of the literature by its name.

    It comes from the folder that the environment variable SLIMSVM_DATA names, else from the cache,
    else from its official source: then it is downloaded once, checked, and kept in the cache. A
    download that breaks off goes on where it was when you call again.

    Parameters
    ----------
    name : str
        One of ``slimsvm.datasets.names()``, such as "a9a", "ijcnn1", "mnist", "covtype", "rcv1" or
        "letter".
    return_X_y : bool, default=False
        Return the tuple ``(X_train, y_train, X_test, y_test)`` instead of a Bunch.
    cache : str, path-like or None
        The cache, see ``cache_folder``.
    download : bool, default=True
        Whether the net may be asked.
    progress : bool or None
        Show how far a download is; None: if the error output is a terminal.

    Returns
    -------
    Bunch
        A dictionary whose keys are attributes too:

        - ``X_train``, ``X_test``: float32, arrays or CSR matrices;
        - ``y_train``, ``y_test``: classes as small integers, or float32 for regression;
        - ``name``, ``task`` ("binary", "26 classes", "regression", ...), and ``DESCR``: what it is
          and where it comes from;
        - ``target_names``, where classes have names.

        Where the source has no test part, ``X_train`` and ``y_train`` are everything, and
        ``X_test`` and ``y_test`` are None.

    Raises
    ------
    ValueError
        If there is no data set of this name; the message lists those there are.
    DownloadError
        If it is not here and cannot be downloaded; the message says what to do.
    ChecksumError
        If what was downloaded is not this data set; nothing of it is kept.

    See Also
    --------
    checkers, banana, waveform : Data sets that need no files.

    Examples
    --------
    A folder with a data set of the user's own making, and how ``load`` finds it:

    >>> import os, tempfile
    >>> import numpy as np
    >>> from slimsvm import datasets
    >>> X, y = datasets.banana(5300)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = {"X_train": X[:400], "y_train": y[:400], "X_test": X[400:], "y_test": y[400:]}
    ...     np.savez(os.path.join(folder, "banana.npz"), **parts)
    ...     bananas = datasets.load("banana", cache=folder)
    >>> bananas.X_train.shape, bananas.X_test.shape, bananas.task
    ((400, 2), (4900, 2), 'binary')
    """
    entry = _entry(name)
    arrays = _from_data_folder(name, entry)
    if arrays is None:
        arrays = _from_cache(name, entry, cache_folder(cache), download, progress)
    if entry.finish is not None:
        arrays = entry.finish(arrays)
    elif "X" in arrays:
        arrays = {"X_train": arrays["X"], "y_train": arrays["y"]}
    four = {key: arrays.get(key) for key in FOUR}
    if return_X_y:
        return tuple(four.values())
    extra = {key: arrays[key] for key in ("target_names",) if key in arrays}
    return Bunch(**four, **extra, name=name, task=entry.task, DESCR=entry.origin)


def _entry(name: str) -> Entry:
    """What the catalogue says of a data set."""
    if isinstance(name, str) and name in CATALOGUE:
        return CATALOGUE[name]
    near = difflib.get_close_matches(str(name).lower(), CATALOGUE, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"There is no data set {name!r}.{guess} Those there are: {', '.join(CATALOGUE)}."
    )


def _from_data_folder(name: str, entry: Entry) -> Arrays | None:
    """From the folder that SLIMSVM_DATA names, as it is there; None if it is not."""
    named = os.environ.get("SLIMSVM_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(
            f"The environment variable SLIMSVM_DATA names {named!r}, which is no folder; correct "
            "it or unset it."
        )
    if (folder / f"{name}.npz").exists():
        return _read_kept(folder / f"{name}.npz")
    paths = [path for file in entry.files if (path := _present(folder, file))]
    if entry.read is None or len(paths) < len(entry.files):
        return None
    try:
        return entry.read(paths)
    except UNREADABLE as error:
        raise ValueError(
            f"{', '.join(map(str, paths))}: not the files of {name!r}, or damaged ({error})."
        ) from error


def _from_cache(
    name: str, entry: Entry, cache: Path, download: bool, progress: bool | None
) -> Arrays:
    """From the cache; what it lacks is downloaded into it."""
    kept = cache / f"{name}.npz"
    if kept.exists():
        return _read_kept(kept)
    if entry.read is None:
        raise DownloadError(
            f"The data set {name!r} is not here, and no official source has it in this form. Set "
            f"the environment variable SLIMSVM_DATA to a folder that holds {name}.npz. Or: "
            f"{entry.instead}."
        )
    if not download and not all(_present(cache, file) for file in entry.files):
        raise DownloadError(
            f"The data set {name!r} is not here, and download=False forbids to fetch it. "
            f"{_what_to_do(name, entry, cache)}"
        )
    try:
        with alone(cache):
            if kept.exists():  # another process was quicker
                return _read_kept(kept)
            paths = [
                _present(cache, file)
                or fetch(file.urls, cache / file.name, sha256=file.sha256, progress=progress)
                for file in entry.files
            ]
            arrays = _checked(name, entry, paths)
            with replacing(kept) as file:
                np.savez_compressed(file, **pack(arrays))  # type: ignore[arg-type]
            for path in paths:
                path.unlink(missing_ok=True)
            return arrays
    except ChecksumError:
        raise
    except DownloadError as error:
        raise DownloadError(
            f"The data set {name!r} is not here, and {error} {_what_to_do(name, entry, cache)}"
        ) from error
    except OSError as error:
        raise DownloadError(
            f"The data set {name!r} is not here, and its files cannot be kept in {cache} "
            f"({error.strerror or error}). Name a folder that can be written with cache=..., or "
            "with the environment variable SLIMSVM_CACHE."
        ) from error


def _present(folder: Path, file: File) -> Path | None:
    """A file of a source in a folder, as it is or unpacked."""
    unpacked = file.name.removesuffix(".bz2").removesuffix(".gz")
    return next(
        (folder / name for name in (file.name, unpacked) if (folder / name).is_file()), None
    )


def _read_kept(path: Path) -> Arrays:
    """The arrays of an ``.npz`` file; never runs code from it."""
    with open(path, "rb") as opened:
        try:
            with np.load(opened, allow_pickle=False) as file:
                arrays = unpack(file)
            if not ({"X", "y"} <= set(arrays) or {"X_train", "y_train"} <= set(arrays)):
                raise ValueError(
                    "it has no rows and labels X and y, or X_train and y_train, but "
                    f"{', '.join(arrays) or 'nothing'}"
                )
            return arrays
        except DAMAGED as error:
            raise ValueError(
                f"{path} is damaged or no data set ({error}). Delete it, and load the data set "
                "again."
            ) from error


def _checked(name: str, entry: Entry, paths: list[Path]) -> Arrays:
    """Read the files of a source; what is not the data set that was expected is removed."""
    assert entry.read is not None
    try:
        arrays = entry.read(paths)
        wrong = _difference(entry, arrays)
    except UNREADABLE as error:
        wrong = f"they cannot be read ({error})"
    if not wrong:
        if entry.content is None and not all(file.sha256 for file in entry.files):
            warn(
                f"No digest of the data set {name!r} is known: what was downloaded came over TLS, "
                "and has the rows and features that it should have, but nobody can tell whether "
                f"its numbers are right. The digest of its content is {content_digest(arrays)}.",
                UserWarning,
            )
        return arrays
    for path in paths:
        path.unlink(missing_ok=True)
    raise ChecksumError(
        f"The files that were downloaded for {name!r} are not the data set that was expected: "
        f"{wrong}. Nothing of them was kept. Either the source has changed, or something on the "
        "way. Files in the folder that SLIMSVM_DATA names are taken without this check: "
        f"{', '.join(url for file in entry.files for url in file.urls[:1])}."
    )


def _difference(entry: Entry, arrays: Arrays) -> str:
    """What is not as the catalogue says; empty if all is well."""
    for part, n in (("X" if "X" in arrays else "X_train", entry.n_train), ("X_test", entry.n_test)):
        shape = arrays[part].shape if part in arrays else (0, entry.n_features)
        if shape != (n, entry.n_features):
            return (
                f"{part} has {shape[0]:,} rows of {shape[1]:,} features instead of {n:,} of "
                f"{entry.n_features:,}"
            )
        if n and len(arrays[part.replace("X", "y")]) != n:
            return "the labels are not as many as the rows"
    if entry.content is not None and (found := content_digest(arrays)) != entry.content:
        return f"the SHA-256 digest of their content is {found} instead of {entry.content}"
    return ""


def _what_to_do(name: str, entry: Entry, cache: Path) -> str:
    """How to come by a data set otherwise."""
    files = "\n".join(f"  {file.urls[0]}" for file in entry.files)
    return (
        "What you can do:\n"
        f"- Go online and call load({name!r}) again: what has arrived so far is kept in {cache}.\n"
        f"- Set the environment variable SLIMSVM_DATA to a folder that holds {name}.npz, or the "
        "files of the official source.\n"
        f"- Download these by other means, and put them into that folder:\n{files}"
    )
