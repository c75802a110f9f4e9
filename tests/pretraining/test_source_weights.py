"""Initial weights: rows of the head are copied by word, and the network must be the same."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.spelling import Spelling
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.corpus import Corpus
from spacy_elmo.pretraining.source_weights import (
    InitialModel,
    SourceWeights,
    initial_model,
    read_source_weights,
)
from spacy_elmo.pretraining.trainer import Progress, train
from tests.pretraining.conftest import log_of

GIVEN = ["<S>", "</S>", "<UNK>", "heron", "cat", "the"]


@pytest.fixture
def given(make_config, tmp_path):
    """Return a weights file with the network of the tests, whose head has two words of their corpus and one other."""
    torch.manual_seed(9)
    config = make_config().bilm
    head = Head(len(GIVEN), config.projection)
    with torch.no_grad():
        head.bias.normal_()
    path = tmp_path / "given.safetensors"
    Weights.from_bilm(BiLM(config), head, vocabulary=GIVEN, card={"name": "given"}).save(path)
    return path


@pytest.fixture
def make_config(make_run_config, tmp_path):
    def make(init=True, **training) -> PretrainConfig:
        config = make_run_config()
        given = str(tmp_path / "given.safetensors") if init else None
        sections = {
            "paths": config.paths.model_copy(update={"init": given}),
            "training": config.training.model_copy(update=training),
        }
        return config.model_copy(update=sections)

    return make


def model(config: PretrainConfig, corpus: Corpus) -> InitialModel:
    """Return the network of a run before its first step."""
    config, given = read_source_weights(config)
    return initial_model(config, corpus, given)


def rows_of(config: PretrainConfig, corpus: Corpus, out: Path, **options) -> Iterator[Progress]:
    """Train from the weights that the config names."""
    config, given = read_source_weights(config)
    return train(config, corpus, out, sources=given, **options)


def test_words_keep_their_rows_and_others_start_at_random(make_config, corpus, given):
    actual, known = model(make_config(), corpus), Weights.load(given)
    assert all(
        torch.equal(tensor, known.tensors[name])
        for name, tensor in actual.bilm.state_dict().items()
    )
    assert actual.vocabulary == corpus.vocabulary(20) and "heron" not in actual.vocabulary
    fresh = model(make_config(init=False), corpus).head
    for name in ("weight", "bias"):
        mine, random = getattr(actual.head, name), getattr(fresh, name)
        for row, word in enumerate(actual.vocabulary):
            expected = (
                known.tensors[f"head.{name}"][GIVEN.index(word)] if word in GIVEN else random[row]
            )
            assert torch.equal(mine[row], expected), word
    assert actual.card == {"init": {"name": "given"}}


def test_weights_without_a_head(make_config, corpus, given):
    Weights.load(given).without_head().save(given)
    actual, fresh = (
        model(make_config(), corpus),
        model(make_config(init=False), corpus),
    )
    assert torch.equal(actual.head.weight, fresh.head.weight)
    assert not torch.equal(actual.bilm.lstm[0].input, fresh.bilm.lstm[0].input)
    with pytest.raises(ValueError, match=r"vocab_size = null .*given\.safetensors"):
        model(make_config(vocab_size=None), corpus)


def test_another_network_is_refused_with_every_difference(make_config, corpus, given):
    config = make_config()
    other = config.model_copy(update={"model": {**config.model, "dim": 6, "skip": False}})
    with pytest.raises(
        ValueError, match=r"dim = 6, but 8 in the file\n  skip = False, but True in the file$"
    ) as error:
        model(other, corpus)
    assert "paths.init" in str(error.value)


@pytest.mark.parametrize(("card", "prepared"), [("la", "en"), ("la", "xx"), (None, "en")])
def test_weights_of_another_language_are_refused(make_config, corpus, given, card, prepared):
    """The card of the trained weights would name `prepare.lang`, which would be wrong."""
    weights = Weights.load(given)
    weights.card["language"] = card
    weights.save(given)
    config = make_config()
    config = config.model_copy(
        update={"prepare": config.prepare.model_copy(update={"lang": prepared})}
    )
    if (card, prepared) != ("la", "en"):
        model(config, dataclasses.replace(corpus, lang=prepared))
        return
    with pytest.raises(ValueError, match="language 'la', but prepare.lang = 'en'.*--prepare.lang"):
        model(config, corpus)


def test_other_words_of_as_many_rows_cannot_be_resumed(make_config, corpus, given, tmp_path):
    """A replaced file of `paths.init` would give the rows of the head to other words."""
    config = make_config(vocab_size=None)
    list(itertools.islice(rows_of(config, corpus, tmp_path / "run"), 3))
    weights = Weights.load(given)
    dataclasses.replace(weights, vocabulary=[*GIVEN[:3], *reversed(GIVEN[3:])]).save(given)
    with pytest.raises(ValueError, match="belongs to another vocabulary"):
        next(rows_of(config, corpus, tmp_path / "run", resume=True))


def test_the_best_weights_are_never_worse_than_the_start(make_config, corpus, tmp_path):
    out, good = tmp_path / "run", tmp_path / "given.safetensors"
    rows = list(rows_of(make_config(init=False, learn_rate=0.02), corpus, tmp_path / "first"))
    (tmp_path / "first/model-best.safetensors").rename(good)
    config = make_config(vocab_size=None, learn_rate=5.0)
    run = rows_of(config, corpus, out)
    start = next(run)
    assert (start.step, start.tokens, start.loss, start.best) == (0, 0, None, True)
    assert start.dev.mean == pytest.approx(min(row.dev.mean for row in rows if row.dev), rel=1e-6)
    # Killed before the first checkpoint, the run starts again, and the log has the start once.
    rest = list(rows_of(config, corpus, out, resume=True))
    assert rest[0] == start and not any(row.best for row in rest[1:])
    assert min(row.dev.mean for row in rest[1:] if row.dev) > start.dev.mean
    assert [row["step"] for row in log_of(out)] == [0, 5, 10, 15, 20]
    best, initial = Weights.load(out / "model-best.safetensors"), Weights.load(good)
    assert all(torch.equal(best.tensors[n], initial.tensors[n]) for n in initial.tensors)
    assert best.card["steps"] == 0


@pytest.mark.parametrize(
    "prepared, said",
    [
        ({"lang": "la"}, "lang = 'la'.*'en'.*was prepared"),
        (
            {"spelling": Spelling("NFC", ())},
            "unicode_form = 'NFC', replace = {}, .*unicode_form = ''",
        ),
    ],
)
def test_a_corpus_of_another_language_or_spelling_is_refused(make_config, corpus, prepared, said):
    """The card of the weights has the language of the corpus, and the report that of the config."""
    with pytest.raises(ValueError, match=said):
        initial_model(make_config(), dataclasses.replace(corpus, **prepared), SourceWeights())
