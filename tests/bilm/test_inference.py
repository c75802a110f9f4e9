"""A network that is prepared for inference computes the same as the network itself."""

import pytest
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.token_encoder import TokenCache
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import DEFAULT_WEIGHTS, find_weights
from tests import tiny

SENTENCES = [["a", "cat", "sat"], ["naïve"], [], ["鳥", "sat", "a", "cat", "a", "cat"], ["cat"] * 9]
CONFIGS = [tiny.config(), tiny.config(layers=3, skip=False, cell_clip=None, proj_clip=None),
           tiny.config(dim=5, square_projections=False), tiny.config(n_words=8),
           tiny.lexicon_config()]  # fmt: skip
# Relative to the largest magnitude of a layer, at least 1: for the tiny networks, whose numbers are of the order of 1.
BOUNDS = {"float32": 1e-5, "bfloat16": 3e-2}


def difference(found, expected):
    return float((found - expected).abs().max()) / max(float(expected.abs().max()), 1.0)


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("config", CONFIGS)
def test_layers_and_state(config, precision):
    model = tiny.bilm(config)
    other = model.prepare_for_inference(precision)
    for closing in (False, True):
        expected = tiny.read(model, SENTENCES, closing=closing)
        found = tiny.read(other, SENTENCES, closing=closing)
        assert difference(found.layers, expected.layers) <= BOUNDS[precision]
        for got, wanted in zip(found.state, expected.state, strict=True):
            assert difference(got, wanted) <= 3 * BOUNDS[precision]


@pytest.mark.parametrize("precision", BOUNDS)
def test_a_sentence_does_not_depend_on_the_others(precision):
    model = tiny.bilm(tiny.config()).prepare_for_inference(precision)
    together = tiny.read(model, SENTENCES).layers.split([len(s) for s in SENTENCES], 1)
    for sentence, expected in zip(SENTENCES, together, strict=True):
        if sentence:
            alone = tiny.read(model, [sentence]).layers
            assert difference(alone, expected) <= BOUNDS[precision]


def test_bundled_model_in_bfloat16():
    """Compare every token in every layer of trained weights."""
    bilm = Weights.load(find_weights(DEFAULT_WEIGHTS)).without_head().build_bilm().eval()
    text = "The quick brown fox sat by the bank of the river , and did n't say a word . LOL :-)"
    sentences = [
        text.split(),
        text.lower().split()[4:],
        ["Hello"],
        ["http://a.example/x?y=1", "!!"],
    ]
    expected = tiny.read(bilm, sentences).layers
    found = tiny.read(bilm.prepare_for_inference("bfloat16"), sentences).layers
    assert torch.nn.functional.cosine_similarity(found, expected, dim=-1).min() >= 0.9999


def test_word_vectors_have_the_precision_too():
    """On a CPU, bfloat16 also applies to the dense layers of the token encoder."""
    bilm = Weights.load(find_weights(DEFAULT_WEIGHTS)).without_head().build_bilm().eval()
    ids = bilm.token_ids(["river", "naïve", "http://a.example/x?y=1", "!!", "DON'T", "a" * 60])
    with torch.no_grad():
        expected = bilm.encoder(ids)
        found = {name: bilm.prepare_for_inference(name).encoder(ids) for name in BOUNDS}
    assert torch.equal(found["float32"], expected)
    assert found["bfloat16"].dtype == torch.float32
    assert not torch.equal(found["bfloat16"], expected)
    assert torch.nn.functional.cosine_similarity(found["bfloat16"], expected).min() > 0.9999


def test_the_network_itself_is_as_it_was():
    model = tiny.bilm(tiny.config())
    names = list(model.state_dict())
    model.prepare_for_inference("bfloat16")
    assert list(model.state_dict()) == names and isinstance(model, BiLM)
    layers = model(*tiny.batch(model, SENTENCES)).layers
    assert layers.requires_grad


def test_a_word_table_needs_no_cache():
    assert isinstance(tiny.bilm(tiny.config()).prepare_for_inference("float32").encoder, TokenCache)
    model = tiny.bilm(tiny.config(n_words=8))
    assert model.prepare_for_inference("float32").encoder is model.encoder


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("sentence", [["a"], ["a", "cat"], ["cat"] * 9])
def test_autocast_changes_nothing_but_the_token_encoder(precision, sentence):
    model = tiny.bilm(tiny.config())
    expected = tiny.read(model, [sentence]).layers
    with torch.autocast("cpu", torch.bfloat16):
        found = tiny.read(model.prepare_for_inference(precision), [sentence]).layers
    assert found.dtype == torch.float32
    assert difference(found, expected) <= max(BOUNDS[precision], BOUNDS["bfloat16"])
