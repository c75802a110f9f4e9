"""Atomic writes: the new content or the old, and nothing else in the folder."""

import errno
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spacy_elmo.files import (
    all_or_nothing,
    atomic_file,
    atomic_folder,
    atomic_write,
    lock,
    locked_folder,
    remove_partial,
)
from tests import processes


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, str]:
    paths = folder.rglob("*")
    return {str(p.relative_to(folder)): p.read_text("utf8") for p in paths if p.is_file()}


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Interrupted(BaseException):
    """Simulated Ctrl-C in the middle of a write."""


def write_folder(path: Path, text: str) -> None:
    with atomic_folder(path) as new:
        (new / "deep").mkdir()
        (new / "deep" / "a").write_text(text)
        (new / "b").write_text(text)


def test_a_file_or_a_folder_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a.txt"
    for text in ("first", "second"):
        before = contents(tmp_path)
        with atomic_file(path) as partial:
            partial.write_text(text)
            assert partial.parent == tmp_path and partial.name.startswith(".a.txt.")
            assert str(os.getpid()) in partial.name
            assert {n: c for n, c in contents(tmp_path).items() if n == "a.txt"} == before
        assert contents(tmp_path) == {"a.txt": text}
    atomic_write(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff" and names(tmp_path) == ["a.txt"]
    write_folder(tmp_path / "folder", "old")
    (tmp_path / "folder" / "other").write_text("old")
    write_folder(tmp_path / "folder", "new")
    assert contents(tmp_path / "folder") == {"b": "new", "deep/a": "new"}
    assert names(tmp_path) == ["a.txt", "folder"]


@pytest.mark.parametrize("error", [ValueError, Interrupted])
@pytest.mark.parametrize("old", [False, True])
def test_an_error_in_the_block_changes_nothing(tmp_path, error, old):
    if old:
        (tmp_path / "a").write_text("old")
        write_folder(tmp_path / "folder", "old")
    before = contents(tmp_path)
    with pytest.raises(error), atomic_file(tmp_path / "a") as partial:
        partial.write_text("half")
        raise error
    with pytest.raises(error), atomic_folder(tmp_path / "folder") as partial:
        (partial / "b").write_text("half")
        raise error
    assert contents(tmp_path) == before
    assert names(tmp_path) == (["a", "folder"] if old else [])


@pytest.mark.parametrize("moment", ["write", "flush", "rename"])
def test_a_full_disk_leaves_the_old_content_and_names_the_target(tmp_path, monkeypatch, moment):
    atomic_write(tmp_path / "a", b"old")
    write_folder(tmp_path / "folder", "old")
    before = contents(tmp_path)
    with monkeypatch.context() as patch:
        if moment == "write":
            patch.setattr(Path, "write_bytes", no_space)
            patch.setattr(Path, "write_text", no_space)
        elif moment == "flush":
            patch.setattr(os, "fsync", no_space)
        else:
            right = Path.replace

            def replace(source, target):
                return no_space() if source.name.endswith(".partial") else right(source, target)

            patch.setattr(Path, "replace", replace)
        with pytest.raises(OSError, match="No space left.*/a'$"):
            atomic_write(tmp_path / "a", b"new")
        with pytest.raises(OSError, match="No space left.*/folder'$"):
            write_folder(tmp_path / "folder", "new")
    assert contents(tmp_path) == before
    assert names(tmp_path) == ["a", "folder"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors have names on Linux")
def test_everything_is_flushed_and_then_the_folder_around_it(tmp_path, monkeypatch):
    flushed = []

    def fsync(descriptor):
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        flushed.append(path.name)
        assert any(tmp_path.glob("new*")) == (path == tmp_path)

    monkeypatch.setattr(os, "fsync", fsync)
    atomic_write(tmp_path / "new", b"")
    (tmp_path / "new").unlink()
    write_folder(tmp_path / "new-folder", "new")
    assert flushed[0].endswith(".partial") and flushed[1] == flushed[6] == tmp_path.name
    assert sorted(flushed[2:5]) == ["a", "b", "deep"] and flushed[5].endswith(".partial")


def test_a_folder_that_cannot_be_flushed_is_no_error(tmp_path, monkeypatch):
    """Some network file systems refuse it, and by then the file is in place."""
    right = os.open

    def refuse(path, *args):
        return no_space() if Path(path).is_dir() else right(path, *args)

    monkeypatch.setattr(os, "open", refuse)
    atomic_write(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a"]


def test_what_is_of_another_kind_is_refused_before_the_work(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(OSError, match=name), atomic_file(tmp_path / name):
            pytest.fail("entered")
    with pytest.raises(NotADirectoryError, match="file"), atomic_folder(tmp_path / "file"):
        pytest.fail("entered")
    with pytest.raises(FileNotFoundError, match="nowhere/a'$"):
        atomic_write(tmp_path / "nowhere" / "a", b"")
    with (
        pytest.raises(FileNotFoundError, match="nowhere/a'$"),
        atomic_folder(tmp_path / "nowhere/a"),
    ):
        pytest.fail("entered")


def test_links_are_followed(tmp_path):
    """Links to folders too: a run may have been moved to a larger disk."""
    disk, here = tmp_path / "disk", tmp_path / "here"
    disk.mkdir(), here.mkdir()
    (disk / "a").write_text("old")
    write_folder(disk / "folder", "old")
    for name in ("a", "folder", "new"):
        (here / name).symlink_to(Path("../disk") / name)
    atomic_write(here / "a", b"new")
    atomic_write(here / "new", b"new")
    write_folder(here / "folder", "new")
    assert all((here / name).is_symlink() for name in ("a", "folder", "new"))
    assert contents(disk) == {"a": "new", "new": "new", "folder/b": "new", "folder/deep/a": "new"}
    assert names(disk) == ["a", "folder", "new"]


def test_relative_paths_stay_where_they_were(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with atomic_file("a") as partial:
        os.chdir("elsewhere")
        partial.write_text("new")
    os.chdir(tmp_path)
    with atomic_folder("folder") as new:
        os.chdir("elsewhere")
        (new / "b").write_text("new")
    assert contents(tmp_path) == {"a": "new", "folder/b": "new"}


def test_permissions_are_those_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        atomic_write(tmp_path / "a", b"")
        write_folder(tmp_path / "folder", "")
        with all_or_nothing(tmp_path / "set", ("a",), force=False) as new:
            (new / "a").touch()
    finally:
        os.umask(before)
    modes = {
        n: stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("a", "folder", "set", "set/a")
    }
    assert modes == {"a": 0o640, "folder": 0o750, "set": 0o750, "set/a": 0o640}


def test_threads_that_write_the_same_file_do_not_meet(tmp_path):
    wait = threading.Barrier(4)

    def write(number: int) -> None:
        for _ in range(20):
            with atomic_file(tmp_path / "a") as partial:
                wait.wait(10)
                partial.write_text(str(number) * 1000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    text = (tmp_path / "a").read_text()
    assert len(text) == 1000 and len(set(text)) == 1 and names(tmp_path) == ["a"]


SET = ("weights", "softmax", "options")


def export(folder: Path, force: bool = False, **content: str) -> None:
    with all_or_nothing(folder, SET, force=force) as new:
        for name, text in content.items():
            (new / name).write_text(text)


def test_a_set_of_files_replaces_another(tmp_path):
    """Earlier files that are not in the new set are removed, if they belonged to the old set; other files are kept."""
    export(tmp_path / "out", weights="1", softmax="1", options="1")
    (tmp_path / "out" / "notes").write_text("mine")
    with pytest.raises(FileExistsError, match="weights, softmax, options. .*--force"):
        export(tmp_path / "out", weights="2")
    export(tmp_path / "out", force=True, weights="2", options="2")
    assert contents(tmp_path / "out") == {"weights": "2", "options": "2", "notes": "mine"}
    assert names(tmp_path / "out") == ["notes", "options", "weights"]


def test_remains_of_killed_processes(tmp_path):
    for name in (".a.1-1.partial", ".a.b.1-1.partial", ".b.2-2.partial", ".a.1-1.old", "a.partial"):
        (tmp_path / name).touch()
    (tmp_path / ".a.7-7.partial").mkdir()
    (tmp_path / ".a.7-7.partial" / "deep").touch()
    remove_partial(tmp_path, "a")
    assert names(tmp_path) == [".a.1-1.old", ".a.b.1-1.partial", ".b.2-2.partial", "a.partial"]
    remove_partial(tmp_path)
    assert names(tmp_path) == [".a.1-1.old", "a.partial"]
    # A process may get the number of one that was killed.
    with atomic_file(tmp_path / "d") as partial:
        pass_on = partial
        partial.write_text("new")
    pass_on.mkdir()
    atomic_write(tmp_path / "d", b"newer")
    assert (tmp_path / "d").read_text() == "newer" and not pass_on.exists()


def hold(path: Path, held: Path) -> None:
    """Hold the lock until the process is killed."""
    with lock(path):
        held.touch()
        time.sleep(600)


@pytest.mark.parametrize("is_folder", [True, False])
def test_another_process_is_refused_until_the_first_is_killed(tmp_path, is_folder):
    path, link = tmp_path / "run", tmp_path / "link"
    link.symlink_to("run")
    if is_folder:
        path.mkdir()
    first = processes.start(hold, path, tmp_path / "held")
    deadline = time.monotonic() + 60
    while not (tmp_path / "held").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for place in (path, link):
        with pytest.raises(BlockingIOError, match=f"{path}: process {first.pid} on"), lock(place):
            pass
    first.kill()
    first.join()
    with pytest.raises(KeyError), lock(path):
        raise KeyError
    with lock(path):
        pass
    assert [*tmp_path.rglob("*.lock")] == []


def test_another_thread_is_refused_and_an_empty_folder_is_removed(tmp_path):
    with locked_folder(tmp_path / "run"), ThreadPoolExecutor() as pool:
        with pytest.raises(BlockingIOError, match=f"process {os.getpid()} on"):
            pool.submit(lambda: lock(tmp_path / "run").__enter__()).result()
    assert not (tmp_path / "run").exists()
