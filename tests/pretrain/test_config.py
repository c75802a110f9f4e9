"""Settings are checked all at once."""

import pytest

from spacy_elmo.pretrain.config import PretrainConfig


def test_all_problems_at_once():
    with pytest.raises(ValueError) as error:
        PretrainConfig.of(
            {
                "training": {"max_steps": 10, "learn_rat": 0.1, "batch_tokens": -3},
                "model": {"dim": 0, "layers": 2},
                "pathes": {},
            }
        )
    message = str(error.value)
    for part in (
        "[training] learn_rat = 0.1",
        "[training] batch_tokens = -3",
        "dim = 0",
        "[pathes]",
    ):
        assert part in message


def test_a_limit_is_needed():
    with pytest.raises(ValueError, match="needs a limit, at least one of max_steps"):
        PretrainConfig.of({})


def test_more_negatives_than_words():
    with pytest.raises(ValueError, match="negatives = 30: at most vocab_size = 20"):
        PretrainConfig.of({"training": {"max_steps": 1, "negatives": 30, "vocab_size": 20}})
