"""Every trainable component of spaCy, with its shipped config: it learns, trains what it should, and can be saved.
The config of a treebank, which has components of ours, is in tests/components."""

import pytest
import spacy
from numpy.testing import assert_array_equal
from thinc.api import Adam, fix_random_seed

from tests import consumers, pipelines
from tests.consumers import NAMES, TEXTS
from tests.pipelines import assert_close, assert_same

OF_SPACY = [name for name in NAMES if name != "treebank"]


def step(nlp, optimizer):
    annotating = nlp.config["training"]["annotating_components"]
    return pipelines.step(nlp, optimizer, consumers.examples(nlp), annotates=annotating)


def score(nlp):
    """The score by which `spacy train` chooses the best step: 1 at most."""
    scores = nlp.evaluate(consumers.examples(nlp))
    weights = nlp.config["training"]["score_weights"]
    return sum(weight * scores[name] for name, weight in weights.items() if weight)


def mixes(nlp):
    """The mix of each component that listens."""
    return {
        name: pipelines.mixes(nlp.get_pipe(name).model)[0]
        for name in nlp.get_pipe("elmo").listening_components
    }


@pytest.mark.parametrize("name", OF_SPACY)
def test_overfits_and_survives_saving(weights, tmp_path, name):
    fix_random_seed(0)
    nlp = consumers.pipeline(consumers.config(name, weights, tmp_path))
    nlp.initialize(lambda: consumers.examples(nlp))
    assert score(nlp) < 0.9
    optimizer = Adam(0.005)
    for number in range(200):
        step(nlp, optimizer)
        if number % 20 == 19 and score(nlp) == pytest.approx(1):
            break
    assert score(nlp) == pytest.approx(1)
    assert all(mix.get_param("scalars").any() for mix in mixes(nlp).values())

    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    for actual, expected in zip(loaded.pipe(TEXTS), nlp.pipe(TEXTS), strict=True):
        assert actual.cats == pytest.approx(expected.cats, abs=1e-5)
        actual.cats = expected.cats
        assert actual.to_json() == expected.to_json()
        assert_same(actual._.elmo_layers, expected._.elmo_layers)
        for listening, mix in mixes(nlp).items():
            vectors = mix.predict([expected._.elmo_layers])
            assert_array_equal(mixes(loaded)[listening].predict([expected._.elmo_layers]), vectors)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("name", OF_SPACY)
def test_trains_what_it_should(weights, tmp_path, name, frozen):
    nlp = consumers.pipeline(consumers.config(name, weights, tmp_path, frozen=frozen))
    nlp.initialize(lambda: consumers.examples(nlp))
    before = pipelines.parameters(nlp)
    optimizer = Adam(0.01)
    # Two steps, because output weights of zero, with which some components start, let no gradient through.
    for _ in range(2):
        step(nlp, optimizer)
    changed = pipelines.changed(before, pipelines.parameters(nlp))
    assert changed == (set() if frozen else before.keys())
    assert all(mix.get_param("scalars").any() for mix in mixes(nlp).values())


@pytest.mark.parametrize("is_listener", [True, False])
def test_linker_whose_only_input_is_elmo(weights, tmp_path, is_listener):
    """spaCy builds the layers after the vectors before any biLM is loaded, so they need the width in the config."""
    config = consumers.config("entity_linker", weights, tmp_path, frozen=False)
    tok2vec = pipelines.listener(width=10)
    if not is_listener:
        bilm = {"@architectures": "spacy-elmo.BiLM.v1"}
        tok2vec = {
            "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
            "bilm": bilm,
            "weights": str(weights),
            "width": 10,
        }
    config["components"]["entity_linker"]["model"]["tok2vec"] = tok2vec
    nlp = consumers.pipeline(config)
    nlp.initialize(lambda: consumers.examples(nlp))
    before = nlp.get_pipe("entity_linker").model.to_bytes()
    assert step(nlp, Adam(0.01))["entity_linker"] > 0
    assert nlp.get_pipe("entity_linker").model.to_bytes() != before
    if is_listener:
        tok2vec["width"] = None
        nlp = consumers.pipeline(config)
        with pytest.raises(ValueError, match="Set width = 10 in the ElmoListener"):
            nlp.initialize(lambda: consumers.examples(nlp))


def test_linker_learns_from_copies_and_predicts_on_excerpts(weights, tmp_path):
    """EntityLinker predicts on `doc[a:b].as_doc()`, from which the vectors are gone, so a naive listener
    reads zeros; with `use_gold_ents` it also trains on copies of the Docs, which a naive listener does not know."""
    nlp = consumers.pipeline(consumers.config("entity_linker", weights, tmp_path, frozen=False))
    nlp.initialize(lambda: consumers.examples(nlp))
    listener = nlp.get_pipe("elmo").listeners[0]
    doc = nlp("Bob sang. Anna met Paris in Rome.")
    excerpt = doc[3:9].as_doc()
    assert excerpt._.elmo_layers is None
    (vectors,) = listener.predict([excerpt])
    (expected,) = listener.predict([doc])
    assert_close(vectors, expected[3:9])
