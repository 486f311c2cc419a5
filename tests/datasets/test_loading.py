import bz2
import hashlib
import io
import socket
import sys
import threading
import urllib.error
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import Bunch

from slimsvm import datasets
from slimsvm.datasets import ChecksumError, DownloadError, catalogue, download, readers
from slimsvm.datasets.catalogue import CATALOGUE, Entry, File

TRAIN, TEST = b"+1 1:1 3:0.5\n-1 2:1\n+1 3:1\n", b"-1 1:0.25\n"
X_TRAIN = np.array([[1, 0, 0.5], [0, 1, 0], [0, 0, 1]], np.float32)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


# most of the sets here have none; what the warning says has a test of its own
pytestmark = pytest.mark.filterwarnings("ignore:No digest of the data set")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("SLIMSVM_DATA", raising=False)
    monkeypatch.setenv("SLIMSVM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    return tmp_path / "cache"


@pytest.fixture
def tiny(site, cache, monkeypatch):
    """The data set "tiny" on the server: one file with a digest, the other packed."""
    packed = bz2.compress(TEST)
    files = (
        File("tiny", (site.offer("tiny", TRAIN),), sha256(TRAIN)),
        File("tiny.t.bz2", (site.offer("tiny.t.bz2", packed),)),
    )
    entry = Entry("binary", 3, 1, 3, "Three rows.", files, readers.libsvm(3, dense=False))
    monkeypatch.setitem(CATALOGUE, "tiny", entry)
    return entry


def left(cache):
    """The names of the files in the cache, apart from the lock."""
    return sorted(path.name for path in cache.iterdir() if path.name != ".lock")


def check_tiny(data):
    np.testing.assert_array_equal(data.X_train.toarray(), X_TRAIN)
    np.testing.assert_array_equal(data.y_train, [1, -1, 1])
    np.testing.assert_array_equal(data.X_test.toarray(), [[0.25, 0, 0]])
    np.testing.assert_array_equal(data.y_test, [-1])


# -- where it comes from ---------------------------------------------------------------------------


def test_it_is_downloaded_once(site, cache, tiny):
    data = datasets.load("tiny")
    check_tiny(data)
    assert isinstance(data, Bunch) and (data.name, data.task, data.DESCR) == (
        "tiny",
        "binary",
        "Three rows.",
    )
    assert left(cache) == ["tiny.npz"]
    assert len(site.requests) == 2
    check_tiny(datasets.load("tiny"))
    check_tiny(datasets.load("tiny", download=False))
    assert len(site.requests) == 2


def test_as_a_tuple(cache, tiny):
    X, y, X_test, y_test = datasets.load("tiny", return_X_y=True)
    check_tiny(Bunch(X_train=X, y_train=y, X_test=X_test, y_test=y_test))


def test_the_folder_of_the_user_comes_first(site, cache, tiny, tmp_path, monkeypatch):
    datasets.load("tiny")
    site.requests.clear()
    monkeypatch.setenv("SLIMSVM_DATA", str(tmp_path))
    other = np.full((2, 3), 9, np.float32)
    np.savez(tmp_path / "tiny.npz", X_train=other, y_train=[1, -1], X_test=other, y_test=[1, -1])
    np.testing.assert_array_equal(datasets.load("tiny").X_train, other)
    assert site.requests == []


@pytest.mark.parametrize("packed", [True, False])
def test_the_folder_of_the_user_may_hold_the_official_files(
    site, cache, tiny, tmp_path, monkeypatch, packed
):
    monkeypatch.setenv("SLIMSVM_DATA", str(tmp_path))
    (tmp_path / "tiny").write_bytes(TRAIN)
    if packed:
        (tmp_path / "tiny.t.bz2").write_bytes(bz2.compress(TEST))
    else:
        (tmp_path / "tiny.t").write_bytes(TEST)
    check_tiny(datasets.load("tiny"))
    assert site.requests == [] and not cache.exists()
    assert (tmp_path / "tiny").exists()  # they are the user's
    (tmp_path / "tiny").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"tiny.*not the files of 'tiny', or damaged"):
        datasets.load("tiny")


def test_what_the_folder_of_the_user_lacks_is_downloaded(site, cache, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("SLIMSVM_DATA", str(tmp_path))
    (tmp_path / "tiny").write_bytes(TRAIN)  # one of two is not enough
    check_tiny(datasets.load("tiny"))
    assert left(cache) == ["tiny.npz"]


def test_a_folder_that_is_none_is_named(cache, tiny, monkeypatch):
    monkeypatch.setenv("SLIMSVM_DATA", "/nowhere/at/all")
    with pytest.raises(NotADirectoryError, match="SLIMSVM_DATA names '/nowhere/at/all'"):
        datasets.load("tiny")


def test_files_brought_by_hand_into_the_cache(site, cache, tiny):
    cache.mkdir()
    (cache / "tiny").write_bytes(TRAIN)
    (cache / "tiny.t").write_bytes(TEST)
    check_tiny(datasets.load("tiny", download=False))
    assert site.requests == [] and left(cache) == ["tiny.npz"]


def test_the_cache_can_be_said(site, cache, tiny, tmp_path):
    check_tiny(datasets.load("tiny", cache=tmp_path / "elsewhere"))
    assert left(tmp_path / "elsewhere") == ["tiny.npz"] and not cache.exists()


@pytest.mark.parametrize(
    ("platform", "variable", "end"),
    [
        ("linux", "XDG_CACHE_HOME", "base/slimsvm/datasets"),
        ("win32", "LOCALAPPDATA", "base/slimsvm/datasets"),
        ("darwin", "HOME", "Library/Caches/slimsvm/datasets"),
    ],
)
def test_every_system_has_its_place_for_caches(monkeypatch, platform, variable, end):
    monkeypatch.delenv("SLIMSVM_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, "base")
    assert datasets.cache_folder().as_posix().endswith(end)


# -- what can go wrong -----------------------------------------------------------------------------


def test_a_wrong_digest_of_a_file(site, cache, tiny):
    site.offer("tiny", TRAIN.replace(b"0.5", b"0.6"))
    with pytest.raises(ChecksumError, match=sha256(TRAIN)):
        datasets.load("tiny")
    assert left(cache) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TEST + TEST, "2 rows of 3 features instead of 1 of 3"),
        (b"<html>Moved</html>\n", "cannot be read"),
        (b"-0.5 1:0.25\n", "small integers"),
    ],
)
def test_files_that_are_not_the_data_set(site, cache, tiny, content, message):
    site.offer("tiny.t.bz2", bz2.compress(content))
    with pytest.raises(ChecksumError, match=message) as caught:
        datasets.load("tiny")
    assert "tiny.t.bz2" in str(caught.value) and "SLIMSVM_DATA" in str(caught.value)
    assert left(cache) == []


def test_a_packed_file_that_is_none(site, cache, tiny):
    site.offer("tiny.t.bz2", TEST)
    with pytest.raises(ChecksumError, match="cannot be read"):
        datasets.load("tiny")
    assert left(cache) == []


def test_a_wrong_digest_of_the_content(site, cache, tiny, monkeypatch):
    right = readers.content_digest(
        {"X_train": sp.csr_matrix(X_TRAIN), "y_train": np.array([1, -1, 1], np.int8)}
        | {
            "X_test": sp.csr_matrix(np.array([[0.25, 0, 0]], np.float32)),
            "y_test": np.array([-1], np.int8),
        }
    )
    monkeypatch.setitem(CATALOGUE, "tiny", replace(tiny, content="0" * 64))
    with pytest.raises(ChecksumError, match=f"content is {right} instead of {'0' * 64}"):
        datasets.load("tiny")
    assert left(cache) == []
    with pytest.warns(UserWarning, match=f"No digest of the data set 'tiny'.*{right}"):
        monkeypatch.setitem(CATALOGUE, "tiny", replace(tiny, content=None))
        datasets.load("tiny")
    (cache / "tiny.npz").unlink()
    monkeypatch.setitem(CATALOGUE, "tiny", replace(tiny, content=right))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_tiny(datasets.load("tiny"))


def test_passing_faults_do_not_show(site, cache, tiny):
    site.faults = [500, ("cut", 10), None, "reset"]
    check_tiny(datasets.load("tiny"))


def test_what_has_arrived_is_not_asked_for_again(site, cache, tiny):
    site.faults = [None, 404]
    with pytest.raises(DownloadError, match="answers 404"):
        datasets.load("tiny")
    assert "tiny" in left(cache) and "tiny.npz" not in left(cache)
    site.requests.clear()
    check_tiny(datasets.load("tiny"))
    assert [path for path, _ in site.requests] == ["/tiny.t.bz2"]


def test_off_the_net_the_message_says_what_to_do(cache, tiny, monkeypatch):
    def refuse(request, timeout):
        raise urllib.error.URLError(socket.gaierror(-2, "Name or service not known"))

    monkeypatch.setattr(download.OPENER, "open", refuse)
    with pytest.raises(DownloadError) as caught:
        datasets.load("tiny")
    message = str(caught.value)
    for part in (
        "'tiny' is not here",
        "online?",
        "SLIMSVM_DATA",
        "tiny.npz",
        str(cache),
        *(file.urls[0] for file in tiny.files),
    ):
        assert part in message, message


def test_without_leave_the_net_is_not_asked(site, cache, tiny):
    with pytest.raises(DownloadError, match=r"download=False(.|\n)*SLIMSVM_DATA"):
        datasets.load("tiny", download=False)
    assert site.requests == []


def test_an_unknown_name_gets_the_list():
    with pytest.raises(ValueError, match=r"no data set 'MNISt'\. Did you mean 'mnist'\?") as caught:
        datasets.load("MNISt")
    assert all(name in str(caught.value) for name in datasets.names())
    with pytest.raises(ValueError, match=r"no data set 'zzz'\. Those there are: a9a, "):
        datasets.load("zzz")


def test_a_set_without_a_source_says_so(cache):
    with pytest.raises(DownloadError, match=r"banana\.npz.*slimsvm\.datasets\.banana draws"):
        datasets.load("banana")


def test_a_damaged_file_in_the_cache_is_named(site, cache, tiny):
    datasets.load("tiny")
    path = cache / "tiny.npz"
    whole = path.read_bytes()
    one_array = io.BytesIO()
    np.save(one_array, np.ones(3))
    method = bytearray(whole)
    method[whole.index(b"PK\x01\x02") + 10] = 77  # how the first member is packed
    for damaged in (whole[:100], b"", b"text", one_array.getvalue(), bytes(method)):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"tiny\.npz is damaged.*Delete it"):
            datasets.load("tiny")


def test_an_interrupt_while_it_is_kept_leaves_no_half_a_file(site, cache, tiny, monkeypatch):
    def interrupt(file, **arrays):
        file.write(b"PK")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(np, "savez_compressed", interrupt)
        datasets.load("tiny")
    assert left(cache) == ["tiny", "tiny.t.bz2"]
    site.requests.clear()
    check_tiny(datasets.load("tiny"))
    assert site.requests == []


def test_two_at_a_time_download_once(site, cache, tiny):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(datasets.load("tiny"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 4
    for data in results:
        check_tiny(data)
    assert len(site.requests) == 2


# -- the catalogue ---------------------------------------------------------------------------------


def test_regression_has_no_test_part(site, cache, monkeypatch):
    file = File("prices", (site.offer("prices", b"2.5 1:1\n3.5 2:1\n"),))
    monkeypatch.setitem(
        CATALOGUE,
        "prices",
        Entry("regression", 2, 0, 2, "Prices.", (file,), readers.libsvm(2, regression=True)),
    )
    for _ in range(2):  # from the net, and from the cache
        data = datasets.load("prices")
        np.testing.assert_array_equal(data.X_train, np.eye(2))
        np.testing.assert_array_equal(data.y_train, np.array([2.5, 3.5], np.float32))
        assert data.X_test is None and data.y_test is None


@pytest.mark.parametrize("name", datasets.names())
def test_entries_are_whole(name):
    entry = CATALOGUE[name]
    assert entry.n_train > 0 and entry.n_features > 0 and entry.origin.endswith(".")
    assert (entry.read is None) == (not entry.files) == bool(entry.instead)
    for file in entry.files:
        assert file.urls and Path(file.name).name == file.name
        assert file.sha256 is None or (len(file.sha256) == 64 and int(file.sha256, 16))
        # Only what a digest guards may come by plain http, or from an address that does not name
        # the file.
        assert file.sha256 or all(
            url.startswith("https://") and url.endswith("/" + file.name) for url in file.urls
        )
    assert entry.content is None or (len(entry.content) == 64 and int(entry.content, 16))
    files = [file.name for other in catalogue.CATALOGUE.values() for file in other.files]
    assert len(files) == len(set(files))  # they share one folder


def test_a_file_without_rows_and_labels_is_no_data_set(cache):
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(cache / "dna.npz", Z=np.ones(3))
    with pytest.raises(
        ValueError, match=r"dna\.npz is damaged or no data set.*no rows and labels.*but Z"
    ):
        datasets.load("dna", cache=cache)


def test_a_name_that_is_no_text():
    with pytest.raises(ValueError, match=r"There is no data set \['a9a'\]"):
        datasets.load(["a9a"])


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.delenv("SLIMSVM_DATA", raising=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadError, match=r"cannot be kept in .*file \(.*SLIMSVM_CACHE"):
        datasets.load("dna", cache=tmp_path / "file")
