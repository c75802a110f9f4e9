"""Several elmo components in one pipeline, and which of them a listener with upstream "*" reads."""

import copy
import gc

import pytest
import spacy

from tests import pipelines


def test_two_elmos(weights, other_weights):
    """Both set layers, and each listener reads those of its own upstream, in prediction and in training."""
    nlp = pipelines.blank(weights)
    nlp.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    pipelines.add_tagger(nlp, "first", upstream="elmo")
    pipelines.add_tagger(nlp, "second", upstream="other")
    pipelines.trained(nlp, 2)
    assert nlp.get_pipe("elmo").listening_components == ["first"]
    assert nlp.get_pipe("other").listening_components == ["second"]
    widths = [nlp.get_pipe(n).model.get_ref("tok2vec").get_dim("nO") for n in ("first", "second")]
    assert widths == [10, 8]
    doc = nlp("A cat sat.")
    assert doc._.elmo.shape == (4, 8)
    with nlp.select_pipes(disable="other"):
        assert nlp("A cat sat.", disable=["second"])._.elmo.shape == (4, 10)


def test_any_elmo_of_two_is_the_nearest_with_a_warning(weights, other_weights):
    """In spaCy both components would claim the listener, and which one it reads would depend on the moment."""
    nlp = pipelines.blank(weights)
    nlp.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    with pytest.warns(
        UserWarning, match=r"'ner' listens to any elmo.*gets the nearest, 'other'"
    ) as caught:
        pipelines.add_ner(nlp)
        pipelines.trained(nlp)
    assert len(caught) == 1
    assert nlp.get_pipe("elmo").listeners == []
    assert nlp.get_pipe("other").listening_components == ["ner"]


def test_any_elmo_between_two(weights, other_weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    nlp.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    assert nlp.get_pipe("elmo").listening_components == ["tagger"]
    assert nlp.get_pipe("other").listening_components == []


def test_any_elmo_while_the_nearest_is_disabled(weights, other_weights):
    """spaCy links enabled components, but a disabled one keeps its listeners until it is removed."""
    nlp = pipelines.blank(weights)
    nlp.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    with pytest.warns(UserWarning, match="nearest"):
        pipelines.add_ner(nlp)
    elmo, other = nlp.get_pipe("elmo"), nlp.get_pipe("other")
    with nlp.select_pipes(disable="other"):
        nlp.add_pipe("sentencizer")
        assert (elmo.listening_components, other.listening_components) == ([], ["ner"])
    nlp.remove_pipe("other")
    assert elmo.listening_components == ["ner"]


def check_that_ner_stays(nlp):
    """While "other" is disabled, spaCy links the listeners again. "ner" must stay with "other"."""
    with nlp.select_pipes(disable="other"):
        nlp.add_pipe("sentencizer")
        assert nlp.get_pipe("elmo").listening_components == []
        assert nlp.get_pipe("other").listening_components == ["ner"]


@pytest.mark.parametrize("duplicate", [lambda nlp: nlp, copy.deepcopy])
def test_disabled_nearest_keeps_its_listener(weights, other_weights, duplicate):
    """Also in a copy of the pipeline, whose components must not look at the original."""
    original = pipelines.blank(weights)
    original.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    with pytest.warns(UserWarning, match="nearest"):
        pipelines.add_ner(original)
    nlp = duplicate(original)
    check_that_ner_stays(nlp)


def test_a_sourced_consumer_leaves_the_disabled_elmo_of_its_pipeline(weights):
    source = pipelines.listening(weights)
    source.disable_pipe("elmo")
    nlp = pipelines.blank(weights)
    nlp.add_pipe("tagger", source=source)
    assert nlp.get_pipe("elmo").listening_components == ["tagger"]


def test_a_disabled_sourced_elmo_keeps_its_listener(weights, other_weights):
    source = pipelines.blank(other_weights)
    nlp = pipelines.blank(weights)
    nlp.add_pipe("elmo", name="other", source=source)
    del source
    gc.collect()
    with pytest.warns(UserWarning, match="nearest"):
        pipelines.add_ner(nlp)
    check_that_ner_stays(nlp)


@pytest.mark.parametrize("alive", [True, False])
def test_a_sourced_elmo_leaves_the_listener_of_a_disabled_one(weights, other_weights, alive):
    source = pipelines.blank(weights)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", source=source)
    if not alive:
        del source
        gc.collect()
    nlp.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    with pytest.warns(UserWarning, match="nearest"):
        pipelines.add_ner(nlp)
    check_that_ner_stays(nlp)
