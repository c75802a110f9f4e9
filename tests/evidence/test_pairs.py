"""The parser's two configs, which lie in two folders."""

from experiments.variants import read_pair, tok2vec_block

from tests.evidence.folders import EVIDENCE


def test_elmo_config_is_the_baseline_with_elmo_beside_its_embedding():
    baseline, elmo = read_pair("parser", EVIDENCE)
    enhanced = tok2vec_block(elmo, "parser")
    assert enhanced["@architectures"] == "spacy-elmo.ElmoEnhanced.v1"
    assert enhanced.pop("input")["upstream"] == "elmo"
    assert enhanced.pop("output") is None
    assert elmo["nlp"]["pipeline"] == ["elmo", *baseline["nlp"]["pipeline"]]

    # Taking ELMo out leaves the baseline, key by key.
    del elmo["components"]["elmo"]
    enhanced["@architectures"] = "spacy.Tok2Vec.v2"
    elmo["nlp"]["pipeline"] = baseline["nlp"]["pipeline"]
    assert elmo == baseline
