import hashlib
import io
import socket
import sys
import threading
import time
import urllib.error

import numpy as np
import pytest

from slimsvm.datasets import ChecksumError, DownloadError
from slimsvm.datasets.download import OPENER, Meter, alone, fetch

CONTENT = np.random.default_rng(0).bytes(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
OTHER = np.random.default_rng(1).bytes(300_000)


def quick(url, path, **options):
    return fetch(
        [url] if isinstance(url, str) else url,
        path,
        **{"pause": 0.0, "timeout": 5.0, "progress": False} | options,
    )


def ranges(site):
    return [asked for _, asked in site.requests]


@pytest.fixture
def target(tmp_path):
    return tmp_path / "new" / "file.bin"


def left(target):
    return sorted(path.name for path in target.parent.iterdir())


@pytest.mark.parametrize("sha256", [None, DIGEST])
def test_a_file_arrives_once_and_alone(site, target, sha256):
    url = site.offer("file.bin", CONTENT)
    assert quick(url, target, sha256=sha256) == target
    assert target.read_bytes() == CONTENT
    assert left(target) == ["file.bin"]
    quick(url, target, sha256=sha256)
    assert len(site.requests) == 1  # what is there is not asked for again


def test_a_wrong_checksum_is_named_and_leaves_nothing(site, target):
    url = site.offer("file.bin", OTHER)
    with pytest.raises(ChecksumError) as caught:
        quick(url, target, sha256=DIGEST)
    for part in ("file.bin", url, DIGEST, hashlib.sha256(OTHER).hexdigest()):
        assert part in str(caught.value)
    assert left(target) == []
    assert len(site.requests) == 1  # a whole file that is wrong would be wrong again


@pytest.mark.parametrize("fault", [500, 503, 429, "reset", ("cut", 0)])
def test_passing_faults_are_tried_again(site, target, fault):
    url = site.offer("file.bin", CONTENT)
    site.faults = [fault, fault, None]
    quick(url, target, attempts=3)
    assert target.read_bytes() == CONTENT
    assert len(site.requests) == 3


@pytest.mark.parametrize("fault", [500, "reset", ("cut", 0)])
def test_faults_that_stay_end_the_trying(site, target, fault):
    url = site.offer("file.bin", CONTENT)
    site.faults = [fault] * 10
    with pytest.raises(DownloadError, match=r"file\.bin could not be downloaded") as caught:
        quick(url, target, attempts=3)
    assert not isinstance(caught.value, ChecksumError)
    assert len(site.requests) == 3
    assert not target.exists()


def test_pauses_grow_while_nothing_comes_and_not_otherwise(site, target, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    url = site.offer("file.bin", CONTENT)
    site.faults = [500, 500, 500, ("cut", 1000), 503, None]
    quick(url, target, pause=0.5)
    assert pauses == [0.5, 1.0, 2.0, 0.5, 0.5]


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_no_is_taken_for_an_answer(site, target, code):
    url = site.offer("file.bin", CONTENT)
    site.faults = [code] * 5
    with pytest.raises(DownloadError, match=f"the server answers {code}"):
        quick(url, target)
    assert len(site.requests) == 1


def test_a_broken_download_goes_on_where_it_was(site, target):
    url = site.offer("file.bin", CONTENT)
    site.faults = [("cut", 100_000), ("cut", 50_000), None]
    quick(url, target, attempts=1)  # as long as bytes come in, no try counts as lost
    assert target.read_bytes() == CONTENT
    assert site.starts == [0, 100_000, 150_000]
    assert left(target) == ["file.bin"]


@pytest.mark.parametrize(
    ("tag", "date"),
    [
        ('"v1"', None),
        ('W/"v1"', "Mon, 02 Nov 2026 00:00:00 GMT"),
        (None, "Mon, 02 Nov 2026 00:00:00 GMT"),
    ],
)
def test_it_goes_on_in_the_next_call_too(site, target, tag, date):
    url = site.offer("file.bin", CONTENT)
    site.tag, site.date = tag, date
    site.faults = [("cut", 100_000), 404]
    with pytest.raises(DownloadError):
        quick(url, target)
    assert not target.exists()
    quick(url, target)
    assert target.read_bytes() == CONTENT
    assert site.starts == [0, 100_000]


def test_halves_of_two_versions_are_never_put_together(site, target):
    url = site.offer("file.bin", OTHER)
    site.faults = [("cut", 100_000), 404]
    with pytest.raises(DownloadError):
        quick(url, target)
    site.offer("file.bin", CONTENT)
    site.tag = '"v2"'
    quick(url, target)
    assert target.read_bytes() == CONTENT


def test_a_version_without_a_mark_is_begun_anew_unless_a_checksum_can_tell(site, target):
    url = site.offer("file.bin", CONTENT)
    site.tag = None
    site.faults = [("cut", 100_000), None]
    quick(url, target)
    assert target.read_bytes() == CONTENT
    assert ranges(site) == [None, None]

    target.unlink()
    site.requests.clear()
    site.faults = [("cut", 100_000), None]
    quick(url, target, sha256=DIGEST)
    assert target.read_bytes() == CONTENT
    assert ranges(site) == [None, "bytes=100000-"]


def test_a_rotten_part_is_dropped_when_the_checksum_tells(site, target):
    url = site.offer("file.bin", CONTENT)
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(OTHER[:100_000])
    target.with_name("file.bin.part.from").write_text(f'{url}\n"v1"')
    quick(url, target, sha256=DIGEST)
    assert target.read_bytes() == CONTENT
    assert ranges(site) == ["bytes=100000-", None]


def test_a_part_that_is_too_long_is_dropped(site, target):
    url = site.offer("file.bin", CONTENT)
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(OTHER + OTHER)
    target.with_name("file.bin.part.from").write_text(f'{url}\n"v1"')
    quick(url, target)
    assert target.read_bytes() == CONTENT
    assert ranges(site) == ["bytes=600000-", None]


def test_a_server_that_knows_no_ranges(site, target):
    url = site.offer("file.bin", CONTENT)
    site.ranges = False
    site.faults = [("cut", 100_000), None]
    quick(url, target)
    assert target.read_bytes() == CONTENT


def test_the_next_address_is_taken_where_one_fails(site, target):
    gone, wrong = site.base + "gone", site.offer("wrong", OTHER)
    good = site.offer("file.bin", CONTENT)
    quick([gone, wrong, good], target, sha256=DIGEST)
    assert target.read_bytes() == CONTENT
    assert [path for path, _ in site.requests] == ["/gone", "/wrong", "/file.bin"]


def test_the_file_is_not_there_before_it_is_complete(site, target, monkeypatch):
    seen = []
    monkeypatch.setattr(
        Meter, "__call__", lambda self, done, total: seen.append((done, target.exists()))
    )
    quick(site.offer("file.bin", CONTENT), target)
    assert seen[-1][0] == len(CONTENT) and len(seen) > 2
    assert not any(there for _, there in seen)
    assert target.exists()


def test_an_interrupt_keeps_the_part_and_no_more(site, target, monkeypatch):
    def interrupt(self, done, total):
        if done > 100_000:
            raise KeyboardInterrupt

    url = site.offer("file.bin", CONTENT)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Meter, "__call__", interrupt)
        quick(url, target)
    assert left(target) == ["file.bin.part", "file.bin.part.from"]
    quick(url, target)
    assert target.read_bytes() == CONTENT
    assert site.starts[1] > 100_000


@pytest.mark.parametrize(
    "reason",
    [
        socket.gaierror(-3, "Temporary failure in name resolution"),
        OSError(101, "Network is unreachable"),
    ],
)
def test_off_the_net_there_is_one_try_and_a_plain_word(target, monkeypatch, reason):
    tries = []

    def refuse(request, timeout):
        tries.append(request.full_url)
        raise urllib.error.URLError(reason)

    monkeypatch.setattr(OPENER, "open", refuse)
    with pytest.raises(DownloadError, match="is this computer online"):
        quick("https://example.invalid/file.bin", target)
    assert len(tries) == 1


def test_only_over_tls(site, target):
    with pytest.raises(DownloadError, match=r"http://example.invalid/file.bin is no address over"):
        quick("http://example.invalid/file.bin", target)
    site.elsewhere["/file.bin"] = "http://example.invalid/other.bin"
    with pytest.raises(DownloadError, match=r"http://example.invalid/other.bin is no address over"):
        quick(site.base + "file.bin", target)
    assert left(target) == []
    site.elsewhere["/file.bin"] = site.offer("other.bin", CONTENT)  # on this computer
    assert quick(site.base + "file.bin", target).read_bytes() == CONTENT


def test_only_one_at_a_time(tmp_path):
    order = []

    def second():
        with alone(tmp_path):
            order.append("second")

    with alone(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(5)
    assert order == ["first", "second"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("rich", [True, False])
def test_what_a_terminal_shows(site, target, monkeypatch, rich):
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    else:
        pytest.importorskip("rich")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    quick(site.offer("file.bin", CONTENT), target, progress=None)
    assert "file.bin" in screen.getvalue()
    assert ("100 %" in screen.getvalue() or "of 0.3 MB" in screen.getvalue()) is not rich


def test_nothing_is_shown_where_nobody_looks(site, target, capsys):
    quick(site.offer("file.bin", CONTENT), target, progress=None)
    assert capsys.readouterr() == ("", "")
