"""Perplexity of text files: the same values as for a prepared corpus, in bounded memory."""

import json
import shutil
from pathlib import Path

import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import Paths, Prepare
from spacy_elmo.pretraining.corpus import tokenize as tokenize_module
from spacy_elmo.pretraining.corpus.batches import Batcher
from spacy_elmo.pretraining.corpus.prepare import prepare
from spacy_elmo.pretraining.perplexity import NOTHING, evaluate, perplexity, settings_of
from tests import tiny

VOCABULARY = ["cat", "</S>", "the", "<UNK>", "sleeps", ".", "<S>", "and", "rain"]


@pytest.fixture
def weights():
    torch.manual_seed(0)
    return Weights.from_bilm(
        tiny.bilm(tiny.config()), Head(len(VOCABULARY), 5), vocabulary=VOCABULARY
    )


def total(found):
    return sum((tally for _, tally in found), NOTHING).perplexity(len(VOCABULARY))


def close(mine, other):
    names = ("forward", "backward", "mean", "forward_known", "backward_known", "mean_known")
    for name in names:
        assert getattr(mine, name) == pytest.approx(getattr(other, name), rel=1e-6), name
    assert (mine.targets, mine.unk_share) == (other.targets, other.unk_share)


@pytest.mark.parametrize("tokenized", [True, False])
@pytest.mark.parametrize("characters", [300, 1 << 20])
def test_equals_the_prepared_corpus(
    weights, text_file, tmp_path, monkeypatch, tokenized, characters
):
    settings = Prepare(tokenized=tokenized)
    copy = Path(shutil.copy(text_file, tmp_path / "copy.txt"))
    paths = Paths(raw_text=str(copy), dev_text=str(text_file))
    corpus = prepare(paths, settings, tmp_path / "corpus")
    batcher = Batcher(weights.build_bilm(), corpus.types, VOCABULARY)
    expected = perplexity(weights.build_bilm(), weights.build_head(), batcher, corpus.dev)
    monkeypatch.setattr(tokenize_module, "_CHARACTERS_PER_TASK", characters)
    close(total(evaluate(weights, [text_file], settings)), expected)


def test_kinds_of_files(weights, tmp_path):
    """The same sentences, as plain text, JSONL and DocBin."""
    sentences = [["the", "cat", "sleeps", "."], ["the", "rare", "rain", "."]]
    plain, jsonl, docbin = (tmp_path / f"a.{kind}" for kind in ("txt", "jsonl", "spacy"))
    plain.write_text("\n".join(map(" ".join, sentences)))
    jsonl.write_text("\n".join(json.dumps({"tokens": words}) for words in sentences))
    vocab = spacy.blank("en").vocab
    DocBin(docs=[Doc(vocab, words=words) for words in sentences]).to_disk(docbin)
    found = dict(evaluate(weights, [plain, jsonl, docbin], Prepare(tokenized=True)))
    assert list(found) == [plain, jsonl, docbin]
    whole = found[plain].perplexity(9)
    assert (whole.targets, whole.unk_share) == (10, pytest.approx(0.1))
    for file in (jsonl, docbin):
        close(found[file].perplexity(9), whole)


def test_file_without_words(weights, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    ((_, tally),) = evaluate(weights, [tmp_path / "empty.txt"], Prepare(tokenized=True))
    assert tally.targets == 0


@pytest.mark.parametrize(
    "card, settings",
    [
        ({"language": "en", "tokenizer": "text as given"}, Prepare(tokenized=True)),
        ({"language": "de", "tokenizer": "spacy.blank('de')"}, Prepare(lang="de")),
    ],
)
def test_card_says_how_text_becomes_words(card, settings):
    assert settings_of(card) == settings


@pytest.mark.parametrize(
    "card", [{}, {"language": "ja", "tokenizer": "spacy.blank('ja') with nlp.tokenizer = {...}"}]
)
def test_card_that_does_not_say(card):
    with pytest.raises(ValueError, match="`--lang`.* or tokenized .`--tokenized`"):
        settings_of(card)
