"""Every trainable component of spaCy that reads a listener: shapes, learning, round trip."""

import pytest
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_model_from_config

from tests import pipelines

WORDS = ["Anna", "met", "Bob", "."]
ANNOTATIONS = {
    "tags": ["N", "V", "N", "P"],
    "pos": ["PROPN", "VERB", "PROPN", "PUNCT"],
    "morphs": ["", "Tense=Past", "", ""],
    "sent_starts": [True, False, False, False],
    "heads": [1, 1, 1, 1],
    "deps": ["nsubj", "ROOT", "obj", "punct"],
    "entities": ["U-PER", "O", "U-PER", "O"],
    "cats": {"yes": 1.0, "no": 0.0},
    "spans": {"sc": [(0, 4, "PER")]},
}
BOW = {
    "@architectures": "spacy.TextCatBOW.v3",
    "exclusive_classes": True,
    "ngram_size": 1,
    "no_output_layer": False,
}
REDUCE = {
    "@architectures": "spacy.TextCatReduce.v1",
    "exclusive_classes": False,
    "use_reduce_first": False,
    "use_reduce_last": False,
    "use_reduce_max": False,
    "use_reduce_mean": True,
}
CONSUMERS = {
    "tagger": {},
    "morphologizer": {},
    "senter": {},
    "parser": {"min_action_freq": 1},
    "ner": {},
    "spancat": {},
    "textcat": {"model": {"@architectures": "spacy.TextCatEnsemble.v2", "linear_model": BOW}},
    "textcat_multilabel": {"model": REDUCE},
}


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_shapes_learning_and_round_trip(weights, consumer):
    nlp = pipelines.blank(weights)
    config = CONSUMERS[consumer]
    model = {**config.get("model", {}), "tok2vec": pipelines.listener()}
    nlp.add_pipe(consumer, config={**config, "model": model})

    def examples():
        return [Example.from_dict(Doc(nlp.vocab, words=WORDS), ANNOTATIONS)]

    optimizer = nlp.initialize(examples)
    (mix,) = pipelines.mixes(nlp.get_pipe(consumer).model)
    losses = [pipelines.step(nlp, optimizer, examples())[consumer] for _ in range(20)]
    assert losses[-1] < losses[0]
    assert mix.get_param("scalars").any()

    loaded = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    for text in ("Anna met Bob .", "Eve slept ."):
        assert loaded(text).to_json() == nlp(text).to_json()
