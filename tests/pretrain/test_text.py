"""Text files of all kinds, and what can be wrong with them."""

import gzip
import lzma

import pytest
import zstandard

from spacy_elmo.pretrain.text import documents, text_files

TEXT = "one\ntwo\n\n  \nthree é\n"
DOCUMENTS = [["one", "two"], ["three é"]]


@pytest.mark.parametrize(
    "name, pack",
    [
        ("a.txt", bytes),
        ("a.txt.gz", gzip.compress),
        ("a.txt.xz", lzma.compress),
        ("a.txt.zst", lambda raw: zstandard.ZstdCompressor().compress(raw)),
    ],
)
def test_packed_files_read_alike(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(TEXT.encode()))
    assert list(documents([path], "strict")) == DOCUMENTS


def test_a_file_ends_a_document(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(f"line {name}", encoding="utf8")
    assert list(documents(text_files(str(tmp_path)), "strict")) == [["line a"], ["line b"]]


def test_sources(tmp_path):
    for name in ("b.txt", "a.txt", ".hidden", "c.tsv"):
        (tmp_path / name).touch()
    assert [f.name for f in text_files(str(tmp_path))] == ["a.txt", "b.txt", "c.tsv"]
    assert [f.name for f in text_files(str(tmp_path / "*.txt"))] == ["a.txt", "b.txt"]
    assert [f.name for f in text_files(str(tmp_path / "c.tsv"))] == ["c.tsv"]


@pytest.mark.parametrize("name", ["nothing", "*.nothing", "empty"])
def test_no_text(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="No text at"):
        text_files(str(tmp_path / name))


def test_bytes_that_are_not_utf8_are_named_by_file_and_line(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"fine\n\nna\xefve\n")
    with pytest.raises(ValueError, match=r"latin\.txt, line 3.*prepare\.encoding_errors"):
        list(documents([path], "strict"))
    assert list(documents([path], "replace")) == [["fine"], ["na\ufffdve"]]


@pytest.mark.parametrize("suffix, pack", [("gz", gzip.compress), ("xz", lzma.compress)])
def test_damaged_archives_are_named(tmp_path, suffix, pack):
    path = tmp_path / f"half.{suffix}"
    path.write_bytes(pack(TEXT.encode() * 100)[:-9])
    with pytest.raises(ValueError, match="half.*damaged archive"):
        list(documents([path], "strict"))
    path.write_bytes(b"no archive at all")
    with pytest.raises(ValueError, match="half.*damaged archive"):
        list(documents([path], "strict"))
