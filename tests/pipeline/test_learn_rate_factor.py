"""`learn_rate_factor` scales the steps of the biLM."""

import numpy as np
import pytest
import spacy
from thinc.api import Adam

from tests import pipelines


def movement(weights, **options):
    """Return the distance that each parameter of biLM and tagger moves with spaCy's own optimizer and weight decay."""
    nlp = pipelines.blank(weights, frozen=False, **options)
    pipelines.add_tagger(nlp)
    spacy.util.fix_random_seed(0)
    nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "tagger")
    before, tagger = pipelines.parameters(nlp), output(nlp)
    optimizer = Adam(0.01, L2=0.01, L2_is_weight_decay=True)
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


def test_a_factor_for_another_number_of_layers(weights):
    message = r"learn_rate_factor = \[0.1, 1.0\], but the biLM has 3 layers"
    with pytest.raises(ValueError, match=message):
        pipelines.blank(weights, frozen=False, learn_rate_factor=[0.1, 1.0]).initialize()
