"""A converted model of ELMoForManyLangs in a pipeline: its vectors equal those of the bare network."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.many_langs.conversion import convert
from spacy_elmo.pipeline.encode.shim import BiLMShim
from spacy_elmo.pipeline.factory_options import BiLMOptions
from tests import tiny
from tests.converters import foreign_many_langs as foreign

WORDS = ["Cat", "sat", "鳥鳥", "x" * 60, "naïve", "🙂", "cat"]
KINDS = [{}, {"char_dim": 0}, {"word_dim": 0}]


@pytest.fixture(params=KINDS, ids=["both", "words", "characters"])
def weights(request, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    conversion = convert(foreign.write_model(folder, foreign.options(**request.param)))
    conversion.weights.save(tmp_path / "many.safetensors")
    return tmp_path / "many.safetensors"


def pipeline(weights, **config):
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"weights": str(weights), **config})
    return nlp


def layers(nlp):
    doc = Doc(nlp.vocab, words=WORDS)
    return nlp(doc)._.elmo_layers


def expected(weights):
    return tiny.read(Weights.load(weights).build_bilm(), [WORDS]).layers.numpy()


def test_the_component_gives_what_the_network_gives(weights):
    np.testing.assert_allclose(layers(pipeline(weights)), expected(weights), atol=1e-5)


@pytest.mark.parametrize("move", ["disk", "bytes"])
def test_a_saved_pipeline_needs_no_file(weights, tmp_path, move):
    nlp, values = pipeline(weights), expected(weights)
    if move == "disk":
        nlp.to_disk(tmp_path / "nlp")
        weights.unlink()
        again = spacy.load(tmp_path / "nlp")
    else:
        again = pipeline(tmp_path / "nowhere.safetensors").from_bytes(nlp.to_bytes())
    np.testing.assert_allclose(layers(again), values, atol=1e-5)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_needs_no_file(weights, duplicate):
    nlp, values = pipeline(weights), expected(weights)
    model = duplicate(nlp.get_pipe("elmo").model)
    weights.unlink()
    (actual,) = model.predict([Doc(nlp.vocab, words=WORDS)])
    np.testing.assert_allclose(actual, values, atol=1e-5)


def test_a_copy_is_independent(weights):
    shim = BiLMShim()
    shim.configure(BiLMOptions(weights=str(weights)))
    other = copy.deepcopy(shim)
    with torch.no_grad():
        for parameter in other.bilm.parameters():
            parameter.zero_()
    np.testing.assert_allclose(tiny.read(shim.bilm, [WORDS]).layers, expected(weights), atol=1e-5)
    assert not tiny.read(other.bilm, [WORDS]).layers.any()


def test_two_processes(weights):
    nlp = pipeline(weights)
    texts = [" ".join(WORDS), "cat sat", "", "鳥"] * 2
    alone = list(nlp.pipe(texts))
    for one, other in zip(nlp.pipe(texts, n_process=2, batch_size=2), alone, strict=True):
        np.testing.assert_allclose(one._.elmo_layers, other._.elmo_layers, atol=1e-5)


def test_training_reaches_every_table(weights):
    """All parameters receive a gradient from a consumer."""
    nlp = pipeline(weights, frozen=False)
    model = nlp.get_pipe("elmo").model
    model.initialize()
    output, backprop = model([Doc(nlp.vocab, words=WORDS)], is_train=True)
    backprop([np.ones_like(layer) for layer in output])
    parameters = dict(model.shims[0].bilm.named_parameters())
    assert all(
        parameter.grad is not None and parameter.grad.any() for parameter in parameters.values()
    )


def test_the_checksum_knows_the_alphabet(tmp_path):
    weights = convert(foreign.write_model(tmp_path, foreign.options(word_dim=0))).weights
    checksums = set()
    for alphabet in (weights.alphabet, weights.alphabet[::-1]):
        dataclasses.replace(weights, alphabet=alphabet).save(tmp_path / "w.safetensors")
        shim = BiLMShim()
        shim.configure(BiLMOptions(weights=str(tmp_path / "w.safetensors")))
        checksums.add(shim.checksum())
    assert len(checksums) == 2


@pytest.mark.parametrize("field, names", [("n_words", "vocabulary"), ("n_symbols", "alphabet")])
def test_such_a_network_is_never_random(field, names):
    shim = BiLMShim({field: 11, "max_characters": 10})
    with pytest.raises(ValueError, match=f"{field} = 11 with weights = null.*{names}"):
        shim.initialize()


def test_a_shape_that_is_not_the_files(weights):
    nlp = spacy.blank("xx")
    model = {"@architectures": "spacy-elmo.BiLM.v1", "square_projections": False}
    nlp.add_pipe("elmo", config={"weights": str(weights), "model": model})
    with pytest.raises(ValueError, match="square_projections = False .not True"):
        nlp("cat")
