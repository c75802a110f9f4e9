"""Labelled examples of each task, and small pipelines that are trained on them."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc
from spacy.training import Example
from tasks.coref.annotation import clusters, set_clusters
from tasks.qa.annotation import answer, set_answer
from tasks.srl.annotation import Argument, arguments, predicates, set_arguments, set_predicates
from thinc.api import fix_random_seed

import register  # noqa: F401  isort: skip

DOCUMENTS = [
    ("Anna saw Bob . She waved . He left .", [[(0, 1), (4, 5)], [(2, 3), (7, 8)]]),
    ("The old man slept . He snored . A dog barked .", [[(0, 3), (5, 6)]]),
    ("Anna slept . The old man saw Bob . She left .", [[(0, 1), (9, 10)]]),
]
SENTENCES = [
    (
        "Anna asked Bob to leave today .",
        {1: [(0, 1, "ARG0"), (2, 3, "ARG2"), (3, 6, "ARG1")], 4: [(2, 3, "ARG0"), (5, 6, "ARGM-TMP")]},
    ),
    (
        "Rain fell and the old wall broke .",
        {1: [(0, 1, "ARG1")], 6: [(3, 6, "ARG1")]},
    ),
    ("The man who sings left .", {3: [(0, 2, "ARG0"), (2, 3, "R-ARG0")], 4: [(0, 4, "ARG0")]}),
]  # fmt: skip
QUESTIONS = [
    ("Who came?", "Anna came by train.", "Anna"),
    ("How?", "Anna came by train.", "by train"),
    ("Who left?", "In the night Bob left.", "Bob"),
    ("When?", "In the night Bob left.", "In the night"),
]
# Neither sentence tells the label: it is whether they name the same.
PAIRS = [
    ("the cat sat", "a cat", "yes"),
    ("the cat sat", "a dog", "no"),
    ("the dog sat", "a dog", "yes"),
    ("the dog sat", "a cat", "no"),
    ("one dog sat there", "a dog", "yes"),
    ("one cat sat there", "a dog", "no"),
]
EMBED = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 16, "depth": 1, "embed_size": 200,
         "window_size": 1, "maxout_pieces": 2, "subword_features": False, "pretrained_vectors": None}  # fmt: skip
LISTENER = {"@architectures": "spacy-elmo.ElmoListener.v1"}


def coref_doc(vocab, words, found):
    doc = Doc(vocab, words=words.split())
    set_clusters(doc, found)
    return doc


def words_of(doc):
    """Return a Doc with the same words, without annotation."""
    return Doc(doc.vocab, words=[token.text for token in doc])


def coref_examples(nlp):
    docs = [coref_doc(nlp.vocab, *document) for document in DOCUMENTS]
    return [Example(words_of(doc), doc) for doc in docs]


def srl_doc(vocab, words, roles):
    doc = Doc(vocab, words=words.split())
    set_predicates(doc, dict.fromkeys(roles, "be.01"))
    set_arguments(
        doc, {index: [Argument(*each) for each in actual] for index, actual in roles.items()}
    )
    return doc


def with_predicates(doc):
    """Return a Doc with the same words and predicates, as the pipeline receives it."""
    copy = words_of(doc)
    set_predicates(copy, dict.fromkeys(predicates(doc), "be.01"))
    return copy


def srl_examples(nlp):
    docs = [srl_doc(nlp.vocab, *sentence) for sentence in SENTENCES]
    return [Example(with_predicates(doc), doc) for doc in docs]


def asked(nlp, question, context, words=None):
    """Return the Doc of a question, with an answer if `words` are given."""
    doc = nlp.make_doc(f"{question}\n{context}")
    if words is not None:
        start = len(question) + 1 + context.index(words)
        span = doc.char_span(start, start + len(words))
        set_answer(doc, span.start, span.end)
    return doc


def qa_examples(nlp):
    return [Example(asked(nlp, *each[:2]), asked(nlp, *each)) for each in QUESTIONS]


def nli_examples(nlp):
    return [
        Example.from_dict(
            nlp.make_doc(f"{premise}\n{hypothesis}"),
            {"cats": {known: float(known == label) for known in ("yes", "no")}},
        )
        for premise, hypothesis, label in PAIRS
    ]


class Task(NamedTuple):
    """A component with its examples."""

    examples: Callable
    annotation: Callable
    """Returns what the component sets on a Doc."""
    score: str
    model: dict[str, Any]
    steps: int = 60
    """Number of steps after which the examples are learnt."""
    drop: float = 0.0
    factory: str | None = None
    settings: dict[str, Any] = {}


TASKS = {
    "coref": Task(
        coref_examples, clusters, "coref_f",
        {"@architectures": "evidence.SpanRanker.v1", "hidden_width": 16, "max_span_width": 3,
         "spans_per_word": 2.0, "antecedents": 5, "dropout": 0.0},
    ),
    "nli": Task(
        nli_examples, lambda doc: max(doc.cats, key=doc.cats.get), "nli_acc",
        {"@architectures": "evidence.PairClassifier.v1", "hidden_width": 16, "dropout": 0.1},
        steps=120, drop=0.1, factory="textcat", settings={"scorer": {"@scorers": "evidence.nli_scorer.v1"}},
    ),
    "qa": Task(
        qa_examples, lambda doc: answer(doc).text, "qa_em",
        {"@architectures": "evidence.AnswerPointer.v1", "hidden_width": 16, "dropout": 0.0},
    ),
    "srl": Task(
        srl_examples, arguments, "srl_f",
        {"@architectures": "evidence.PredicateTagger.v1", "hidden_width": 16, "depth": 1}, drop=0.1,
    ),
}  # fmt: skip


def blank(name, tok2vec=EMBED):
    """Return a pipeline with the component of a task, without its weights."""
    task = TASKS[name]
    nlp = spacy.blank("en")
    if tok2vec is LISTENER:
        nlp.add_pipe("elmo")
    config = {**task.settings, "model": {**task.model, "tok2vec": tok2vec}}
    nlp.add_pipe(task.factory or name, name=name, config=config)
    return nlp


def pipeline(name, tok2vec=EMBED, steps=0):
    """Return a pipeline after some steps on its examples."""
    examples = TASKS[name].examples
    fix_random_seed(0)
    nlp = blank(name, tok2vec)
    optimizer = nlp.initialize(lambda: examples(nlp))
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(examples(nlp), sgd=optimizer, drop=TASKS[name].drop)
    return nlp


@functools.cache
def trained(name):
    """Return a pipeline that has learnt its examples. Tests must leave it as it is."""
    return pipeline(name, steps=TASKS[name].steps)
