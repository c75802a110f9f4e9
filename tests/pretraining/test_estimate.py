"""Statistics of a corpus, compared with counts by hand, and the arithmetic of estimates, which are measured."""

import pytest
import torch

from spacy_elmo.pretraining.config import Paths, Prepare, PretrainConfig
from spacy_elmo.pretraining.estimate import estimate, statistics
from spacy_elmo.pretraining.prepare import prepare
from spacy_elmo.pretraining.source_weights import SourceWeights

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "limits, words",
    [
        ({"max_steps": 50}, None),
        ({"max_steps": 1}, None),
        ({"max_steps": None, "max_epochs": 3}, 3),
        ({"max_steps": None, "max_tokens": 4000}, None),
    ],
)
def test_the_whole_run(corpus, make_config, limits, words):
    config = make_config(**limits)
    actual = estimate(config, corpus, CPU, SourceWeights())
    per_epoch = len(corpus.train.ids)
    if words is not None:
        assert actual.words == pytest.approx(words * per_epoch)
    elif "max_tokens" in limits:
        assert actual.words == pytest.approx(4000, abs=64)
    else:
        # About batch_tokens a step; batches hold whole sentences.
        assert 40 * limits["max_steps"] < actual.words < 90 * limits["max_steps"]
    assert actual.minutes == pytest.approx(actual.words / actual.words_per_second / 60)
    # Torch alone takes a tenth of this.
    assert 1e8 < actual.memory < 1e11


def test_minutes_limit_a_run_too(corpus, make_config):
    actual = estimate(make_config(max_steps=None, max_minutes=1e-9), corpus, CPU, SourceWeights())
    assert (actual.words, actual.minutes) == (None, 1e-9)
    actual = estimate(make_config(max_steps=10**9, max_minutes=2.0), corpus, CPU, SourceWeights())
    assert actual.minutes == 2.0 and actual.words > 10**9


def test_it_leaves_nothing_and_draws_nothing(corpus, make_config, tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    before = torch.get_rng_state()
    estimate(make_config(), corpus, CPU, SourceWeights())
    assert torch.equal(torch.get_rng_state(), before)
    assert not [*(tmp_path / "scratch").iterdir()]


@pytest.fixture
def small_corpus(tmp_path):
    # 10 training words: 4 a, 3 b, 2 long ones (of 11 and 10 bytes), 1 <UNK>; 4 held-out words.
    (tmp_path / "raw.txt").write_text("a a b\na a b b\nabcdefghijk ééééé <UNK>\n", encoding="utf8")
    (tmp_path / "dev.txt").write_text("a c <UNK> abcdefghijk\n", encoding="utf8")
    paths = Paths(raw_text=str(tmp_path / "raw.txt"), dev_text=str(tmp_path / "dev.txt"))
    return prepare(paths, Prepare(tokenized=True), tmp_path / "corpus")


def config(**training) -> PretrainConfig:
    return PretrainConfig.read(
        {"model": {"max_characters": 12}, "training": {"max_steps": 1, "negatives": 4, **training}}
    )


def test_shares(small_corpus):
    actual = statistics(config(vocab_size=5, max_length=3), small_corpus, SourceWeights())
    assert actual.vocab_size == 5  # <S>, </S>, <UNK>, a, b
    assert actual.covered == pytest.approx(0.7)
    assert actual.held_out_covered == pytest.approx(0.25)
    assert actual.long_words == pytest.approx(0.1)  # 12 places less two marks: 10 bytes fit
    assert actual.long_sentences == pytest.approx(1 / 3)
    all_types = statistics(config(vocab_size=100), small_corpus, SourceWeights())
    assert all_types.vocab_size == 7 and all_types.covered == pytest.approx(0.9)
    assert all_types.held_out_covered == pytest.approx(0.5)


@pytest.mark.parametrize(
    "limits, passes",
    [
        ({"max_steps": 10, "batch_tokens": 4}, 4),
        ({"max_epochs": 3}, 3),
        ({"max_tokens": 25, "max_epochs": 3}, 2.5),
        ({"max_minutes": 1}, None),
    ],
)
def test_passes(small_corpus, limits, passes):
    """The corpus has 10 training words."""
    settings = config(**{"max_steps": None, **limits})
    assert statistics(settings, small_corpus, SourceWeights()).passes == passes
