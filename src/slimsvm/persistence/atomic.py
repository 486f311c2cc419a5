"""Files that are replaced whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, text: bool = False) -> Iterator[IO[Any]]:
    """Open a file that takes the place of ``path`` when the block ends.

    If the block fails, the file vanishes. The data goes to a temporary file in the same folder, is
    flushed to the disk, and is then renamed over ``path``. Until that moment an older file of that
    name stays as it was; whoever reads ``path`` sees the old file or the new one, never a part of
    either. A symbolic link is followed, and the permissions of an older file are kept. Until it has
    its name, only its owner can read the new one.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    text : bool, default=False
        Open for text (ASCII, lines end in a line feed on every system) instead of bytes.

    Yields
    ------
    file object
        Open for writing.

    Raises
    ------
    ValueError
        If ``path`` is empty, or is there and is no ordinary file: a device or a pipe cannot be
        replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from slimsvm.persistence.atomic import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "notes.txt")
    ...     with replacing(path, text=True) as file:
    ...         _ = file.write("complete")
    ...     path.read_text()
    'complete'
    """
    if not os.fspath(path):  # it would be the working folder
        raise ValueError("The path is empty; give the name of a file to write.")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a folder; give the name of a file to write.")
    if target.exists() and not target.is_file():
        raise ValueError(
            f"{os.fspath(path)} is a device or a pipe, which cannot be replaced by a file; give "
            "the name of an ordinary file."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {target.parent} does not exist; make it first, then write {target.name}."
        )
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(6)}.tmp")
    try:
        mode = _mode_of(target, temporary)
        with (
            open(temporary, "x", encoding="ascii", newline="\n", opener=_for_owner)
            if text
            else open(temporary, "xb", opener=_for_owner) as file
        ):
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:  # an interrupt as well
        with contextlib.suppress(OSError):
            temporary.unlink()
        if (
            isinstance(error, OSError)
            and error.errno is not None
            and error.filename in (None, os.fspath(temporary))
        ):
            # a full disk names no file, and nobody knows the temporary one
            error.filename = os.fspath(path)
        raise
    _flush_folder(target.parent)


def _for_owner(path: str, flags: int) -> int:
    """Make a file that nobody else can read: an older one may have been private as well."""
    return os.open(path, flags, 0o600)


def _mode_of(target: Path, temporary: Path) -> int:
    """The permissions of the file that is there, or of any new file of this user.

    The latter are seen at an empty one: the mask itself can only be read by changing it, for all
    threads.
    """
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    with open(temporary, "x"):
        mode = stat.S_IMODE(temporary.stat().st_mode)
    temporary.unlink()
    return mode


def _flush_folder(folder: Path) -> None:
    """Make the new name itself outlive a power cut, where the system can."""
    with contextlib.suppress(OSError):  # Windows opens no folders, some network disks flush none
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
