"""A run that imitates a larger biLM."""

import dataclasses

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.likelihood import build_language_model
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.corpus import Batcher
from spacy_elmo.pretraining.loss import targets
from spacy_elmo.pretraining.run import pretrain
from spacy_elmo.pretraining.sampled_softmax import Negatives
from spacy_elmo.pretraining.teacher import Teacher
from tests.pretraining.conftest import assert_same_run


@pytest.fixture
def teacher(make_config, corpus, tmp_path):
    """Return a weights file of random weights with decided opinions, and a network other than that of the run."""
    torch.manual_seed(3)
    config = dataclasses.replace(make_config().bilm, dim=12, projection=6, max_characters=20)
    vocabulary = corpus.vocabulary(15)
    head = Head(len(vocabulary), config.projection)
    with torch.no_grad():
        head.bias.normal_(std=2)
        head.weight.mul_(20)
    path = tmp_path / "teacher.safetensors"
    Weights.from_bilm(BiLM(config), head, vocabulary=vocabulary, card={"name": "wise"}).save(path)
    return path


@pytest.fixture
def make_config(make_run_config, tmp_path):
    def make(paths=(), **training) -> PretrainConfig:
        config = make_run_config()
        sections = {
            "paths": config.paths.model_copy(update=dict(paths)),
            "training": config.training.model_copy(update=training),
        }
        return config.model_copy(update=sections)

    return make


def taught(make_config, path, **training):
    return make_config({"teacher": str(path)}, vocab_size=None, **training)


def divergence(path, teacher, corpus):
    """The mean divergence of the predictions in a weights file from those of the teacher, in nats."""
    logs = []
    for weights in (Weights.load(teacher), Weights.load(path)):
        bilm, head = build_language_model(weights)
        batch = Batcher(bilm, corpus.types, weights.vocabulary)(*corpus.dev.take(np.arange(20)))
        with torch.no_grad():
            output = bilm.forward_packed(
                bilm.encode(batch.token_ids), batch.type_of_word, batch.lengths
            )
            logs.append(head.log_softmax(output.outputs[-1].flatten(0, 1)))
    return float((logs[0].exp() * (logs[0] - logs[1])).sum(1).mean())


def test_probabilities_are_those_of_the_softmax_over_target_and_samples(teacher, corpus):
    weights = Weights.load(teacher)
    bilm, head = build_language_model(weights)
    batch = Batcher(bilm, corpus.types, weights.vocabulary)(*corpus.train.take(np.arange(9)))
    negatives = [Negatives(15, 6, np.random.default_rng(seed)) for seed in range(2)]
    with torch.no_grad():
        output = bilm.forward_packed(
            bilm.encode(batch.token_ids), batch.type_of_word, batch.lengths
        )
        classes = torch.from_numpy(targets(output, batch.classes))
        directions = Teacher(weights, corpus.types, torch.device("cpu"))(batch, classes, negatives)
        for hidden, target, samples, actual in zip(
            output.outputs[-1], classes, negatives, directions, strict=True
        ):
            scores = head.log_softmax(hidden) - samples.log_count(torch.arange(15))
            for row, word in enumerate(target.tolist()):
                others = [sample for sample in samples.rows.tolist() if sample != word]
                expected = scores[row, [word, *others]].softmax(0)
                found = dict(zip(samples.rows.tolist(), actual.terms[row], strict=True))
                assert float(actual.targets[row]) == pytest.approx(float(expected[0]), rel=1e-4)
                for sample, probability in zip(others, expected[1:].tolist(), strict=True):
                    scaled = float(found[sample] * actual.scale[row])
                    assert scaled == pytest.approx(probability, rel=1e-4, abs=1e-7)
                assert word in others or float(found.get(word, 0.0)) == 0


def test_a_run_predicts_as_its_teacher_does(make_config, teacher, corpus, tmp_path):
    initial = {"init": str(teacher.with_name("first.safetensors"))}
    first = taught(make_config, teacher, max_steps=1, learn_rate=1e-9)
    list(pretrain(first, tmp_path / "first"))
    (tmp_path / "first/model-last.safetensors").rename(tmp_path / "first.safetensors")
    settings = {"vocab_size": None, "max_steps": 60, "learn_rate": 0.03, "negatives": 12}
    list(pretrain(make_config(initial, **settings), tmp_path / "alone"))
    list(
        pretrain(make_config({**initial, "teacher": str(teacher)}, **settings), tmp_path / "taught")
    )
    start, alone, taught_ = (
        divergence(tmp_path / name, teacher, corpus)
        for name in (
            "first.safetensors",
            "alone/model-last.safetensors",
            "taught/model-last.safetensors",
        )
    )
    assert taught_ < 0.5 * start and taught_ < 0.5 * alone


def test_the_weights_have_the_words_and_the_card_of_the_teacher(make_config, teacher, tmp_path):
    list(pretrain(taught(make_config, teacher, max_steps=1), tmp_path / "run"))
    weights = Weights.load(tmp_path / "run/model-last.safetensors")
    assert weights.vocabulary == Weights.load(teacher).vocabulary
    assert weights.card["teacher"] == {"name": "wise"} and "init" not in weights.card


def test_a_resumed_run_needs_the_same_teacher_but_not_the_same_path(make_config, teacher, tmp_path):
    list(pretrain(taught(make_config, teacher), tmp_path / "unbroken"))
    broken = pretrain(taught(make_config, teacher), tmp_path / "broken")
    assert next(broken).step == 5
    broken.close()
    moved = teacher.rename(tmp_path / "moved.safetensors")
    other = Weights.load(moved)
    other.tensors["head.weight"] = -other.tensors["head.weight"]
    other.save(teacher)
    for paths in ({"teacher": str(teacher)}, {"init": str(moved)}):
        with pytest.raises(ValueError, match=r"another teacher|paths\.init"):
            next(pretrain(make_config(paths, vocab_size=None), tmp_path / "broken", resume=True))
    list(pretrain(taught(make_config, moved), tmp_path / "broken", resume=True))
    assert_same_run(tmp_path / "broken", tmp_path / "unbroken")


def test_teachers_that_cannot_teach(make_config, teacher, tmp_path):
    out, good = tmp_path / "run", Weights.load(teacher)
    config = taught(make_config, teacher)

    def refused(match):
        with pytest.raises(ValueError, match=match):
            next(pretrain(config, out))
        assert not out.exists()

    good.without_head().save(teacher)
    refused("paths.teacher = .*teacher.safetensors has no softmax")
    dataclasses.replace(good, card={"language": "la"}).save(teacher)
    refused("paths.teacher = .*teacher.safetensors was trained on text of the language 'la'")
    other = dataclasses.replace(good, config=dataclasses.replace(good.config, unicode_form="NFC"))
    other.save(teacher)
    refused("paths.teacher = .* has unicode_form = 'NFC'")
