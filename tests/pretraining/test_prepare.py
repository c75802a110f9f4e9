"""Prepared corpora, compared with their text word by word."""

import collections
import random

import numpy as np
import pytest

from spacy_elmo.bilm.spelling import Spelling
from spacy_elmo.pretraining import prepare as prepare_module
from spacy_elmo.pretraining import tokenize as tokenize_module
from spacy_elmo.pretraining.config import Paths, Prepare
from spacy_elmo.pretraining.corpus import Corpus
from spacy_elmo.pretraining.prepare import prepare
from tests.pretraining.conftest import raw_text


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


def test_held_out_text_does_not_change_the_order_of_equally_frequent_words(tmp_path):
    # Each word is in two documents, far from each other, so the split takes the first or the last of some words.
    documents = 400
    lines = [f"w{i} w{documents - 1 - i} .\n" for i in range(documents)]
    (tmp_path / "raw.txt").write_text("\n".join(lines), encoding="utf8")
    corpus = prepare(
        Paths(raw_text=str(tmp_path / "raw.txt")), Prepare(tokenized=True), tmp_path / "corpus"
    )
    words = [word for sentence in sentences_of(corpus, "train") for word in sentence]
    counts = collections.Counter(words)
    assert {1, 2} < set(counts.values())
    expected = sorted(counts, key=lambda word: (-counts[word], words.index(word)))
    assert corpus.vocabulary(1000)[3:] == expected


def test_types_are_spelled_words(tmp_path):
    text = "a vvlgo cafe\u0301 .\n" + "b uulgo caf\u00e9 .\n" * 200
    (tmp_path / "raw.txt").write_text(text, encoding="utf8")
    (tmp_path / "dev.txt").write_text("c vulgo .\n", encoding="utf8")
    paths = Paths(raw_text=str(tmp_path / "raw.txt"), dev_text=str(tmp_path / "dev.txt"))
    rule = Spelling("NFC", (("v", "u"),))
    corpus = prepare(paths, Prepare(tokenized=True, n_process=2), tmp_path / "corpus", rule)
    assert corpus.spelling == Corpus.open(tmp_path / "corpus").spelling == rule
    assert sorted(corpus.types[3:]) == [".", "a", "b", "c", "caf\u00e9", "uulgo"]
    assert corpus.counts[corpus.types.index("uulgo")] == 201
    assert sentences_of(corpus, "train")[:2] == [
        [first, "uulgo", "caf\u00e9", "."] for first in "ab"
    ]


def test_the_seed_decides_what_is_held_out(tmp_path, text_file):
    def held_out(seed: int, name: str) -> list[list[str]]:
        settings = Prepare(tokenized=True, seed=seed)
        return sentences_of(
            prepare(Paths(raw_text=str(text_file)), settings, tmp_path / name), "dev"
        )

    assert held_out(0, "a") == held_out(0, "b") != held_out(1, "c")


def test_held_out_files_in_the_training_text(tmp_path):
    (tmp_path / "raw.txt").write_text("a cat sleeps .\n" * 9, "utf8")
    (tmp_path / "dev.txt").write_text("a dog barks .\n" * 9, "utf8")
    paths = Paths(raw_text=str(tmp_path), dev_text=str(tmp_path / "d*.txt"))
    with pytest.raises(ValueError, match=r"dev\.txt"):
        prepare(paths, Prepare(tokenized=True), tmp_path / "corpus")


def test_too_little_text(tmp_path):
    (tmp_path / "raw.txt").write_text("one sentence .\n", encoding="utf8")
    with pytest.raises(ValueError, match="1 sentences .*paths.dev_text"):
        prepare(
            Paths(raw_text=str(tmp_path / "raw.txt")), Prepare(tokenized=True), tmp_path / "corpus"
        )
    (tmp_path / "raw.txt").write_text("\n \n", encoding="utf8")
    with pytest.raises(ValueError, match="raw.txt' has no sentence"):
        prepare(Paths(raw_text=str(tmp_path / "raw.txt")), Prepare(), tmp_path / "corpus")
    with pytest.raises(ValueError, match="raw_text is missing"):
        prepare(Paths(), Prepare(), tmp_path / "corpus")
    assert [path.name for path in tmp_path.iterdir()] == ["raw.txt"]


def test_a_folder_is_replaced_on_request_if_it_is_a_corpus(tmp_path, text_file):
    paths, settings = Paths(raw_text=str(text_file)), Prepare(tokenized=True)
    # What a killed run leaves is swept away by the next one.
    (tmp_path / ".corpus.1-1.partial").mkdir()
    prepare(paths, settings, tmp_path / "corpus")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "raw.txt"]
    with pytest.raises(FileExistsError, match="corpus exists.*--force"):
        prepare(paths, settings, tmp_path / "corpus")
    text_file.write_text("the newest sentence .\n\n" * 300, encoding="utf8")
    assert "newest" in prepare(paths, settings, tmp_path / "corpus", force=True).types
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "kept.txt").touch()
    with pytest.raises(FileExistsError, match="letters is not a prepared corpus"):
        prepare(paths, settings, tmp_path / "letters", force=True)
    assert (tmp_path / "letters" / "kept.txt").exists()


def test_no_bit_of_a_corpus_changes_unnoticed(tmp_path, corpus):
    folder, draw = tmp_path / "corpus", random.Random(0)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for _ in range(40):
            bit = draw.randrange(8 * len(content))
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            try:
                opened = Corpus.open(folder)
            except (ValueError, OSError) as error:
                assert str(folder) in str(error)
            else:  # white space in JSON
                assert path.name == "corpus.json"
                assert opened.types == corpus.types and opened.lang == corpus.lang
        path.write_bytes(content)
    Corpus.open(folder)
    (folder / "corpus.json").write_text('{"format": "else"}', encoding="utf8")
    with pytest.raises(ValueError, match="corpus is damaged.*'format': 'else'.*prepare it again"):
        Corpus.open(folder)


@pytest.mark.parametrize("settings", [Prepare(), Prepare(tokenized=True)])
def test_tasks_and_processes_change_nothing(tmp_path, monkeypatch, settings):
    """A corpus that several processes make in many small tasks equals one made in a single task, byte for byte."""
    text = "\n\n".join(f"The {n} owls of {n % 20} . They sleep!\nBirds {n % 9}" for n in range(600))
    (tmp_path / "raw.txt").write_text(text, encoding="utf8")
    paths = Paths(raw_text=str(tmp_path / "raw.txt"))
    prepare(paths, settings, tmp_path / "one")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [
        "corpus.json", "counts.npy", "dev-ids.npy", "dev-offsets.npy", "train-ids.npy", "train-offsets.npy",
        "types.txt",
    ]  # fmt: skip
    monkeypatch.setattr(prepare_module, "_SENTENCES_PER_CHUNK", 7)
    monkeypatch.setattr(tokenize_module, "_CHARACTERS_PER_TASK", 1000)
    for n_process in (1, 2):
        many = tmp_path / f"many-{n_process}"
        prepare(paths, settings.model_copy(update={"n_process": n_process}), many)
        for name in names:
            assert (tmp_path / "one" / name).read_bytes() == (many / name).read_bytes()
