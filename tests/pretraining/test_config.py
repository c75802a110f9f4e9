"""All problems of a config are reported at once."""

import json
from pathlib import Path

import pytest
import torch
from confection import Config

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.pretraining.config import PretrainConfig

CONFIGS = Path(__file__).parents[2] / "configs"


def test_all_problems_at_once():
    with pytest.raises(ValueError) as error:
        PretrainConfig.read(
            {
                "training": {"max_step": 10, "learn_rat": 0.1, "batch_tokens": -3, "zzz": 1},
                "model": {"dim": 0, "layers": 2},
                "pathes": {},
            }
        )
    message = str(error.value)
    for part in (
        "[training] max_step = 10: unknown setting (do you mean max_steps?)",
        "[training] learn_rat = 0.1: unknown setting (do you mean learn_rate?)",
        "[training] zzz = 1: unknown setting\n",
        "[training] batch_tokens = -3",
        "dim = 0",
        "[pathes]: unknown section (do you mean paths?)",
    ):
        assert part in message


def test_paths_from_python():
    paths = {"raw_text": Path("a.txt"), "init": Path("first.safetensors")}
    overrides = {"training.max_steps": 1, "paths.init": Path("b.safetensors")}
    config = PretrainConfig.read({"paths": paths}, overrides)
    assert (config.paths.raw_text, config.paths.init) == ("a.txt", "b.safetensors")


@pytest.mark.parametrize(
    "teacher, model, training, problem",
    [
        (None, {}, {"max_steps": None}, "at least one of max_steps"),
        (None, {"n_words": 7}, {}, r"\[model\] n_words = 7: "),
        (None, {"n_symbols": 7}, {}, r"\[model\] n_symbols = 7: "),
        (None, {}, {"negatives": 30, "vocab_size": 20}, "negatives = 30: .*vocab_size = 20"),
        (None, {}, {"vocab_size": None}, "both are null"),
        ("wise", {"dim": 8}, {"vocab_size": 15}, "teacher = wise: .*vocab_size = null .*negatives"),
        ("wise", {"dim": 8}, {"vocab_size": None, "negatives": None}, "vocab_size = null .*negatives"),
        ("wise", {}, {"vocab_size": None}, r"\[model\] is empty"),
    ],
)  # fmt: skip
def test_settings_that_no_run_can_have(teacher, model, training, problem):
    sections = {"paths": {"teacher": teacher}, "model": model}
    with pytest.raises(ValueError, match=problem):
        PretrainConfig.read({**sections, "training": {"max_steps": 1, **training}})


def test_preparing_needs_no_limit():
    assert PretrainConfig.read({}, training=False).training.max_steps is None
    with pytest.raises(ValueError, match="learn_rat"):
        PretrainConfig.read({"training": {"learn_rat": 1}}, training=False)


@pytest.mark.parametrize(
    "section, field",
    [("training", "max_steps"), ("training", "max_minutes"), ("prepare", "seed"), ("paths", "raw_text")],
)  # fmt: skip
def test_an_option_without_its_value_is_no_one(section, field):
    """On spaCy's command line, `--training.max_steps` without a value means true, which must not count as 1."""
    sections = {"training": {"max_epochs": 1}, "prepare": {}}
    sections.setdefault(section, {})[field] = True
    said = rf"\[{section}\] {field} = True: must not be true"
    with pytest.raises(ValueError, match=said):
        PretrainConfig.read(sections)


# Of the biLM without its head; the last three are the numbers published for the models of these sizes.
MILLIONS = {"smoke": 0.2, "mini": 3.0, "small": 13.6, "medium": 28.0, "original": 93.6}


@pytest.mark.parametrize("name", MILLIONS)
def test_shipped_configs(name):
    config = PretrainConfig.read(CONFIGS / f"pretrain_{name}.cfg")
    with torch.device("meta"):
        parameters = sum(p.numel() for p in BiLM(config.bilm).parameters())
    assert round(parameters / 1e6, 1) == MILLIONS[name]


def test_the_original_is_the_paper_s():
    """The settings of bilm-tf's `bin/train_elmo.py` on three GPUs. With the gradient of the mean loss, the clip is 10 /
    20."""
    config = PretrainConfig.read(CONFIGS / "pretrain_original.cfg")
    assert config.bilm == BiLMConfig()
    settings = config.training
    assert (settings.optimizer, settings.learn_rate, settings.grad_clip) == (
        "adagrad",
        0.2,
        10 / 20,
    )
    assert (settings.vocab_size, settings.negatives) == (793471, 8192)
    assert (settings.batch_tokens, settings.max_epochs) == (128 * 20 * 3, 10)
    assert (settings.dropout, settings.warmup_steps, settings.cooldown) == (0.1, 0, 0)


@pytest.mark.parametrize("source", ["file", "dict", "override"])
def test_replaced_characters_survive_the_config_of_the_run(tmp_path, source):
    """In a config file, "#" would begin a comment, and ":" would end a name."""
    replace = {"#": "", ":": ".", "=": "-", "v": "u"}
    sections = {
        "model": {**BiLMConfig().to_dict(), "replace": replace},
        "training": {"max_steps": 1},
    }
    if source == "file":
        path = tmp_path / "file.cfg"
        text = "".join(
            f"[{name}]\n"
            + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
            for name, values in sections.items()
        )
        path.write_text(text, "utf8")
        config = PretrainConfig.read(path)
    elif source == "dict":
        config = PretrainConfig.read(sections)
    else:
        del sections["model"]["replace"]
        config = PretrainConfig.read(sections, {"model.replace": replace})
    Config(config.model_dump()).to_disk(tmp_path / "config.cfg")
    assert PretrainConfig.read(tmp_path / "config.cfg").bilm == config.bilm
    assert dict(config.bilm.replace) == replace
