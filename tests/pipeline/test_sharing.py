"""Parts of several pipelines, frozen and sourced components, and several elmos in one pipeline."""

import gc
import warnings

import pytest
import spacy
from spacy.training.initialize import init_nlp
from thinc.api import Adam

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import DEFAULT_WEIGHTS
from tests import pipelines, tiny
from tests.pipelines import TEXTS, counted, listening

VARIABLE = """
[paths]
elmo = "auto"

[nlp]
lang = "en"
pipeline = ["elmo"]

[components]

[components.elmo]
factory = "elmo"
weights = ${paths.elmo}
"""


def saved(nlp, folder, steps=3):
    pipelines.trained(nlp, steps)
    nlp.to_disk(folder)
    return spacy.load(folder)


def tags(nlp):
    return [[token.tag_ for token in doc] for doc in nlp.pipe(TEXTS)]


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize(
    "update, read",
    [
        ({}, None),
        ({"exclude": ["elmo"]}, [3, 0, 0, 0]),
        ({"exclude": ["elmo"], "annotates": ["elmo"]}, [3, 3, 0, 0]),
    ],
    ids=["updated", "frozen component", "annotating too"],
)
@pytest.mark.filterwarnings("ignore:'elmo' did not run:UserWarning")
def test_docs_computed_in_each_epoch(weights, monkeypatch, frozen, update, read):
    """The training set has 3 Docs, of which every epoch has new copies."""
    nlp = listening(weights, frozen=frozen)
    nlp.initialize(lambda: pipelines.examples(nlp))
    before, counts = pipelines.parameters(nlp), []
    for _ in range(4):
        with monkeypatch.context() as patch:
            computed = counted(nlp.get_pipe("elmo").model, patch)
            pipelines.step(nlp, Adam(0.01), **update)
        counts.append(sum(computed))
    assert counts == (read or ([3, 0, 0, 0] if frozen else [3, 3, 3, 3]))
    trained = not frozen and not update
    assert bool(pipelines.changed(before, pipelines.parameters(nlp))) == trained


def test_components_of_two_pipelines_share_a_frozen_bilm(weights, tmp_path):
    """Both were trained on the same frozen weights, so their predictions stay the same."""
    first = saved(listening(weights, "one", frozen=True), tmp_path / "first")
    second = saved(listening(weights, "two", frozen=True), tmp_path / "second")
    expected = tags(second)
    assert any(map(any, expected))
    first.add_pipe("two", source=second)
    assert first.get_pipe("elmo").listening_components == ["one", "two"]
    with first.select_pipes(disable="one"):
        assert tags(first) == expected
    first.to_disk(tmp_path / "both")
    both = spacy.load(tmp_path / "both")
    with both.select_pipes(disable="one"):
        assert tags(both) == expected


@pytest.mark.parametrize("deleted", ["borrower", "lender", None])
def test_a_borrowed_component_leaves_its_pipeline_whole(weights, deleted):
    """Both pipelines predict and train their own biLM, and each survives the other."""
    lender = listening(weights, "ner", "tagger")
    pipelines.trained(lender, 2)
    expected = [doc.to_json() for doc in lender.pipe(TEXTS)]
    borrower = pipelines.blank(weights, frozen=False)
    for name in ("ner", "tagger"):
        borrower.add_pipe(name, source=lender)
    alive = [nlp for name, nlp in (("lender", lender), ("borrower", borrower)) if name != deleted]
    del lender, borrower
    gc.collect()
    if deleted != "lender":
        assert [doc.to_json() for doc in alive[0].pipe(TEXTS)] == expected
    for nlp in alive:
        others = [other for other in alive if other is not nlp]
        before = [pipelines.parameters(other) for other in others]
        trained = pipelines.parameters(nlp)
        pipelines.step(nlp, Adam(0.01))
        assert pipelines.changed(trained, pipelines.parameters(nlp)) == trained.keys()
        for other, parameters in zip(others, before, strict=True):
            assert not pipelines.changed(parameters, pipelines.parameters(other))


def test_layers_on_demand_come_from_the_biLM_of_the_pipeline(weights, other_weights):
    """The elmo of the lender is disabled, and the pipelines have other vocabularies."""
    lender = listening(weights)
    pipelines.trained(lender, 2)
    expected = tags(lender)
    borrower = pipelines.blank(other_weights)
    borrower.add_pipe("tagger", source=lender)
    with pytest.raises(ValueError, match="call replace_listeners in that pipeline"):
        borrower(TEXTS[0])
    with lender.select_pipes(disable="elmo"), pytest.warns(UserWarning, match="did not run"):
        assert tags(lender) == expected


@pytest.mark.parametrize("way", ["python", "config"])
def test_fine_tuned_consumer_brings_its_bilm_along(weights, tmp_path, way):
    """`replace_listeners` is called before, or is set in the config that sources it."""
    source = saved(listening(weights, "two", frozen=False), tmp_path / "source")
    expected = tags(source)
    if way == "python":
        nlp = listening(weights, "one", frozen=True)
        pipelines.trained(nlp, 1)
        source.replace_listeners("elmo", "two", ["model.tok2vec"])
        nlp.add_pipe("two", source=source)
    else:
        config = listening(weights, "one", frozen=True).config
        config["nlp"]["pipeline"] += ["two"]
        config["components"]["two"] = {
            "source": str(tmp_path / "source"),
            "replace_listeners": ["model.tok2vec"],
        }
        nlp = spacy.util.load_model_from_config(config)
    assert nlp.get_pipe("elmo").listening_components == ["one"]
    with nlp.select_pipes(disable="one"):
        assert tags(nlp) == expected


def test_sourced_elmo_keeps_its_settings(weights, tmp_path):
    """spaCy takes them from the source pipeline, and ignores settings beside `source`."""
    saved(listening(weights, "one", frozen=True), tmp_path / "source")
    config = listening(weights, "one").config
    config["components"]["elmo"] = {"source": str(tmp_path / "source"), "frozen": False}
    nlp = spacy.util.load_model_from_config(config)
    assert nlp.get_pipe("elmo").model.shims[0].options.frozen
    assert nlp.config["components"]["elmo"]["frozen"] is True


def test_saved_pipeline_can_be_loaded_unfrozen(weights, tmp_path):
    """The config decides, and the biLM comes from the bytes."""
    saved(listening(weights, "one", frozen=True), tmp_path / "nlp")
    override = {"components.elmo.frozen": False}
    nlp = spacy.load(tmp_path / "nlp", config=override)
    before = pipelines.parameters(nlp)
    for _ in range(2):
        pipelines.step(nlp, Adam(0.01))
    assert pipelines.changed(before, pipelines.parameters(nlp)) == set(before)


def test_other_weights_for_a_saved_pipeline(tmp_path):
    """The saved biLM is used, as the warning says, and the named weights by `initialize`."""
    for name, projection in (("one", 5), ("other", 4)):
        bilm = tiny.bilm(tiny.config(projection=projection))
        Weights.from_bilm(bilm, card={"name": name}).save(tmp_path / f"{name}.safetensors")
    nlp = pipelines.blank(tmp_path / "one.safetensors")
    expected = nlp("A cat.")._.elmo_layers
    nlp.to_disk(tmp_path / "nlp")
    override = {"components.elmo.weights": str(tmp_path / "other.safetensors")}
    with pytest.warns(UserWarning, match="own biLM, 'one'.*other.safetensors.*nlp.initialize"):
        loaded = spacy.load(tmp_path / "nlp", config=override)
    pipelines.assert_same(loaded("A cat.")._.elmo_layers, expected)
    loaded.initialize()
    assert loaded("A cat.")._.elmo_layers.shape == (3, 3, 8)


def test_resolved_weights_in_a_config_with_variables(tmp_path):
    config = spacy.Config().from_str(VARIABLE, interpolate=False)
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    assert nlp.config["components"]["elmo"]["weights"] == DEFAULT_WEIGHTS
    nlp.to_disk(tmp_path)
    saved = spacy.Config().from_disk(tmp_path / "config.cfg", interpolate=False)
    assert saved["components"]["elmo"]["weights"] == DEFAULT_WEIGHTS


def initialized(config, **training):
    """Return a pipeline after the steps of `spacy train` before its loop."""
    spacy.util.registry.readers("spacy-elmo-tests.examples.v1", func=lambda: pipelines.examples)
    reader = {"@readers": "spacy-elmo-tests.examples.v1"}
    sections = {"corpora": {"train": reader, "dev": reader}, "training": training}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return init_nlp(spacy.Config(config).merge(sections))


def test_fresh_in_frozen_components(weights):
    """spaCy does not initialize frozen components, so a new one would have random weights."""
    nlp = initialized(listening(weights, "tagger").config, frozen_components=["elmo"])
    expected = pipelines.blank(weights)("Anna met Bob.")._.elmo_layers
    pipelines.awaken(nlp, "tagger")
    with pytest.warns(UserWarning, match="annotating_components"):
        pipelines.step(nlp, Adam(0.01), exclude=["elmo"])
    pipelines.assert_same(nlp("Anna met Bob.")._.elmo_layers, expected)
    (mix,) = pipelines.mixes(nlp.get_pipe("tagger").model)
    assert mix.get_param("scalars").any()


@pytest.mark.parametrize("annotating", [True, False])
def test_sourced_and_frozen(weights, tmp_path, annotating):
    """A sourced upstream is linked though it is frozen. It keeps its trained weights, and also works if it is not in
    annotating_components, with a warning."""
    source = listening(weights)
    pipelines.trained(source, 3)
    source.to_disk(tmp_path)
    config = listening(weights).config
    config["components"]["elmo"] = {"source": str(tmp_path)}
    names = ["elmo"] if annotating else []
    nlp = initialized(config, frozen_components=["elmo"], annotating_components=names)
    before = pipelines.parameters(nlp)
    assert not pipelines.changed(before, pipelines.parameters(source))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            pipelines.step(nlp, Adam(0.01), exclude=["elmo"], annotates=names)
    assert bool(caught) != annotating
    assert not pipelines.changed(before, pipelines.parameters(nlp))
    assert pipelines.mixes(nlp.get_pipe("tagger").model)[0].get_param("scalars").any()


def test_sourced_from_another_pipeline(weights):
    """The component is shared, and follows whichever pipeline was linked last."""
    source = listening(weights, "one")
    pipelines.trained(source, 2)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", source=source)
    pipelines.add_tagger(nlp, "two")
    assert nlp.get_pipe("elmo").listening_components == ["two"]
    expected = pipelines.layers(source, pipelines.TEXTS)
    actual = pipelines.layers(nlp, pipelines.TEXTS, disable=["two"])
    for one, other in zip(actual, expected, strict=True):
        pipelines.assert_same(one, other)


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


def test_any_elmo_of_two(weights, other_weights):
    """In spaCy both components would claim the listener, and which one it reads would depend on the moment."""
    nlp = pipelines.blank(weights)
    nlp.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    with pytest.raises(ValueError, match="'ner' listens to any elmo.*'elmo' and 'other'. Set"):
        pipelines.add_ner(nlp)


def test_any_elmo_between_two(weights, other_weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    nlp.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    assert nlp.get_pipe("elmo").listening_components == ["tagger"]
    assert nlp.get_pipe("other").listening_components == []


def test_a_sourced_consumer_leaves_the_disabled_elmo_of_its_pipeline(weights):
    source = pipelines.listening(weights)
    source.disable_pipe("elmo")
    nlp = pipelines.blank(weights)
    nlp.add_pipe("tagger", source=source)
    assert nlp.get_pipe("elmo").listening_components == ["tagger"]
