"""The two nli configs differ by ELMo alone."""

from spacy.util import load_config

from tests.evidence.folders import EVIDENCE

CONFIGS = EVIDENCE / "configs"


def test_elmo_config_is_the_baseline_with_elmo_beside_its_embedding():
    baseline, elmo = (load_config(CONFIGS / f"nli_{name}.cfg") for name in ("baseline", "elmo"))
    ner = load_config(EVIDENCE.parent / "configs" / "ner_elmo.cfg")
    tok2vec = elmo["components"]["nli"]["model"]["tok2vec"]
    assert tok2vec.pop("input") == ner["components"]["ner"]["model"]["tok2vec"]["input"]
    assert tok2vec.pop("output") is None
    assert tok2vec["@architectures"] == "spacy-elmo.ElmoEnhanced.v1"
    assert elmo["components"].pop("elmo") == ner["components"]["elmo"]
    # Taking ELMo out leaves the baseline, key by key.
    tok2vec["@architectures"] = "spacy.Tok2Vec.v2"
    elmo["nlp"]["pipeline"].remove("elmo")
    assert elmo == baseline
