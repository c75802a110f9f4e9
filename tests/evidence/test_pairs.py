"""The two configs of each task differ only in ELMo."""

import pytest
from experiments.variants import read_pair, tok2vec_block

from tests.evidence.folders import EVIDENCE


@pytest.mark.parametrize(
    "task, place, empty",
    [("parser", "input", "output"), ("srl", "input", "output"), ("nli", "output", "input"),
     ("qa", "output", "input"), ("coref", "output", "input")],
)  # fmt: skip
def test_elmo_config_is_the_baseline_with_elmo_at_one_place(task, place, empty):
    baseline, elmo = read_pair(task, EVIDENCE)
    _, ner = read_pair("ner", EVIDENCE)
    enhanced = tok2vec_block(elmo, task)
    assert enhanced["@architectures"] == "spacy-elmo.ElmoEnhanced.v1"
    assert enhanced.pop(place) == tok2vec_block(ner, "ner")["input"]
    assert enhanced.pop(empty) is None
    assert elmo["nlp"]["pipeline"] == ["elmo", *baseline["nlp"]["pipeline"]]
    assert elmo["components"].pop("elmo") == ner["components"]["elmo"]

    # Taking ELMo out leaves the baseline, key by key.
    enhanced["@architectures"] = "spacy.Tok2Vec.v2"
    elmo["nlp"]["pipeline"] = baseline["nlp"]["pipeline"]
    assert elmo == baseline
