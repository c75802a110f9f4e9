"""The shipped configs add ELMo in the same way, and differ from their baselines in nothing else."""

import pytest
from spacy.util import load_config

from spacy_elmo.pipeline import training_config
from tests.consumers import CONFIGS, NAMES, filled
from tests.packages import MODELS

BASELINES = [name for name in NAMES if (CONFIGS / f"{name}_baseline.cfg").exists()]
COMPONENTS = ["ner", "tagger", "morphologizer", "senter", "parser", "textcat", "textcat_multilabel"]
COMPONENTS += ["spancat", "entity_linker"]
PROJECT = CONFIGS.parent / "projects/treebank"
OWN = ["score_weights", "annotating_components", "dropout", "patience", "max_steps"]


def elmo_config(name):
    return load_config(CONFIGS / f"{name}_elmo.cfg")


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


def test_batches_are_small():
    """With spaCy's 1,000 Docs, 1,000 Docs of 111 words take 5 GB."""
    paths = [*CONFIGS.glob("*.cfg"), *MODELS.glob("*/*/*/config.cfg"), PROJECT / "names.cfg"]
    pipelines = [config for config in map(load_config, paths) if "nlp" in config]
    assert {config["nlp"]["batch_size"] for config in pipelines} == {32}


@pytest.mark.parametrize("name", COMPONENTS)
def test_one_way_in(name):
    """The blocks of ner_elmo.cfg around the component; those of textcat have sizes of their own, and names and
    categories are trained with a dropout and averaged weights that were tuned for them, names until dev F1 falls and
    on text in any letter case."""
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
            for key in OWN:
                config[section].pop(key, None)
            config[section].get("train", {}).pop("augmenter", None)
            config[section].get("optimizer", {}).pop("use_averages", None)
        assert own[section] == ner[section]


def test_shipped_configs_of_a_checkout_and_of_an_installation(tmp_path, monkeypatch):
    """An installed package has them inside; the folder beside it is that of another project."""
    inside, beside = tmp_path / "spacy_elmo/configs", tmp_path / "configs"
    monkeypatch.setattr(training_config, "_PACKAGE", inside.parent)
    for folder in (beside, inside):
        folder.mkdir(parents=True)
        for name in ("b.cfg", "a.cfg", "notes.txt"):
            (folder / name).touch()
        expected = {name: folder / f"{name}.cfg" for name in "ab"}
        assert training_config.shipped_configs() == expected
