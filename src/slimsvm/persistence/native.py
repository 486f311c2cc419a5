"""slimsvm's own model file: a zip of ``header.json`` and one ``.npy`` member for each array.

Nothing in it is ever executed. header.json, format version 1:

    format, format_version    "slimsvm", 1
    slimsvm_version           the version that wrote the file
    about                     when it was written (UTC), the versions of the libraries, and what the
                              user has to say; not in files of slimsvm 0.1
    class                     SVC, NuSVC, SVR, NuSVR, OneClassSVM, SparseSVC, SparseSVR, LinearSVC,
                              LowRankSVC, ReducedSVC, OnlineSVC, CoreVectorSVC, CrossTraining,
                              StructuralSVM, CrammerSingerSVC, MultivariateSVC or ChainSVM
    parameters, fitted        constructor parameters and fitted attributes, as written by
                              :mod:`slimsvm.persistence.values`
    arrays                    for each member: dtype, shape, and the SHA-256 of its bytes
    sha256                    of all of the above, as JSON with sorted keys and no spaces

The same model gives the same bytes where SOURCE_DATE_EPOCH says when it was written, as the builds
of distributions do: members are in a fixed order and carry no time.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import platform
import time
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.persistence.atomic import replacing
from slimsvm.persistence.fitted import OWN, check_savable, class_named
from slimsvm.persistence.values import DTYPES, decode, encode_estimator

Array = NDArray[Any]
Members = dict[str, zipfile.ZipInfo]
FORMAT, FORMAT_VERSION, HEADER = "slimsvm", 1, "header.json"
MAX_HEADER = 1 << 26  # bytes; even ten thousand class weights need a hundredth of this
# bytes before the data of an array of plain numbers or strings: NumPy writes 128
MAX_NPY_HEADER = 4096
MAX_RATIO = 1100  # deflate expands at most 1032 times
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    KeyError,
    OverflowError,
    MemoryError,
)


def save(
    estimator: Any,
    path: str | os.PathLike[str] | IO[bytes],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to a model file of slimsvm's own format (``.slim``).

    The file is a zip of a readable header and of NumPy arrays; it contains no pickle, so a file
    from a stranger can be loaded safely. It is written to a temporary file first and then renamed:
    an older file of that name is replaced whole or stays untouched.

    Parameters
    ----------
    estimator : one of slimsvm's estimators, or a pipeline of them
        A fitted one, of any class; or a ``Pipeline`` or ``CalibratedClassifierCV`` of scikit-learn
        around them whose other steps have arrays as their state (scalers, imputers, PCA, Nystroem).
        The path of a sparse model is kept, so that ``truncated`` works on the one that is loaded;
        so is the state of a stream, so that ``partial_fit`` goes on as if nothing had happened.
    path : str, path-like or file object
        Where to write; the usual ending is ``.slim``. A file object is open for bytes, and stays
        open.
    metadata : mapping, optional
        Whatever else the file is to hold, with names as keys: anything that JSON knows (text,
        numbers, lists, mappings). :func:`file_facts` reads it.

    Raises
    ------
    ValueError
        If the kernel is a Python function, or a parameter, a label or metadata is of a kind that a
        file cannot hold.
    NotFittedError
        If the estimator was not fitted.

    See Also
    --------
    load : Read such a file.
    file_facts : What a file says of itself.
    save_libsvm, save_svmlight : Write the model files of LIBSVM and SVM-light.

    Examples
    --------
    >>> import os, tempfile
    >>> from slimsvm import SVC
    >>> from slimsvm.persistence import load, save
    >>> model = SVC().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.slim")
    ...     save(model, path)
    ...     load(path).predict([[0.5], [2.5]])
    array(['low', 'high'], dtype='<U4')
    """
    write(estimator, path, metadata)


def write(
    estimator: Any,
    path: Any,
    metadata: Mapping[str, Any] | None = None,
    further: Callable[[Callable[[str, Array], str]], dict[str, Any]] | None = None,
) -> None:
    """:func:`save`, and what ``further`` puts into the header.

    It gets a function that keeps an array by a name.
    """
    from slimsvm import __version__  # here, since the package imports this module

    check_savable(estimator, OWN)
    arrays: dict[str, Array] = {}

    def keep(name: str, array: Array) -> str:
        for known, other in arrays.items():
            if other is array:  # a model and the end of its path share theirs
                return known
        if name in arrays:
            raise ValueError(f"two arrays of the estimator would be called {name}")
        arrays[name] = array
        return name

    header: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "slimsvm_version": __version__,
        "about": _about(metadata),
        **encode_estimator(estimator, "", keep),
        **(further(keep) if further is not None else {}),
        "arrays": {},
    }
    with _writing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(_member(name), "w", force_zip64=array.nbytes > 1 << 30) as member:
                hashing = _Hashing(member)
                np.lib.format.write_array(hashing, array, allow_pickle=False)
            header["arrays"][name] = {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "sha256": hashing.digest(),
            }
        header["sha256"] = _header_hash(header)
        # a state of a solver is no reading matter, and lines take the compiled encoder away
        indent = 1 if further is None else None
        archive.writestr(_member(HEADER), json.dumps(header, indent=indent, allow_nan=False))


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[str, Any, dict[str, Array]]:
    """The class of the model in a checkpoint, what is said of the fit, and its arrays."""

    def found(archive: zipfile.ZipFile, header: dict[str, Any], members: Members) -> Any:
        if "checkpoint" not in header:
            raise ValueError("it holds a model that is no checkpoint")
        arrays = {
            name: _read_array(archive, info, header["arrays"][name])
            for name, info in members.items()
            if name.startswith("checkpoint")
        }
        return header["class"], header["checkpoint"], arrays

    found_there: tuple[str, Any, dict[str, Array]] = _from_file(
        path, lambda file: _opened(file, found)
    )
    return found_there


def file_facts(path: str | os.PathLike[str] | IO[bytes]) -> dict[str, Any]:
    """What a model file says of itself: only its header is read.

    Parameters
    ----------
    path : str, path-like or file object
        As for :func:`load`.

    Returns
    -------
    dict
        "class" and "slimsvm_version"; "saved", the time in UTC, "versions" of the libraries and
        "metadata", as :func:`save` got it (None and empty in files of slimsvm 0.1).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        As :func:`load`.

    Examples
    --------
    >>> import io
    >>> from slimsvm import SVC
    >>> from slimsvm.persistence import file_facts, save
    >>> file = io.BytesIO()
    >>> save(SVC().fit([[0.0], [1.0]], [0, 1]), file, metadata={"trained on": "two rows"})
    >>> facts = file_facts(io.BytesIO(file.getvalue()))
    >>> facts["class"], facts["metadata"]
    ('SVC', {'trained on': 'two rows'})
    """
    header = _from_file(path, lambda file: _opened(file, lambda archive, header, members: header))
    about = {"saved": None, "versions": {}, "metadata": {}, **header.get("about", {})}
    return {"class": header["class"], "slimsvm_version": header.get("slimsvm_version"), **about}


def _about(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """When and with what a file is written, and what the user has to say."""
    given = {} if metadata is None else metadata
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"metadata must be a mapping with text as keys, got {metadata!r}.")
    try:
        plain = json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"metadata can hold what JSON can: text, finite numbers, lists, mappings ({error})."
        ) from error
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = int(said) if said.isdecimal() else time.time()
    names = ("numpy", "scipy", "scikit-learn", "numba")
    return {
        "saved": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
        "versions": {"python": platform.python_version(), **{n: version(n) for n in names}},
        "metadata": plain,
    }


def _writing(path: Any) -> AbstractContextManager[IO[bytes]]:
    """The file to write to; one that is open already stays so."""
    return nullcontext(path) if hasattr(path, "write") else replacing(path)


def load(path: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Read an estimator that :func:`save` wrote; it predicts bit for bit what the saved one did.

    Parameters
    ----------
    path : str, path-like or file object
        The file; or one that is open for bytes.

    Returns
    -------
    one of slimsvm's estimators
        The fitted estimator.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is of another kind, is damaged, was altered, or was written by a newer version
        of slimsvm that changed the format.

    See Also
    --------
    save : Write such a file; it has an example.
    load_libsvm, load_svmlight : Read the model files of LIBSVM and SVM-light.
    """
    return _from_file(path, _read)


def _from_file(path: Any, read: Callable[[IO[bytes]], Any]) -> Any:
    """What ``read`` finds in the file; what is wrong with it is said with its name."""
    opened: IO[bytes]
    if isinstance(path, str | os.PathLike):
        name, opened = os.fspath(path), open(path, "rb")  # noqa: SIM115
    else:  # an archive is read from its end: a stream that only goes forward is read whole
        name, opened = str(getattr(path, "name", "The file")), io.BytesIO(path.read())
    with opened as file:
        try:
            return read(file)
        except BROKEN as error:
            detail = str(error) or type(error).__name__
            raise ValueError(
                f"{name} is damaged or cut short ({detail}); get or write the file again."
            ) from error
        except ValueError as error:
            raise ValueError(f"{name} is not a model that can be loaded: {error}.") from error


def _read(file: IO[bytes]) -> Any:
    """The estimator."""

    def decoded(archive: zipfile.ZipFile, header: dict[str, Any], members: Members) -> Any:
        arrays = {
            name: _read_array(archive, info, header["arrays"][name])
            for name, info in members.items()
        }
        return decode({**header, "type": "estimator"}, arrays.__getitem__)

    return _opened(file, decoded)


def _opened(file: IO[bytes], use: Callable[[zipfile.ZipFile, dict[str, Any], Members], Any]) -> Any:
    """What ``use`` makes of the archive, its header and the other members."""
    start = file.read(16)
    if not start:
        raise ValueError("the file is empty")
    if not start.startswith(b"PK"):
        raise ValueError(f"it is no slimsvm model file (a zip archive); it {_guess(start)}")
    with zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        if HEADER not in members:
            raise ValueError(f"it is a zip archive without {HEADER}, so not one that slimsvm wrote")
        if len(members) != len(archive.infolist()):
            raise ValueError("it has two members of the same name")
        header = _read_header(archive, members.pop(HEADER))
        if set(members) != set(header["arrays"]):
            odd = min(set(members) ^ set(header["arrays"]))
            raise ValueError(
                f"its header and its members disagree about {odd!r}: something was added, removed "
                "or renamed"
            )
        return use(archive, header, members)


def _read_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict[str, Any]:
    """The header, checked as far as it can be without the arrays."""
    if info.file_size > MAX_HEADER:
        raise ValueError(f"its {HEADER} has {info.file_size} bytes, more than any model needs")
    try:
        header = json.loads(archive.read(info), parse_constant=_refuse_constant)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"its {HEADER} is not JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"it is a zip archive whose {HEADER} is not slimsvm's")
    version = header.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"its format version is {version!r}, expected {FORMAT_VERSION}")
    if version > FORMAT_VERSION:
        from slimsvm import __version__

        raise ValueError(
            f"it has format version {version}, written by slimsvm "
            f"{header.get('slimsvm_version')}; slimsvm {__version__} reads versions up to "
            f"{FORMAT_VERSION}: install a newer slimsvm"
        )
    if header.pop("sha256", None) != _header_hash(header):
        raise ValueError(
            f"its {HEADER} does not have the SHA-256 that it states: the file was altered"
        )
    class_named(header.get("class"))
    for part in ("parameters", "fitted", "arrays"):
        if not isinstance(header.get(part), dict):
            raise ValueError(f"its {HEADER} has no {part!r}")
    if not isinstance(header.get("about", {}), dict):
        raise ValueError(f"its {HEADER} says {header['about']!r} about itself")
    return header


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, entry: Any) -> Array:
    """One array; its size is checked before any memory is taken, its hash before anyone sees it."""
    name = info.filename
    try:
        dtype, shape, digest = (
            np.dtype(str(entry["dtype"])),
            tuple(int(n) for n in entry["shape"]),
            str(entry["sha256"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the header's entry for {name} makes no sense ({error})") from error
    if dtype.kind not in DTYPES or min(shape, default=0) < 0:
        raise ValueError(f"{name} is declared as {dtype} of shape {shape}, which no model has")
    n_bytes = math.prod(shape) * dtype.itemsize
    if not n_bytes < info.file_size <= n_bytes + MAX_NPY_HEADER:
        raise ValueError(
            f"{name} has {info.file_size} bytes, but {dtype} of shape {shape} needs {n_bytes} and "
            "a short header"
        )
    if info.file_size > MAX_RATIO * (info.compress_size + 64):
        raise ValueError(
            f"{name} claims to unpack {info.compress_size} bytes to {info.file_size}, which is "
            "impossible"
        )
    with archive.open(info) as member:
        hashing = _Hashing(member)
        start = io.BytesIO(hashing.read(min(info.file_size, MAX_NPY_HEADER)))
        _check_npy_header(start, dtype, shape, name)
        start.seek(0)
        array = np.lib.format.read_array(
            _Joined(start, hashing),  # type: ignore[arg-type]
            allow_pickle=False,
        )
        hashing.read(1)  # at the end of a member zipfile compares its checksum
    if hashing.digest() != digest:
        raise ValueError(
            f"{name} does not have the SHA-256 that the header states: the file was altered"
        )
    return array


def _check_npy_header(
    start: io.BytesIO, dtype: np.dtype[Any], shape: tuple[int, ...], name: str
) -> None:
    """The array's own header must say what ours says: it decides how much memory is taken."""
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(start)
    if version not in read:
        raise ValueError(f"{name} is of the unknown .npy version {version}")
    try:
        own_shape, _, own_dtype = read[version](start)
    except (SyntaxError, TypeError, tokenize.TokenError, RecursionError) as error:
        raise ValueError(f"the header of {name} makes no sense ({error})") from error
    if (own_shape, own_dtype) != (shape, dtype):
        raise ValueError(
            f"{name} is {own_dtype} of shape {own_shape}, but the header says {dtype} of shape "
            f"{shape}"
        )


class _Hashing:
    """A file whose bytes are hashed as they pass."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self._sha = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._sha.update(data)
        return self.file.write(data)

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self._sha.update(data)
        return data

    def digest(self) -> str:
        return self._sha.hexdigest()


class _Joined:
    """What was read ahead, and then the rest."""

    def __init__(self, start: io.BytesIO, rest: _Hashing) -> None:
        self.start, self.rest = start, rest

    def read(self, size: int) -> bytes:
        data = self.start.read(size)
        return data if len(data) == size else data + self.rest.read(size - len(data))


def _header_hash(header: dict[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)  # dated 1980: the same model gives the same file
    info.compress_type = zipfile.ZIP_DEFLATED
    # numbers of full precision gain nothing from more; the private name works in all versions
    info._compresslevel = 1  # type: ignore[attr-defined]
    info.external_attr = 0o644 << 16
    return info


def _guess(start: bytes) -> str:
    if start.startswith((b"svm_type", b"kernel_type")):
        return "looks like a model file of LIBSVM: read it with slimsvm.persistence.load_libsvm"
    if start.startswith(b"SVM-light"):
        return (
            "looks like a model file of SVM-light: read it with slimsvm.persistence.load_svmlight"
        )
    if start.startswith(b"\x80"):
        return (
            "looks like a pickle: read it with pickle or joblib, if you trust where it comes from"
        )
    return f"begins with {start!r}"


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} in its {HEADER}")
