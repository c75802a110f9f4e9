"""`learn_rate_factor` scales the steps of the biLM; `grad_factor` cannot, because Adam cancels it."""

import numpy as np
import pytest
import spacy
from thinc.api import Adam

from spacy_elmo.pipeline.encode.shim import BiLMShim
from tests import pipelines
from tests.pipelines import listening


def movement(weights, listener=None, steps=1, **options):
    """Return the distance that each parameter of biLM and tagger moves with spaCy's own optimizer and weight decay."""
    nlp = pipelines.blank(weights, frozen=False, **options)
    pipelines.add_tagger(nlp, **(listener or {}))
    spacy.util.fix_random_seed(0)
    nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "tagger")
    before, tagger = pipelines.parameters(nlp), output(nlp)
    optimizer = Adam(0.01, L2=0.01, L2_is_weight_decay=True)
    for _ in range(steps):
        pipelines.step(nlp, optimizer)
    after = pipelines.parameters(nlp)
    return {name: after[name] - before[name] for name in before}, output(nlp) - tagger


def output(nlp):
    return nlp.get_pipe("tagger").model.layers[-1].layers[0].get_param("W").copy()


def assert_scaled(moved, full, factor):
    assert np.abs(full).max() > 1e-3
    np.testing.assert_allclose(moved, factor * full, rtol=1e-3, atol=2e-7)


def test_one_factor(weights):
    full, full_tagger = movement(weights)
    moved, tagger = movement(weights, learn_rate_factor=0.1)
    for name in full:
        assert_scaled(moved[name], full[name], 0.1)
    np.testing.assert_array_equal(tagger, full_tagger)


def test_a_factor_for_each_layer(weights):
    full, _ = movement(weights)
    moved, _ = movement(weights, learn_rate_factor=[0, 0.25, 2.0])
    for name in full:
        factor = 0.25 if name.startswith("lstm.0") else 2.0 if name.startswith("lstm.1") else 0
        assert_scaled(moved[name], full[name], factor)


def test_adam_cancels_the_grad_factor_of_a_sole_listener(weights):
    """The statement of docs/train.md on both options, after some steps."""
    full, _ = movement(weights, steps=3)
    by_gradient, _ = movement(weights, {"grad_factor": 0.1}, steps=3)
    by_rate, _ = movement(weights, learn_rate_factor=0.1, steps=3)
    share = {"grad_factor": [], "learn_rate_factor": []}
    for name in full:
        share["grad_factor"].append(np.abs(by_gradient[name]).mean() / np.abs(full[name]).mean())
        share["learn_rate_factor"].append(np.abs(by_rate[name]).mean() / np.abs(full[name]).mean())
    assert np.median(share["grad_factor"]) > 0.8
    assert 0.08 < np.median(share["learn_rate_factor"]) < 0.13


def test_inside_a_consumer(weights):
    nlp = listening(weights, learn_rate_factor=[0, 0, 1])
    nlp.initialize(lambda: pipelines.examples(nlp))
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    assert nlp.config["components"]["tagger"]["model"]["tok2vec"]["learn_rate_factor"] == [0, 0, 1]
    loaded = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    pipelines.awaken(loaded, "tagger")
    nodes = loaded.get_pipe("tagger").model.walk()
    (shim,) = (shim for node in nodes for shim in node.shims if isinstance(shim, BiLMShim))
    before = {name: p.detach().numpy().copy() for name, p in shim.bilm.named_parameters()}
    pipelines.step(loaded, Adam(0.01))
    after = {name: p.detach().numpy() for name, p in shim.bilm.named_parameters()}
    changed = pipelines.changed(before, after)
    assert changed == {name for name in before if name.startswith("lstm.1.")}


@pytest.mark.parametrize(
    "factor, message",
    [
        ([0.1, 1.0], r"learn_rate_factor = \[0.1, 1.0\], but the biLM has 3 layers"),
        (-0.5, "learn_rate_factor = -0.5: no factor may be below 0"),
        ([0.1, -1.0, 1.0], "no factor may be below 0"),
    ],
)
def test_impossible_factors(weights, factor, message):
    with pytest.raises(ValueError, match=message):
        pipelines.blank(weights, frozen=False, learn_rate_factor=factor).initialize()
