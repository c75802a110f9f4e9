"""The shipped configs add ELMo in the same way, and differ from their baselines in nothing else."""

import pytest
from spacy.language import DEFAULT_CONFIG_PATH
from spacy.util import load_config

from tests.consumers import CONFIGS, NAMES, filled

BASELINES = [name for name in NAMES if (CONFIGS / f"{name}_baseline.cfg").exists()]
COMPONENTS = ["ner", "tagger", "morphologizer", "senter", "parser", "textcat", "textcat_multilabel"]
COMPONENTS += ["spancat", "entity_linker"]


def elmo_config(name):
    return load_config(CONFIGS / f"{name}_elmo.cfg")


def test_every_trainable_component_has_one():
    assert set(COMPONENTS) | {"treebank"} == set(NAMES)
    assert set(BASELINES) == {"ner", "tagger", "textcat", "parser"}


@pytest.mark.parametrize("name", BASELINES)
def test_elmo_config_is_the_baseline_with_elmo_beside_its_embedding(name):
    baseline, elmo = load_config(CONFIGS / f"{name}_baseline.cfg"), elmo_config(name)

    enhanced = elmo["components"][name]["model"]["tok2vec"]
    assert enhanced["@architectures"] == "spacy-elmo.ElmoEnhanced.v1"
    assert enhanced.pop("input")["upstream"] == "elmo"
    assert enhanced.pop("output") is None
    assert elmo["nlp"]["pipeline"] == ["elmo", *baseline["nlp"]["pipeline"]]

    # Taking ELMo out leaves the baseline, key by key.
    del elmo["components"]["elmo"]
    enhanced["@architectures"] = "spacy.Tok2Vec.v2"
    elmo["nlp"]["pipeline"] = baseline["nlp"]["pipeline"]
    assert elmo == baseline


@pytest.mark.parametrize("name", COMPONENTS)
def test_one_way_in(name):
    """The blocks of ner_elmo.cfg around the component; those of textcat have sizes of their own, and names and
    categories are trained with a dropout and an average of weights that were tuned for them."""
    ner, own = filled("ner_elmo").interpolate(), filled(f"{name}_elmo").interpolate()
    assert own["components"]["elmo"] == ner["components"]["elmo"]
    tok2vec, expected = (
        config["components"][component]["model"]["tok2vec"]
        for config, component in ((own, name), (ner, "ner"))
    )
    if name.startswith("textcat"):
        textcat = filled("textcat_elmo").interpolate()["components"]["textcat"]
        expected = textcat["model"]["tok2vec"]
    assert tok2vec == expected
    for section in ("system", "corpora", "training"):
        for config in (ner, own):
            for key in ("score_weights", "annotating_components", "dropout"):
                config[section].pop(key, None)
            config[section].get("optimizer", {}).pop("use_averages", None)
        assert own[section] == ner[section]


@pytest.mark.parametrize("name", COMPONENTS)
def test_names_and_categories_have_a_dropout_and_averages_of_their_own(name):
    training = filled(f"{name}_elmo").interpolate()["training"]
    recipe = training["dropout"], training["optimizer"]["use_averages"]
    assert recipe == (
        (0.3, True) if name in ("ner", "textcat", "textcat_multilabel") else (0.1, False)
    )


@pytest.mark.parametrize("name", NAMES)
def test_files_say_only_what_spacy_does_not_fill_in(name):
    """Of the section [training]; the two that they repeat are demanded by `spacy train`."""
    stated = load_config(CONFIGS / f"{name}_elmo.cfg")["training"]
    defaults = load_config(DEFAULT_CONFIG_PATH)["training"]
    repeated = {key for key, value in stated.items() if defaults.get(key) == value}
    assert repeated == {"seed", "gpu_allocator"}
