"""Text to prepared corpus, read back by its words."""

import collections
import sys

import numpy as np
import pytest

from spacy_elmo.pretrain import prepare as prepare_module
from spacy_elmo.pretrain.config import Paths, Prepare
from spacy_elmo.pretrain.corpus import Corpus
from spacy_elmo.pretrain.prepare import prepare

from .conftest import raw_text


def sentences_of(corpus: Corpus, part: str) -> list[list[str]]:
    sentences = getattr(corpus, part)
    ids, lengths = sentences.take(np.arange(len(sentences.lengths)))
    words = [corpus.types[i] for i in ids]
    return [words[end - n : end] for end, n in zip(np.cumsum(lengths), lengths, strict=True)]


def test_every_sentence_is_in_one_part(corpus):
    expected = [line.split() for line in raw_text().splitlines() if line]
    train, dev = sentences_of(corpus, "train"), sentences_of(corpus, "dev")
    assert sorted(train + dev) == sorted(expected)
    assert len(dev) == 100  # ten documents of ten sentences: the minimum
    # Order is kept: the train part is the text without the held-out documents.
    remaining = iter(expected)
    assert all(any(sentence == other for other in remaining) for sentence in train)


def test_types_are_numbered_by_falling_count_in_the_training_part(corpus):
    counts = collections.Counter(
        word for sentence in sentences_of(corpus, "train") for word in sentence
    )
    assert corpus.types[:3] == ["<S>", "</S>", "<UNK>"]
    assert corpus.counts.tolist() == [counts[word] for word in corpus.types]
    assert corpus.counts[3:].tolist() == sorted(counts.values(), reverse=True)
    assert corpus.vocabulary(5) == corpus.types[:5]
    assert corpus.vocabulary(1000) == corpus.types


def test_types_of_the_held_out_part_alone_are_in_no_vocabulary(tmp_path, text_file):
    (tmp_path / "dev.txt").write_text("the unicorn sleeps .\n", encoding="utf8")
    paths = Paths(raw_text=str(text_file), dev_text=str(tmp_path / "dev.txt"))
    corpus = prepare(paths, Prepare(tokenized=True), tmp_path / "corpus")
    assert sentences_of(corpus, "dev") == [["the", "unicorn", "sleeps", "."]]
    assert corpus.types[-1] == "unicorn"
    assert corpus.vocabulary(1000) == corpus.types[:-1]


def test_the_seed_decides_what_is_held_out(tmp_path, text_file):
    def held_out(seed: int, name: str) -> list[list[str]]:
        settings = Prepare(tokenized=True, seed=seed)
        return sentences_of(
            prepare(Paths(raw_text=str(text_file)), settings, tmp_path / name), "dev"
        )

    assert held_out(0, "a") == held_out(0, "b") != held_out(1, "c")


def test_raw_text_is_tokenized_and_cut_into_sentences_like_a_doc(tmp_path):
    paragraph = "Don't stop! It's 5 p.m. in the U.K., isn't it?  Yes \U0001f642 .\n"
    (tmp_path / "raw.txt").write_text(("The dog barks. " * 30 + "\n\n") * 10, encoding="utf8")
    (tmp_path / "dev.txt").write_text(paragraph, encoding="utf8")
    paths = Paths(raw_text=str(tmp_path / "raw.txt"), dev_text=str(tmp_path / "dev.txt"))
    corpus = prepare(paths, Prepare(), tmp_path / "corpus")
    assert sentences_of(corpus, "dev") == [
        ["Do", "n't", "stop", "!"],
        ["It", "'s", "5", "p.m.", "in", "the", "U.K.", ",", "is", "n't", "it", "?"],
        ["Yes", "\U0001f642", "."],
    ]
    assert sentences_of(corpus, "train") == [["The", "dog", "barks", "."]] * 300


def test_too_little_text(tmp_path):
    (tmp_path / "raw.txt").write_text("one sentence .\n", encoding="utf8")
    with pytest.raises(ValueError, match="1 sentences in 1 documents.*paths.dev_text"):
        prepare(
            Paths(raw_text=str(tmp_path / "raw.txt")), Prepare(tokenized=True), tmp_path / "corpus"
        )
    (tmp_path / "raw.txt").write_text("\n \n", encoding="utf8")
    with pytest.raises(ValueError, match="No sentence in the text"):
        prepare(Paths(raw_text=str(tmp_path / "raw.txt")), Prepare(), tmp_path / "corpus")
    with pytest.raises(ValueError, match="raw_text is needed"):
        prepare(Paths(), Prepare(), tmp_path / "corpus")
    assert [path.name for path in tmp_path.iterdir()] == ["raw.txt"]


def test_a_folder_is_made_whole_or_not_at_all(tmp_path, text_file, monkeypatch):
    paths, settings = Paths(raw_text=str(text_file)), Prepare(tokenized=True)
    # What a killed run leaves is swept away by the next one.
    (tmp_path / ".corpus.partial").mkdir()
    (tmp_path / ".corpus.partial" / "train-ids.npy").touch()

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(prepare_module.np, "save", full)
        with pytest.raises(OSError, match="No space left"):
            prepare(paths, settings, tmp_path / "corpus")
    assert [path.name for path in tmp_path.iterdir()] == ["raw.txt"]
    prepare(paths, settings, tmp_path / "corpus")
    with pytest.raises(FileExistsError, match="corpus exists"):
        prepare(paths, settings, tmp_path / "corpus")


def test_open_says_what_is_wrong(tmp_path, corpus):
    with pytest.raises(FileNotFoundError, match="No prepared corpus.*prepare"):
        Corpus.open(tmp_path)
    folder = tmp_path / "corpus"
    np.save(folder / "train-ids.npy", np.zeros(3, dtype=np.int32))
    with pytest.raises(ValueError, match="train has 3 words, its offsets say"):
        Corpus.open(folder)
    (folder / "corpus.json").write_text('{"format": "else"}', encoding="utf8")
    with pytest.raises(ValueError, match="corpus: .*'format': 'else'.*prepare it again"):
        Corpus.open(folder)


@pytest.mark.parametrize(
    "name, content",
    [
        ("corpus.json", b""),
        ("corpus.json", b"[]"),
        ("corpus.json", b'{"format": "spacy-elmo corpus 1"}'),
        ("types.txt", b""),
        ("types.txt", b"<S>\n</S>\n<UNK>\nthe"),
        ("train-ids.npy", b""),
        ("dev-offsets.npy", b""),
        ("counts.npy", b""),
        ("counts.npy", b"junk"),
    ],
)
def test_a_damaged_corpus_is_to_be_prepared_again(tmp_path, text_file, name, content):
    folder = tmp_path / "corpus"
    prepare(Paths(raw_text=str(text_file)), Prepare(tokenized=True), folder)
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match="corpus: damaged.*prepare it again"):
        Corpus.open(folder)


def test_a_word_of_no_type_is_damage(tmp_path, text_file):
    folder = tmp_path / "corpus"
    prepare(Paths(raw_text=str(text_file)), Prepare(tokenized=True), folder)
    ids = np.load(folder / "train-ids.npy")
    ids[7] = 1000
    np.save(folder / "train-ids.npy", ids)
    with pytest.raises(ValueError, match="train has a word of type 1000, types.txt has"):
        Corpus.open(folder)


def test_text_without_blank_lines_is_held_out_in_parts(tmp_path):
    (tmp_path / "raw.txt").write_text(
        "\n".join(f"sentence {number} ." for number in range(2000)), encoding="utf8"
    )
    paths = Paths(raw_text=str(tmp_path / "raw.txt"))
    corpus = prepare(paths, Prepare(tokenized=True), tmp_path / "corpus")
    assert (len(corpus.train.lengths), len(corpus.dev.lengths)) == (1900, 100)


def test_pieces_change_nothing(tmp_path, text_file, monkeypatch):
    """A corpus of many pieces of a few sentences is that of one piece."""
    paths, settings = Paths(raw_text=str(text_file)), Prepare(tokenized=True)
    prepare(paths, settings, tmp_path / "one")
    monkeypatch.setattr(prepare_module, "_SENTENCES_PER_CHUNK", 7)
    monkeypatch.setattr(prepare_module, "_IDS_PER_WRITE", 50)
    prepare(paths, settings, tmp_path / "many")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [
        "corpus.json", "counts.npy", "dev-ids.npy", "dev-offsets.npy", "train-ids.npy", "train-offsets.npy",
        "types.txt",
    ]  # fmt: skip
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


def test_mistakes_are_found_before_the_text_is_read(tmp_path, text_file, monkeypatch):
    monkeypatch.setattr(prepare_module, "documents", None)
    raw = str(text_file)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        prepare(Paths(raw_text=raw, dev_text="nowhere"), Prepare(), tmp_path / "corpus")
    with pytest.raises(ValueError, match="prepare.lang = 'zz'.*Choose another language"):
        prepare(Paths(raw_text=raw), Prepare(lang="zz"), tmp_path / "corpus")
    assert [path.name for path in tmp_path.iterdir()] == ["raw.txt"]


def test_a_language_whose_tokenizer_is_not_installed(tmp_path, text_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pythainlp.tokenize", None)
    with pytest.raises(ValueError, match=r"prepare\.lang = 'th'.*PyThaiNLP"):
        prepare(Paths(raw_text=str(text_file)), Prepare(lang="th"), tmp_path / "corpus")
