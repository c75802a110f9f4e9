"""The training configs: each ELMo config differs from its baseline only in where the vectors come from."""

from pathlib import Path

import pytest
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config, load_model_from_config
from thinc.api import Config

CONFIGS = Path(__file__).parent.parent / "configs"
EMBED = {"@architectures": "spacy.CharacterEmbed.v2", "width": 32, "rows": 50, "nM": 8, "nC": 4}
WORDS = ["Anna", "met", "the", "pilot", "in", "Harwick", "."]
ANNOTATIONS = {
    "ner": {"entities": ["U-PERSON", "O", "O", "O", "O", "U-PLACE", "O"]},
    "tagger": {"tags": ["PROPN", "VERB", "DET", "NOUN", "ADP", "PROPN", "PUNCT"]},
}


@pytest.mark.parametrize("task", ["ner", "tagger"])
def test_elmo_config_is_the_baseline_with_elmo_beside_its_embedding(task):
    baseline = load_config(CONFIGS / f"{task}_baseline.cfg")
    elmo = load_config(CONFIGS / f"{task}_elmo.cfg")

    concat = elmo["components"][task]["model"]["tok2vec"]["embed"]["*"]["concat"]["*"]
    assert sorted(concat) == ["elmo", "hash"]
    assert elmo["nlp"]["pipeline"] == ["elmo", *baseline["nlp"]["pipeline"]]

    # Taking ELMo out leaves the baseline, key by key.
    del elmo["components"]["elmo"]
    elmo["components"][task]["model"]["tok2vec"]["embed"] = concat["hash"]
    elmo["nlp"]["pipeline"] = baseline["nlp"]["pipeline"]
    assert elmo == baseline


@pytest.mark.parametrize("task", ["ner", "tagger"])
def test_concatenation_survives_saving(task):
    """The layers of `chain.v1` and `concatenate.v1` are in order after a round trip, with a stand-in for the biLM."""
    config = load_config(CONFIGS / f"{task}_elmo.cfg")
    del config["components"]["elmo"]
    config["nlp"]["pipeline"] = [task]
    embed = config["components"][task]["model"]["tok2vec"]["embed"]["*"]
    embed["concat"]["*"]["elmo"] = {**EMBED, "include_static_vectors": False}
    nlp = load_model_from_config(config, auto_fill=True)
    example = Example.from_dict(Doc(nlp.vocab, words=WORDS), ANNOTATIONS[task])
    nlp.initialize(lambda: [example])

    reduce = nlp.get_pipe(task).model.get_ref("tok2vec")
    widths = {node.maybe_get_dim("nO") for node in reduce.walk() if node.has_dim("nO")}
    assert 96 + 32 in widths

    for _ in range(30):
        nlp.update([example])
    loaded = load_model_from_config(Config().from_str(nlp.config.to_str()), auto_fill=True)
    loaded.from_bytes(nlp.to_bytes())
    doc = loaded(Doc(loaded.vocab, words=WORDS))
    if task == "ner":
        assert [(ent.text, ent.label_) for ent in doc.ents] == [
            ("Anna", "PERSON"),
            ("Harwick", "PLACE"),
        ]
    else:
        assert [token.tag_ for token in doc] == ANNOTATIONS["tagger"]["tags"]
