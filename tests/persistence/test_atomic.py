import errno
import os
import stat

import pytest

from slimsvm.persistence.atomic import replacing


def test_the_old_file_stays_until_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path, text=True) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


def test_an_empty_name_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="The path is empty"), replacing(""):
        pass
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_at_the_very_end_leaves_no_trace(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    path.write_text("old")

    def failing(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, step, failing)
    with pytest.raises(OSError, match="no space left"), replacing(path) as file:
        file.write(b"new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path, monkeypatch):
    def failing(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", failing)
    with (
        pytest.raises(OSError, match=r"No space left on device: '.*file'$"),
        replacing(tmp_path / "file") as file,
    ):
        file.write(b"new")


def test_lines_end_in_a_line_feed_on_every_system(tmp_path):
    with replacing(tmp_path / "file", text=True) as file:
        file.write("a\nb\n")
    assert (tmp_path / "file").read_bytes() == b"a\nb\n"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions(tmp_path):
    path = tmp_path / "file"
    usual = os.umask(0o027)
    try:
        with replacing(path) as file:
            file.write(b"1")
    finally:
        os.umask(usual)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640, "as any new file"
    path.chmod(0o604)
    with replacing(path) as file:
        file.write(b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604, "as the file that was replaced"


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")
def test_links_are_followed_and_pipes_refused(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    with replacing(tmp_path / "link") as file:
        file.write(b"1")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"1"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="device or a pipe"), replacing(tmp_path / "pipe"):
        pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_no_folder_and_a_folder(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"folder .*missing does not exist"),
        replacing(tmp_path / "missing" / "file"),
    ):
        pass
    with pytest.raises(IsADirectoryError), replacing(tmp_path):
        pass


def test_a_long_name(tmp_path):
    path = tmp_path / ("n" * 250)
    with replacing(path) as file:
        file.write(b"1")
    assert path.read_bytes() == b"1"
