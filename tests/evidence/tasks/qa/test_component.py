"""The qa component learns to answer, and predicts the same after saving, copying and pickling."""

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from spacy.tokens import Doc, DocBin
from spacy.training import Corpus, Example
from tasks.qa.annotation import aligned_answer, answer, set_answer
from tasks.qa.component import best_span
from thinc.api import fix_random_seed

QUESTIONS = [
    ("Who came?", "Anna came by train.", "Anna"),
    ("How?", "Anna came by train.", "by train"),
    ("Who left?", "In the night Bob left.", "Bob"),
    ("When?", "In the night Bob left.", "In the night"),
]
EMBED = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 16, "depth": 1, "embed_size": 200,
         "window_size": 1, "maxout_pieces": 2, "subword_features": False, "pretrained_vectors": None}  # fmt: skip
LISTENER = {"@architectures": "spacy-elmo.ElmoListener.v1"}
MODEL = {"@architectures": "evidence.AnswerPointer.v1", "hidden_width": 16, "dropout": 0.0}


def text_of(question, context, _=None):
    return f"{question}\n{context}"


def gold(nlp, question, context, words):
    doc = nlp.make_doc(text_of(question, context))
    start = len(question) + 1 + context.index(words)
    span = doc.char_span(start, start + len(words))
    set_answer(doc, span.start, span.end)
    return doc


def examples(nlp):
    return [Example(nlp.make_doc(text_of(*each)), gold(nlp, *each)) for each in QUESTIONS]


def pipeline(tok2vec=EMBED, steps=0):
    fix_random_seed(0)
    nlp = spacy.blank("en")
    if tok2vec is LISTENER:
        nlp.add_pipe("elmo")
    nlp.add_pipe("qa", config={"model": {**MODEL, "tok2vec": tok2vec}})
    optimizer = nlp.initialize(lambda: examples(nlp))
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(examples(nlp), sgd=optimizer)
    return nlp


@pytest.fixture(scope="module")
def trained():
    return pipeline(steps=60)


def answers(nlp):
    return [answer(doc).text for doc in nlp.pipe(map(text_of, *zip(*QUESTIONS, strict=True)))]


ANSWERS = [words for *_, words in QUESTIONS]


def test_answers_are_learnt(trained):
    assert answers(trained) == ANSWERS
    scores = trained.evaluate(examples(trained))
    assert (scores["qa_em"], scores["qa_f"]) == (1, 1)


def test_journeys(trained, tmp_path):
    trained.to_disk(tmp_path)
    fresh = pipeline()
    fresh.from_bytes(trained.to_bytes())
    docs = [trained.make_doc(text_of(*each)) for each in QUESTIONS]
    expected = trained.get_pipe("qa").predict(docs)
    for nlp in (spacy.load(tmp_path), fresh):
        assert nlp.get_pipe("qa").max_answer == 30
        for one, other in zip(nlp.get_pipe("qa").predict(docs), expected, strict=True):
            assert_allclose(one, other, atol=1e-5)
        assert answers(nlp) == ANSWERS


def test_batch_mates_change_nothing(trained):
    component = trained.get_pipe("qa")
    docs = [trained.make_doc(text_of(*each)) for each in QUESTIONS]
    for doc, together in zip(docs, component.predict(docs), strict=True):
        assert together.shape == (len(doc) - list(map(str, doc)).index("\n") - 1, 2)
        assert_allclose(component.predict([doc])[0], together, atol=1e-5)
    assert component.predict([]) == []


def test_same_seed_same_weights():
    one, other = pipeline(steps=3), pipeline(steps=3)
    assert one.get_pipe("qa").model.to_bytes() == other.get_pipe("qa").model.to_bytes()


def test_listener_is_trained():
    nlp = pipeline(LISTENER, steps=3)
    (mix,) = (node for node in nlp.get_pipe("qa").model.walk() if node.name == "elmo-mix")
    assert mix.get_param("scalars").any() and mix.get_param("scale").any()


def test_loss_by_hand(trained):
    """If all logits are equal, the loss is log(n) for the start plus log(n) for the end, as a mean over the
    questions."""
    component, batch = trained.get_pipe("qa"), examples(trained)[:3:2]
    loss, (first, second) = component.get_loss(batch, [np.zeros((5, 2)), np.zeros((6, 2))])
    assert loss == pytest.approx((2 * np.log(5) + 2 * np.log(6)) / 2)
    assert_allclose(first, [[-0.4, -0.4], *[[0.1, 0.1]] * 4], atol=1e-6)
    expected = np.full((6, 2), 1 / 12)
    expected[3] -= 0.5
    assert_allclose(second, expected, atol=1e-6)


def test_answers_that_fit_no_tokens_teach_nothing(trained):
    reference = Doc(trained.vocab, words=["How", "\n", "Can", "not"])
    set_answer(reference, 3, 4)
    example = Example(Doc(trained.vocab, words=["How", "\n", "Cannot"]), reference)
    assert aligned_answer(example) is None
    component = trained.get_pipe("qa")
    loss, (gradient,) = component.get_loss([example], [np.ones((1, 2), dtype="f")])
    assert loss == 0 and not gradient.any()


def test_no_answer_is_longer_than_allowed(trained):
    component = trained.get_pipe("qa")
    doc = trained.make_doc(text_of(*QUESTIONS[3]))
    logits = np.zeros((6, 2))
    logits[0, 0] = logits[5, 1] = 5
    component.set_annotations([doc], [logits])
    assert answer(doc).text == "In the night Bob left."
    component.max_answer = 4
    try:
        component.set_annotations([doc], [logits])
    finally:
        component.max_answer = 30
    assert len(answer(doc)) <= 4 and len(doc.spans["answer"]) == 1


scores = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=9)


@given(scores, st.integers(1, 12))
def test_best_span_is_the_best_of_all(pairs, longest):
    start, end = np.array(pairs, dtype="f").T
    sums = {
        (first, last + 1): start[first] + end[last]
        for first in range(len(start))
        for last in range(first, min(first + longest, len(start)))
    }
    actual = best_span(start, end, longest)
    assert sums[actual] == max(sums.values())


@pytest.mark.parametrize("text", ["Who came? Anna.", "\nAnna came.", "Who came?\n"])
def test_docs_without_question_or_context_are_refused(trained, text):
    with pytest.raises(ValueError, match="line break"):
        trained(text)


def test_files_keep_answers(tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "a.spacy"
    DocBin(docs=[gold(nlp, *each) for each in QUESTIONS]).to_disk(path)
    actual = list(Corpus(path)(spacy.blank("en")))
    assert [answer(each.reference).text for each in actual] == ANSWERS
    assert [aligned_answer(each).text for each in actual] == ANSWERS
    assert [answer(each.predicted) for each in actual] == [None] * 4


def test_initialize_needs_answers():
    nlp = spacy.blank("en")
    nlp.add_pipe("qa", config={"model": {**MODEL, "tok2vec": EMBED}})
    doc = nlp.make_doc("Who?\nAnna.")
    with pytest.raises(ValueError, match="'qa' found no answer in the training Docs"):
        nlp.initialize(lambda: [Example(doc, doc.copy())])
