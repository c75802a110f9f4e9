"""A converted model of ELMoForManyLangs in a pipeline: its vectors equal those of the bare network."""

import dataclasses

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.many_langs import convert
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
    weights, _ = convert(foreign.write_model(folder, foreign.options(**request.param)))
    weights.save(tmp_path / "many.safetensors")
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


def test_a_pipeline_gives_what_the_network_gives_and_carries_it(weights, tmp_path):
    nlp, values = pipeline(weights), expected(weights)
    np.testing.assert_allclose(layers(nlp), values, atol=1e-5)
    nlp.to_disk(tmp_path / "nlp")
    weights.unlink()
    np.testing.assert_allclose(layers(spacy.load(tmp_path / "nlp")), values, atol=1e-5)


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
    weights, _ = convert(foreign.write_model(tmp_path, foreign.options(word_dim=0)))
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
