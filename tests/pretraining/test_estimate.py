"""Estimates are measured, so only their arithmetic and side effects are tested."""

import pytest
import torch

from spacy_elmo.pretraining.estimate import estimate
from spacy_elmo.pretraining.training.initial_weights import GivenWeights

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
    actual = estimate(config, corpus, CPU, GivenWeights())
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
    actual = estimate(make_config(max_steps=None, max_minutes=1e-9), corpus, CPU, GivenWeights())
    assert (actual.words, actual.minutes) == (None, 1e-9)
    actual = estimate(make_config(max_steps=10**9, max_minutes=2.0), corpus, CPU, GivenWeights())
    assert actual.minutes == 2.0 and actual.words > 10**9


def test_it_leaves_nothing_and_draws_nothing(corpus, make_config, tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    before = torch.get_rng_state()
    estimate(make_config(), corpus, CPU, GivenWeights())
    assert torch.equal(torch.get_rng_state(), before)
    assert not [*(tmp_path / "scratch").iterdir()]
