"""Text files of all kinds, and their possible defects."""

import gzip
import lzma

import pytest

from spacy_elmo.text.reading import kind, lines, text_files, zstd

TEXT = "one\r\n\nthree é"
LINES = [(1, "one\r\n"), (2, "\n"), (3, "three é")]


@pytest.mark.parametrize(
    "name, pack",
    [
        ("a.txt", bytes),
        ("a.txt.gz", gzip.compress),
        ("A.TXT.GZ", gzip.compress),
        ("a.txt.xz", lzma.compress),
        ("a.txt.zst", zstd.compress),
    ],
)
def test_packed_files_read_alike(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(TEXT.encode()))
    assert list(lines(path)) == LINES
    assert kind(path) == ".txt"


def test_a_byte_order_mark_is_no_text(tmp_path):
    path = tmp_path / "windows.txt"
    """It can also be inside a file that was joined from others, with or without a line break between them."""
    path.write_bytes(b"\xef\xbb\xbfone\r\n\xef\xbb\xbftwo\r\nthe end. \xef\xbb\xbfThree")
    assert list(lines(path)) == [(1, "one\r\n"), (2, "two\r\n"), (3, "the end. Three")]


@pytest.mark.parametrize("limit", range(1, 8))
def test_a_long_line_comes_in_pieces(tmp_path, limit):
    path = tmp_path / "a.txt"
    path.write_text("one\n\n鳥 é🙂two\nx", encoding="utf8")
    pieces = list(lines(path, limit))
    for number, line in enumerate(["one\n", "\n", "鳥 é🙂two\n", "x"], 1):
        found = [piece for at, piece in pieces if at == number]
        assert "".join(found) == line
        # A character that is cut comes with the next piece.
        assert max(len(piece.encode()) for piece in found) < limit + 4
    path.write_bytes(b"one \xc3")
    with pytest.raises(ValueError, match="line 1 is not UTF-8"):
        list(lines(path, limit))


def test_sources(tmp_path):
    for name in (
        "b.txt.gz", "a.txt", ".hidden.txt", "c.tsv", "notes.md", "d.txt.bz2", "e.jsonl", "f.spacy", "g.JSONL.xz",
    ):  # fmt: skip
        (tmp_path / name).write_text("a")

    def names(source: str) -> list[str]:
        return [file.name for file in text_files(str(tmp_path / source))]

    assert names("") == ["a.txt", "b.txt.gz", "e.jsonl", "f.spacy", "g.JSONL.xz"]
    assert names("*.t*[tv]") == ["a.txt", "c.tsv"]
    assert names("c.tsv") == ["c.tsv"]
    assert names(".hidden.txt") == [".hidden.txt"]


@pytest.mark.parametrize(
    "name", ["a.json", "a.json.gz", "a.spacy.gz", "a.txt.bz2", "a.tar.xz", "a.JSON"]
)
def test_files_of_other_kinds_are_refused_by_name(tmp_path, name):
    (tmp_path / name).touch()
    for source in (name, "a.*"):
        with pytest.raises(ValueError, match=r"a\..* \.jsonl"):
            text_files(str(tmp_path / source))
    with pytest.raises(FileNotFoundError, match=r"this folder contains no \*\.txt, "):
        text_files(str(tmp_path))


@pytest.mark.parametrize("name", ["nothing", "*.nothing", "empty"])
def test_no_text(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="No text at"):
        text_files(str(tmp_path / name))


def test_an_empty_path_does_not_mean_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("a b c\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="path of the text is empty"):
        text_files("")


def test_bytes_that_are_not_utf8_are_named_by_file_and_line(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"fine\n\nna\xefve\n")
    with pytest.raises(ValueError, match=r"latin\.txt, line 3.* Correct the file"):
        list(lines(path))


PACKERS = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstd.compress,
}
DAMAGES = {
    "truncated": lambda packed: packed[:-9],
    "empty": lambda packed: b"",
    "cut in the middle": lambda packed: packed[: len(packed) // 2],
    "junk": lambda packed: b"no archive at all",
    "flipped": lambda packed: packed[:40] + bytes(255 - byte for byte in packed[40:]),
    "junk behind": lambda packed: packed + b"junk",
}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_archives_are_named(tmp_path, suffix, damage):
    path = tmp_path / f"half.{suffix}"
    text = "\n".join(str(number**5) for number in range(5000))
    path.write_bytes(DAMAGES[damage](PACKERS[suffix](text.encode())))
    if (suffix, damage) == ("xz", "junk behind"):
        # lzma ignores it, and nothing of the text is lost.
        return
    with pytest.raises(ValueError, match=r"half.* is damaged after line \d+"):
        list(lines(path))


@pytest.mark.parametrize("suffix", PACKERS)
def test_archives_of_several_parts(tmp_path, suffix):
    path = tmp_path / f"parts.{suffix}"
    path.write_bytes(
        b"".join(PACKERS[suffix](part) for part in (b"one\r\n", b"\n", b"three \xc3\xa9"))
    )
    assert list(lines(path)) == LINES


def test_a_zstd_file_with_a_large_window(tmp_path):
    """As `zstd --long=28` writes it. Without a size in the frame, the reader must accept the window."""
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 28})
    (tmp_path / "a.txt.zst").write_bytes(packer.compress(TEXT.encode()) + packer.flush())
    assert list(lines(tmp_path / "a.txt.zst")) == LINES


def test_a_name_that_is_not_utf8_is_refused_before_any_work(tmp_path):
    """Old archives have such names, which no JSON file can contain."""
    (tmp_path / "caf\udce9.txt").touch()
    with pytest.raises(ValueError, match=r"caf\\udce9.txt' is not UTF-8. Rename"):
        text_files(str(tmp_path))
