"""Held-out perplexity, compared with one sentence at a time, and of text files of several types."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining import perplexity as perplexity_module
from spacy_elmo.pretraining import tokenize as tokenize_module
from spacy_elmo.pretraining.config import Paths, Prepare
from spacy_elmo.pretraining.corpus import Batcher, Sentences
from spacy_elmo.pretraining.perplexity import evaluate, perplexity
from spacy_elmo.pretraining.prepare import prepare
from tests import tiny
from tests.pretraining.conftest import TYPES, VOCAB

SENTENCES = ["a rare cat sat", "cat", "a cat sat a cat", "rare"]


@pytest.fixture
def head():
    torch.manual_seed(0)
    return Head(VOCAB, 5)


def corpus(*sentences: str) -> Sentences:
    words = [sentence.split() for sentence in sentences]
    ids = [TYPES.index(word) for sentence in words for word in sentence]
    lengths = [len(sentence) for sentence in words]
    return Sentences(np.array(ids, dtype=np.int32), np.append(0, np.cumsum(lengths, dtype=int)))


@torch.no_grad()
def word_by_word(bilm, head, sentences):
    """Compute cross-entropies from one sentence at a time, indexing its layers."""
    losses = {"forward": [], "backward": []}
    for sentence in sentences:
        words = sentence.split()
        goals = [TYPES.index(w) if TYPES.index(w) < VOCAB else 2 for w in words]
        top = tiny.read(bilm, [words]).layers[-1]
        width = top.shape[1] // 2
        # What each direction says before any word: read from an empty sentence, which has only boundaries.
        opening = bilm.forward_packed(
            bilm.encode_words([]), np.array([], dtype=np.int64), [0]
        ).outputs[-1]
        rows = {
            "forward": ([opening[0, 0], *top[:, :width]], [*goals, 1]),
            "backward": ([opening[1, 0], *top.flip(0)[:, width:]], [*goals[::-1], 0]),
        }
        for direction, (hidden, target) in rows.items():
            logits = torch.stack(hidden) @ head.weight.t() + head.bias[:, 0]
            actual = F.cross_entropy(logits, torch.tensor(target), reduction="none").tolist()
            losses[direction] += zip(actual, target, strict=True)
    return losses


@pytest.mark.parametrize("batch_tokens", [3, 4096])
def test_equals_word_by_word_reading(bilm, head, batcher, batch_tokens, monkeypatch):
    monkeypatch.setattr(perplexity_module, "MAX_WORDS", batch_tokens)
    result = perplexity(bilm, head, batcher, corpus(*SENTENCES))
    losses = word_by_word(bilm, head, SENTENCES)
    forward, backward = (np.mean([loss for loss, _ in losses[d]]) for d in ("forward", "backward"))
    assert result.forward == pytest.approx(math.exp(forward), rel=1e-5)
    assert result.backward == pytest.approx(math.exp(backward), rel=1e-5)
    assert result.mean == pytest.approx(math.exp((forward + backward) / 2), rel=1e-5)
    known = [
        np.mean([loss for loss, target in losses[d] if target != 2])
        for d in ("forward", "backward")
    ]
    assert result.forward_known == pytest.approx(math.exp(known[0]), rel=1e-5)
    assert result.backward_known == pytest.approx(math.exp(known[1]), rel=1e-5)
    assert result.mean_known == pytest.approx(math.exp(np.mean(known)), rel=1e-5)
    assert (result.targets, result.vocab_size) == (11 + 4, 6)
    assert result.unk_share == pytest.approx(2 / 15)


def test_nothing(bilm, head, batcher):
    with pytest.raises(ValueError, match="no sentence"):
        perplexity(bilm, head, batcher, corpus())


VOCABULARY = ["cat", "</S>", "the", "<UNK>", "sleeps", ".", "<S>", "and", "rain"]


@pytest.fixture
def weights():
    torch.manual_seed(0)
    return Weights.from_bilm(
        tiny.bilm(tiny.config()), Head(len(VOCABULARY), 5), vocabulary=VOCABULARY
    )


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
    found = evaluate(weights, [text_file], settings).perplexity(len(VOCABULARY))
    close(found, expected)


@pytest.mark.parametrize(
    "card, settings",
    [
        ({"language": "en", "tokenizer": "text as given"}, Prepare(tokenized=True)),
        ({"language": "de", "tokenizer": "spacy.blank('de')"}, Prepare(lang="de")),
        ({}, None),
        ({"language": "ja", "tokenizer": "spacy.blank('ja') with nlp.tokenizer = {...}"}, None),
    ],
)
def test_card_says_how_text_becomes_words(card, settings):
    if settings is not None:
        assert Prepare.of_card(card) == settings
        return
    with pytest.raises(ValueError, match="`--lang`.* or tokenized .`--tokenized`"):
        Prepare.of_card(card)
