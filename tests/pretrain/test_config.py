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


def test_preparing_needs_no_limit():
    assert PretrainConfig.of({}, training=False).training.max_steps is None
    with pytest.raises(ValueError, match="learn_rat"):
        PretrainConfig.of({"training": {"learn_rat": 1}}, training=False)


@pytest.mark.parametrize(
    "section, field",
    [("training", "max_steps"), ("training", "max_minutes"), ("prepare", "seed"), ("paths", "raw_text")],
)  # fmt: skip
def test_an_option_without_its_value_is_no_one(section, field):
    """`--training.max_steps` alone is true on spaCy's command line."""
    sections = {"training": {"max_epochs": 1}, "prepare": {}}
    sections.setdefault(section, {})[field] = True
    with pytest.raises(ValueError, match=rf"\[{section}\] {field} = True: .*value left out"):
        PretrainConfig.of(sections)


def test_true_is_a_value_of_a_switch():
    config = PretrainConfig.of({"training": {"max_tokens": 1e6}, "prepare": {"tokenized": True}})
    assert config.prepare.tokenized is True
    assert config.training.max_tokens == 1_000_000


def test_word_input_is_refused():
    with pytest.raises(ValueError, match=r"\[model\] words = 7: .*not supported yet"):
        PretrainConfig.of({"training": {"max_steps": 1}, "model": {"words": 7}})
