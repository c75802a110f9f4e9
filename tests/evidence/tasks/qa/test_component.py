"""The qa component: its loss, its best span, and its input."""

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

from tests.evidence.tasks import labelled
from tests.evidence.tasks.labelled import QUESTIONS, asked, qa_examples


@pytest.fixture
def trained():
    return labelled.trained("qa")


def test_predictions_are_of_the_context(trained):
    component = trained.get_pipe("qa")
    doc = asked(trained, *QUESTIONS[0][:2])
    (logits,) = component.predict([doc])
    assert logits.shape == (len(doc) - list(map(str, doc)).index("\n") - 1, 2)
    assert component.predict([]) == []


def test_loss_by_hand(trained):
    """If all logits are equal, the loss is log(n) for the start plus log(n) for the end, as a mean over the
    questions."""
    component, batch = trained.get_pipe("qa"), qa_examples(trained)[:3:2]
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
    doc = asked(trained, *QUESTIONS[3][:2])
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
    DocBin(docs=[asked(nlp, *each) for each in QUESTIONS]).to_disk(path)
    expected = [words for *_, words in QUESTIONS]
    actual = list(Corpus(path)(spacy.blank("en")))
    assert [answer(each.reference).text for each in actual] == expected
    assert [aligned_answer(each).text for each in actual] == expected
    assert [answer(each.predicted) for each in actual] == [None] * 4
