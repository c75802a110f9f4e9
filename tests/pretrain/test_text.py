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
        (tmp_path / f"{name}.txt").write_text(f"line {name}", encoding="utf8")
    assert list(documents(text_files(str(tmp_path)), "strict")) == [["line a"], ["line b"]]


def test_a_hundred_lines_end_a_document(tmp_path):
    """A text of one sentence per line, without blank lines, is no single document."""
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(map(str, range(250))), encoding="utf8")
    found = list(documents([path], "strict"))
    assert [len(lines) for lines in found] == [100, 100, 50]
    assert sum(found, []) == [*map(str, range(250))]
    path.write_text("line\n" * 100 + "\n\nline\n", encoding="utf8")
    assert [len(lines) for lines in documents([path], "strict")] == [100, 1]


def test_a_byte_order_mark_is_no_text(tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\xef\xbb\xbftwo\r\n")
    assert list(documents([path], "strict")) == [["one", "\ufefftwo"]]


def test_sources(tmp_path):
    for name in ("b.txt.gz", "a.txt", ".hidden.txt", "c.tsv", "notes.md", "d.txt.bz2", "e.jsonl"):
        (tmp_path / name).touch()

    def names(source: str) -> list[str]:
        return [file.name for file in text_files(str(tmp_path / source))]

    assert names("") == ["a.txt", "b.txt.gz"]
    assert names("*.t*[tv]") == ["a.txt", "c.tsv"]
    assert names("c.tsv") == ["c.tsv"]
    assert names(".hidden.txt") == [".hidden.txt"]


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.jsonl.gz", "a.spacy", "a.txt.bz2", "a.tar.xz", "a.JSON"]
)
def test_files_of_other_kinds_are_refused_by_name(tmp_path, name):
    (tmp_path / name).touch()
    for source in (name, "a.*"):
        with pytest.raises(ValueError, match=r"a\..* is not read yet; give plain text"):
            text_files(str(tmp_path / source))
    with pytest.raises(FileNotFoundError, match=r"no \*\.txt, .* in this directory"):
        text_files(str(tmp_path))


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


PACKERS = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}
DAMAGES = {
    "truncated": lambda packed: packed[:-9],
    "cut in the middle": lambda packed: packed[: len(packed) // 2],
    "junk": lambda packed: b"no archive at all",
    "flipped": lambda packed: packed[:40] + bytes(255 - byte for byte in packed[40:]),
    "junk behind": lambda packed: packed + b"junk",
}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_archives_are_named(tmp_path, suffix, damage):
    path = tmp_path / f"half.{suffix}"
    lines = "\n".join(str(number**5) for number in range(5000))
    path.write_bytes(DAMAGES[damage](PACKERS[suffix](lines.encode())))
    if (suffix, damage) == ("xz", "junk behind"):
        # lzma ignores it, and nothing of the text is lost.
        return
    with pytest.raises(ValueError, match=r"half.*after line \d+: damaged archive"):
        list(documents([path], "strict"))


@pytest.mark.parametrize("suffix", PACKERS)
def test_archives_of_several_parts(tmp_path, suffix):
    path = tmp_path / f"parts.{suffix}"
    path.write_bytes(
        b"".join(PACKERS[suffix](part) for part in (b"one\n", b"two\n", b"\nthree \xc3\xa9"))
    )
    assert list(documents([path], "strict")) == DOCUMENTS
