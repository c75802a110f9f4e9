"""The component of each task learns the records of a small file, through its converter and its config."""

import importlib

import pytest
import spacy
from experiments.variants import derive
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import fix_random_seed

import register  # noqa: F401  isort: skip

COREF = [
    {
        "sentences": [["Anna", "saw", "Bob", "."], ["She", "waved", "."], ["He", "left", "."]],
        "clusters": [[[0, 0, 1, "person"], [1, 0, 1]], [[0, 2, 3], [2, 0, 1]]],
    },
    {"sentences": [["The", "old", "man", "slept", "."], ["He", "snored", "."]], "clusters": [[[0, 0, 3], [1, 0, 1]]]},
]  # fmt: skip
SRL = [
    {
        "tokens": ["Anna", "asked", "Bob", "to", "leave", "today", "."],
        "predicates": [
            {"index": 1, "frame": "ask.01", "args": [[0, 1, "ARG0"], [2, 3, "ARG2"], [3, 6, "ARG1"]]},
            {"index": 4, "frame": "leave.01", "args": [[2, 3, "ARG0"], [5, 6, "ARGM-TMP"]]},
        ],
    },
    {"tokens": ["Rain", "fell"], "predicates": [{"index": 1, "frame": "fall.01", "args": [[0, 1, "ARG1"]]}]},
    {"tokens": ["Oh", "!"], "predicates": []},
]  # fmt: skip
QA = [
    {"question": " Who\ncame?", "context": "Anna came by train.", "answers": [{"text": "Anna", "start": 0}]},
    {"question": "How?", "context": "Anna came by train.", "answers": [{"text": "by train", "start": 10}]},
    {"question": "When?", "context": "In the night Bob left.", "answers": [{"text": "In the nig", "start": 0}]},
    {"question": "Why?", "context": "Bob left.", "answers": []},
]  # fmt: skip
# Neither sentence tells the label: it is whether they name the same.
NLI = [
    {"premise": premise, "hypothesis": hypothesis, "label": label}
    for premise, hypothesis, label in [
        ("the cat sat", "a  cat", "yes"),
        ("the cat sat", "a dog", "no"),
        ("the dog\nsat", "a dog", "yes"),
        ("the dog sat", "a cat", "no"),
    ]
]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["baseline", "elmo"])
@pytest.mark.parametrize(
    "task, records, score",
    [("coref", COREF, "coref_f"), ("srl", SRL, "srl_f"), ("qa", QA, "qa_em"), ("nli", NLI, "nli_acc")],
)  # fmt: skip
def test_examples_are_learnt(task, records, score, variant, tmp_path):
    fix_random_seed(0)
    config = derive(variant, task, tmp_path)
    if variant == "elmo":
        config["components"]["elmo"]["weights"] = "en_mini_v4"
    if task == "coref":
        # Almost every word of the records is a mention.
        config["components"][task]["model"]["spans_per_word"] = 2.0
    nlp = load_model_from_config(config, auto_fill=True)
    docs = list(importlib.import_module(f"tasks.{task}").convert(records, nlp))
    docs[0].to_disk(tmp_path / "doc")  # Everything that a component reads is saved with the Doc.

    def examples():
        made = []
        for doc in docs:
            predicted = nlp.make_doc(doc.text) if task in ("qa", "nli") else doc.copy()
            for key in [key for key in predicted.spans if key != "predicates"]:
                del predicted.spans[key]
            made.append(Example(predicted, doc))
        return made

    optimizer = nlp.initialize(examples)
    optimizer.learn_rate = 0.01
    for _ in range(60):
        nlp.update(examples(), sgd=optimizer)
    assert nlp.evaluate(examples())[score] == 1
    nlp.to_disk(tmp_path / "nlp")
    assert spacy.load(tmp_path / "nlp").evaluate(examples())[score] == 1
