"""Statistics of a corpus, compared with counts by hand."""

import pytest

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import Paths, Prepare, PretrainConfig
from spacy_elmo.pretraining.corpus.prepare import prepare
from spacy_elmo.pretraining.report.statistics import statistics
from spacy_elmo.pretraining.training.initial_weights import GivenWeights
from tests import tiny


@pytest.fixture
def corpus(tmp_path):
    # 10 training words: 4 a, 3 b, 2 long ones (of 11 and 10 bytes), 1 <UNK>; 4 held-out words.
    (tmp_path / "raw.txt").write_text("a a b\na a b b\nabcdefghijk ééééé <UNK>\n", encoding="utf8")
    (tmp_path / "dev.txt").write_text("a c <UNK> abcdefghijk\n", encoding="utf8")
    paths = Paths(raw_text=str(tmp_path / "raw.txt"), dev_text=str(tmp_path / "dev.txt"))
    return prepare(paths, Prepare(tokenized=True), tmp_path / "corpus")


def config(**training) -> PretrainConfig:
    return PretrainConfig.of(
        {"model": {"max_characters": 12}, "training": {"max_steps": 1, "negatives": 4, **training}}
    )


def test_shares(corpus):
    actual = statistics(config(vocab_size=5, max_length=3), corpus, GivenWeights())
    assert actual.vocab_size == 5  # <S>, </S>, <UNK>, a, b
    assert actual.covered == pytest.approx(0.7)
    assert actual.held_out_covered == pytest.approx(0.25)
    assert actual.long_words == pytest.approx(0.1)  # 12 places less two marks: 10 bytes fit
    assert actual.long_sentences == pytest.approx(1 / 3)
    all_types = statistics(config(vocab_size=100), corpus, GivenWeights())
    assert all_types.vocab_size == 7 and all_types.covered == pytest.approx(0.9)
    assert all_types.held_out_covered == pytest.approx(0.5)


def test_the_vocabulary_of_given_weights(corpus):
    bilm = tiny.bilm(tiny.config())
    head = Head(4, bilm.config.projection)
    vocabulary = ["<S>", "</S>", "<UNK>", "c"]
    initial = Weights.from_bilm(bilm, head, vocabulary=vocabulary, card={})
    given = PretrainConfig.of(
        {
            "paths": {"init": "given.safetensors"},
            "model": bilm.config.to_dict(),
            "training": {"max_steps": 1, "vocab_size": None},
        }
    )
    actual = statistics(given, corpus, GivenWeights(initial))
    assert (actual.vocab_size, actual.covered, actual.held_out_covered) == (4, 0, 0.25)
