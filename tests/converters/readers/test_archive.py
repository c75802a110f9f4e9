"""Archives are unpacked completely, unless their content could do harm."""

import gzip
import io
import os
import stat
import tarfile
import tempfile
import zipfile

import pytest

from spacy_elmo import limits
from spacy_elmo.converters.readers import archive
from spacy_elmo.converters.readers.archive import opened

FILES = {"options.json": b"{}", "weights.hdf5": bytes(range(256)) * 40, "inner/a b.txt": b""}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Set the folder for temporary files, and check that it is empty at the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def write_zip(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def write_tar(path, files, mode="w:gz"):
    with tarfile.open(path, mode) as file:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


WRITERS = {
    "m.zip": write_zip,
    "M.ZIP": write_zip,
    "m.tar.gz": write_tar,
    "m.tgz": write_tar,
    "m.tar": lambda path, files: write_tar(path, files, "w"),
}


@pytest.fixture(params=["m.zip", "m.tar.gz"])
def write(request, tmp_path):
    """Write an archive in both formats."""
    return lambda files: WRITERS[request.param](tmp_path / request.param, files)


def content(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(path, problem):
    with pytest.raises(ValueError, match=problem) as error, opened(path):
        raise AssertionError("nothing may be read")
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("top", ["", "model/", "model/v2/"])
def test_files_come_out(tmp_path, name, top):
    """The files may be at the top, or in nested folders."""
    path = WRITERS[name](tmp_path / name, {top + name: data for name, data in FILES.items()})
    with opened(path) as files:
        assert content(files.path) == FILES
        assert (
            files.shown(f"{files.path / 'options.json'}: bad") == f"{path}/{top}options.json: bad"
        )


def test_folders_and_files_are_left_alone(tmp_path):
    (tmp_path / "folder.zip").mkdir()
    for path in (tmp_path, tmp_path / "folder.zip", tmp_path / "nowhere", tmp_path / "best.th"):
        with opened(path) as files:
            assert files.path == path and files.shown(path) == str(path)


def test_macos_leftovers_are_no_second_folder(tmp_path):
    path = write_zip(tmp_path / "m.zip", {"model/a": b"1", "__MACOSX/model/._a": b"2"})
    with opened(path) as files:
        assert content(files.path) == {"a": b"1"}


def test_folders_inside_each_other(write):
    """1,500 folders exhaust Python's stack, and are hard to delete."""
    refused(write({"a/" * 1500 + "x": b""}), "has more than 32 nested folders")


def test_members_without_a_name(tmp_path):
    refused(write_tar(tmp_path / "m.tar.gz", {"": b"1", "a": b"2"}), "m.tar.gz")
    path = write_zip(tmp_path / "m.zip", {"a": b"1"})
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\3\4", 26), (b"PK\1\2", 28)):
        start = content.index(signature) + place
        content[start : start + 4] = b"\0\0\1\0"  # the name becomes an extra field
    path.write_bytes(content)
    refused(path, "m.zip")


def test_zip_of_a_later_version(tmp_path):
    path = write_zip(tmp_path / "m.zip", {"a": b"1"})
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\3\4", 4), (b"PK\1\2", 6)):
        content[content.index(signature) + place] = 99  # the version needed to extract
    path.write_bytes(content)
    refused(path, "is not a readable archive, .*zip file version 9.9")


def test_folders_of_windows(tmp_path):
    # zipfile writes what it is told when the name is set afterwards.
    member = zipfile.ZipInfo("x")
    member.filename = "model\\inner\\a.txt"
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as file:
        file.writestr(member, b"1")
    with opened(tmp_path / "m.zip") as files:
        assert content(files.path) == {"a.txt": b"1"}


@pytest.mark.parametrize("error", [ValueError, FileNotFoundError])
def test_errors_name_the_archive(write, error):
    path = write(FILES)
    with pytest.raises(ValueError) as raised, opened(path) as files:
        raise error(f"{files.path / 'options.json'}: bad")
    assert str(raised.value) == f"{path}/options.json: bad"


def test_other_errors_stay(write):
    with pytest.raises(KeyError), opened(write(FILES)):
        raise KeyError("mistake")


def test_missing_archive(tmp_path):
    with pytest.raises(ValueError, match="No such file.*m.zip"), opened(tmp_path / "m.zip"):
        pass


NAMES = [
    "../evil",
    "a/../../evil",
    "/evil",
    "//evil",
    "C:/evil",
    "C:evil",
    "a\\..\\..\\evil",
    "\\evil",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_leave_the_folder(write, tmp_path, name):
    refused(write({"a": b"1", name: b"2"}), "leads outside the archive")
    assert not list(tmp_path.rglob("evil"))
    assert not os.path.exists("/evil")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.GNUTYPE_SPARSE],
)  # fmt: skip
def test_no_plain_file_in_a_tar(tmp_path, kind):
    path = tmp_path / "m.tar.gz"
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, "/etc/passwd"
    with tarfile.open(path, "w:gz") as file:
        file.addfile(member)
        file.addfile(tarfile.TarInfo("link/through"))
    refused(path, "'link' is a link, a device or a sparse file")


def test_link_in_a_zip(tmp_path):
    member = zipfile.ZipInfo("link")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as file:
        file.writestr(member, "/etc/passwd")
    refused(tmp_path / "m.zip", "'link' is a link")


def test_same_name_twice(tmp_path):
    write_tar(tmp_path / "m.tar", {"a": b"1"}, "w")
    write_tar(tmp_path / "m.tar", {"a": b"2"}, "a")
    refused(tmp_path / "m.tar", "File exists.*m.tar/a")


def test_encrypted(tmp_path):
    path = write_zip(tmp_path / "m.zip", {"a": b"1"})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    refused(path, "'a' is encrypted")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_rare_methods(tmp_path, method):
    refused(write_zip(tmp_path / "m.zip", {"a": b"1"}, method), "'a' is compressed by the method")


@pytest.mark.parametrize("name", ["m.zip", "m.tar.gz"])
def test_bomb(tmp_path, monkeypatch, name):
    """Zeros are compressed to a thousandth. Before the error, not more bytes are written than allowed."""
    monkeypatch.setattr(limits, "SMALL_BYTES", 1 << 20)
    monkeypatch.setattr(archive, "_CHUNK_BYTES", 1 << 16)
    path = WRITERS[name](tmp_path / name, {"small": b"1", "zeros": bytes(4 << 20)})
    assert path.stat().st_size < 1 << 14
    written = []
    plain = archive._write

    def watched(stream, target):
        try:
            return plain(stream, target)
        finally:
            written.append(target.stat().st_size)

    monkeypatch.setattr(archive, "_write", watched)
    refused(path, "unpacks to more than 1,048,576 bytes")
    assert sum(written) <= 1 << 20


def test_bomb_in_a_header(tmp_path, monkeypatch):
    """tarfile reads a long name completely, whatever its length."""
    monkeypatch.setattr(limits, "SMALL_BYTES", 1 << 20)
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 4 << 20
    with gzip.open(tmp_path / "m.tar.gz", "wb") as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT) + bytes(4 << 20))
    refused(tmp_path / "m.tar.gz", "unpacks to more than 1,048,576 bytes")


def test_ratio_grows_with_the_archive(tmp_path, monkeypatch):
    """A vocabulary that is compressed to a fifth is accepted."""
    monkeypatch.setattr(limits, "SMALL_BYTES", 1)
    words = b"".join(b"%d\n" % (n * n) for n in range(40_000))
    path = write_zip(tmp_path / "m.zip", {"vocab.txt": words})
    assert 2 < len(words) / path.stat().st_size < 20
    with opened(path) as files:
        assert content(files.path) == {"vocab.txt": words}


def test_too_many_files(write, monkeypatch):
    monkeypatch.setattr(limits, "MAX_MEMBERS", 3)
    with opened(write({str(n): b"" for n in range(3)})) as files:
        assert len(content(files.path)) == 3
    refused(write({str(n): b"" for n in range(4)}), "more than 3 files")


def test_size_that_lies(tmp_path):
    """The header of a zip file declares a smaller size than its content has."""
    path = write_zip(tmp_path / "m.zip", {"a": b"1" * 1000})
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02") + 24
    data[start : start + 4] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    refused(path, "is not a readable archive, .*CRC")


@pytest.mark.parametrize("part", [0.0, 0.001, 0.35, 0.65, 0.8])
def test_truncated(write, part):
    path = write({name: os.urandom(30_000) for name in "abc"})
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    refused(path, "is not a readable archive")


def test_other_content(write):
    path = write(FILES)
    path.write_bytes(b"Not found" * 100)
    refused(path, "is not a readable archive")
