"""Files from the net: complete and checked, or not there at all.

What arrives goes to ``NAME.part`` beside its target, which takes its place only when every byte is
there and the checksum is right. A download that breaks off goes on where it was, in the same call
or days later: the server is asked for the rest (HTTP Range), on condition that its file is still
the one that was begun (If-Range, with the ETag or the date kept in ``NAME.part.from``). Without
such a mark, and without a checksum that would tell, it starts over.

Tried again, with growing pauses: lost connections, time-outs, short answers, and the status codes
by which a server says "later". As long as each try brings new bytes it goes on; ``attempts`` counts
tries that brought none. Not tried again: a computer that is offline, and status codes that say
"no". Where a file has several addresses, the next one is taken then. Only addresses over TLS are
asked, and what a server sends us on to is one, too.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import os
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from slimsvm import __version__

# status codes that may be another one a moment later
LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
NO_NETWORK = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})
BLOCK = 1 << 16


HERE = frozenset({"localhost", "127.0.0.1", "::1"})  # no network lies between


class DownloadError(OSError):
    """A file could not be had; the message says why and what to do."""


class ChecksumError(DownloadError):
    """What came is not what should have come; nothing of it is kept."""


def fetch(
    urls: Sequence[str],
    path: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    progress: bool | None = None,
    attempts: int = 4,
    pause: float = 1.0,
    timeout: float = 30.0,
) -> Path:
    """Download a file, unless it is there.

    Parameters
    ----------
    urls : sequence of str
        Its addresses; the first that gives it is taken.
    path : str or path-like
        Where it goes. The folder is made if need be.
    sha256 : str or None
        What the SHA-256 digest of the file must be, in hexadecimal digits.
    progress : bool or None
        Show how far it is, on the error output; None: if that is a terminal.
    attempts : int
        After how many tries in a row that bring nothing an address is given up.
    pause : float
        Seconds before the second try; doubled each time.
    timeout : float
        Seconds without a single byte after which a connection counts as lost.

    Returns
    -------
    Path
        The complete file.

    Raises
    ------
    ChecksumError
        If the digest is another one.
    DownloadError
        If no address gives the file. What has arrived is kept, and the next call goes on from
        there.
    """
    path = Path(path)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    failures: list[tuple[str, Exception]] = []
    with Meter(path.name, progress) as meter:
        for url in urls:
            download = _Download(url, path, sha256, timeout, meter)
            try:
                download.complete(attempts, pause)
            except (OSError, http.client.HTTPException) as error:
                failures.append((url, error))
            else:
                os.replace(download.part, path)
                download.mark.unlink(missing_ok=True)
                return path
    reasons = "; ".join(f"{url}: {explain(error)}" for url, error in failures)
    wrong = all(isinstance(error, ChecksumError) for _, error in failures)
    raise (ChecksumError if wrong else DownloadError)(
        f"{path.name} could not be downloaded. {reasons}."
    ) from failures[-1][1]


def _check_tls(url: str) -> None:
    """Refuse an address to which anybody on the way could answer."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in HERE:
        raise DownloadError(f"{url} is no address over TLS (https), and nothing is taken from it")


class _OverTLS(urllib.request.HTTPRedirectHandler):
    """Follow a server that sends us elsewhere, if that is over TLS, too."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """The request for the new address."""
        _check_tls(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


OPENER = urllib.request.build_opener(_OverTLS)


class _Download:
    """One file from one address."""

    def __init__(
        self, url: str, path: Path, sha256: str | None, timeout: float, meter: Meter
    ) -> None:
        self.url, self.sha256, self.timeout, self.meter = url, sha256, timeout, meter
        self.part = path.with_name(path.name + ".part")
        # the address, and the server's mark of the version
        self.mark = path.with_name(path.name + ".part.from")

    def complete(self, attempts: int, pause: float) -> None:
        """Try until the part is the whole, or raise what stood in the way."""
        longest = failures = 0
        while True:
            error: Exception
            try:
                resumed = self.attempt()
                if self.sha256 is None or (found := digest_of(self.part)) == self.sha256:
                    return
                self.forget()
                error = ChecksumError(
                    f"its SHA-256 digest is {found}, but should be {self.sha256}; nothing of it "
                    "was kept"
                )
                # the whole file in one go: it is the file that is wrong, not an old part
                if not resumed:
                    raise error
            except urllib.error.HTTPError as answer:
                answer.close()
                # there is nothing after the part: it belongs to another version
                if answer.code == 416:
                    self.forget()
                elif answer.code not in LATER:
                    raise
                error = answer
            except (
                urllib.error.URLError,
                ConnectionError,
                TimeoutError,
                http.client.HTTPException,
            ) as trouble:
                if is_offline(trouble):
                    raise
                error = trouble
            size = self.part.stat().st_size if self.part.exists() else 0
            failures = 0 if size > longest else failures + 1
            longest = max(longest, size)
            if failures >= attempts:
                raise error
            time.sleep(pause * 2 ** max(failures - 1, 0))

    def attempt(self) -> bool:
        """Ask for what is missing and append it; True if there was a part before."""
        have, version = self.kept()
        headers = {"User-Agent": f"slimsvm/{__version__}", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if version:
                headers["If-Range"] = version
        _check_tls(self.url)
        with OPENER.open(
            urllib.request.Request(self.url, headers=headers), timeout=self.timeout
        ) as answer:
            if answer.status == 206 and not answer.headers.get("Content-Range", "").startswith(
                f"bytes {have}-"
            ):
                self.forget()
                raise http.client.HTTPException(
                    "the server sent another range than the one asked for"
                )
            start = have if answer.status == 206 else 0
            length = answer.headers.get("Content-Length")
            total = start + int(length) if length and length.isdecimal() else None
            tag = answer.headers.get("ETag", "")
            # A weak tag stands for files that are almost equal, which is not enough to put two
            # halves together.
            version = (
                answer.headers.get("Last-Modified", "") if tag.startswith("W/") or not tag else tag
            )
            self.mark.write_text(f"{self.url}\n{version}", encoding="utf-8")
            with open(self.part, "ab" if start else "wb") as file:
                self.meter(start, total)
                while block := answer.read(BLOCK):
                    file.write(block)
                    self.meter(file.tell(), total)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
        if total is not None and size != total:
            raise ConnectionError(f"the connection ended after {size:,} of {total:,} bytes")
        return start > 0

    def kept(self) -> tuple[int, str]:
        """How much there is to go on from, and the version that it belongs to."""
        try:
            have = self.part.stat().st_size
            url, _, version = self.mark.read_text(encoding="utf-8").partition("\n")
        except OSError:
            return 0, ""
        if url == self.url and version:
            return have, version
        return (have, "") if self.sha256 else (0, "")

    def forget(self) -> None:
        """Remove what is there."""
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_offline(error: BaseException) -> bool:
    """Whether it is this computer that has no connection, so that trying again is of no use."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, socket.gaierror) or (
        isinstance(reason, OSError) and reason.errno in NO_NETWORK
    )


def explain(error: BaseException) -> str:
    """What went wrong, in words."""
    if is_offline(error):
        return "no connection to that server (is this computer online?)"
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(reason) or type(reason).__name__


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time download into a folder, if its disk supports locks."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "a+b") as file:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                import msvcrt

                file.seek(0)
                while True:
                    try:
                        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                        break
                    except OSError as error:
                        # that one only says that ten seconds are over
                        if error.errno != errno.EDEADLK:
                            raise
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file ends the lock


class Meter:
    """How far a download is, on standard error.

    On a terminal it is a bar of ``rich`` where that is installed, else a line every second.

    Examples
    --------
    >>> import contextlib, sys
    >>> from slimsvm.datasets.download import Meter
    >>> with contextlib.redirect_stderr(sys.stdout), Meter("a9a", shown=True, every=0.0) as meter:
    ...     meter(1_200_000, 2_400_000)
    a9a  1.2 of 2.4 MB, 50 %
    """

    def __init__(self, name: str, shown: bool | None = None, every: float = 1.0) -> None:
        self.name, self.every, self._last = name, every, -float("inf")
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Meter:
        if self.shown and sys.stderr.isatty():
            with contextlib.suppress(ImportError):
                from rich.console import Console
                from rich.progress import (
                    BarColumn,
                    DownloadColumn,
                    Progress,
                    TextColumn,
                    TimeRemainingColumn,
                    TransferSpeedColumn,
                )

                columns = (
                    TextColumn("{task.description}"),
                    BarColumn(),
                    DownloadColumn(),
                    TransferSpeedColumn(),
                    TimeRemainingColumn(),
                )
                self._bar = Progress(*columns, console=Console(stderr=True))
                self._bar.start()
                self._task = self._bar.add_task(self.name, total=None)
        return self

    def __exit__(self, *failure: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int | None) -> None:
        """Show that ``done`` bytes out of ``total`` are there."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif self.shown and time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            share = f" of {total / 1e6:.1f} MB, {100 * done / total:.0f} %" if total else " MB"
            print(f"{self.name}  {done / 1e6:.1f}{share}", file=sys.stderr, flush=True)
