"""The coref component: its loss, its clusters, and the files of its corpora."""

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from tasks.coref.annotation import clusters, coref_pieces, pieces, set_clusters
from tasks.coref.component import aligned_clusters, linked
from tasks.coref.model import Ranking
from tasks.coref.scorer import score_coref

from tests.evidence.tasks import labelled
from tests.evidence.tasks.labelled import DOCUMENTS, coref_doc, coref_examples, words_of


@pytest.fixture
def trained():
    return labelled.trained("coref")


def read(nlp, *docs):
    return [clusters(doc) for doc in nlp.pipe(docs)]


def test_empty_docs(trained):
    before = trained.get_pipe("coref").model.to_bytes()
    filled = words_of(coref_doc(trained.vocab, *DOCUMENTS[1]))
    assert read(trained, trained.make_doc(""), filled) == [[], DOCUMENTS[1][1]]
    doc = trained.make_doc("")
    assert trained.update([Example(doc, doc.copy())], sgd=False) == {"coref": 0.0}
    assert trained.get_pipe("coref").model.to_bytes() == before


def test_new_clusters_stand_in_place_of_old_ones(trained):
    doc = coref_doc(trained.vocab, DOCUMENTS[1][0], [[(0, 1), (1, 2)], [(2, 3), (3, 4)]])
    doc.spans["other"] = [doc[0:2]]
    trained(doc)
    assert list(doc.spans) == ["other", "coref_clusters_1"]


def ranking(scores):
    """Return four spans of one token, each with all antecedents before it."""
    antecedents = np.array([[0, 1, 2]] * 4)
    scores = np.array(scores, dtype="f")
    return Ranking(np.arange(4), np.arange(1, 5), antecedents, scores)


INF = np.inf
SCORES = [
    [0, -INF, -INF, -INF],
    [0, -1, -INF, -INF],
    [0, 2, -0.5, -INF],
    [0, 0.1, 0.3, 0.5],
]


def test_loss_by_hand(trained):
    """Spans 0, 1 and 3 are in one cluster. 0 and 2 have no correct antecedent, so "none" is correct; 3 has two."""
    doc = Doc(trained.vocab, words=list("abcd"))
    reference = words_of(doc)
    set_clusters(reference, [[(0, 1), (1, 2), (3, 4)]])
    component = trained.get_pipe("coref")
    loss, (gradient,) = component.get_loss([Example(doc, reference)], [ranking(SCORES)])
    e = np.exp
    expected = (
        -np.log(1)
        - np.log(e(-1) / (1 + e(-1)))
        - np.log(1 / (1 + e(2) + e(-0.5)))
        - np.log((e(0.1) + e(0.3)) / (1 + e(0.1) + e(0.3) + e(0.5)))
    ) / 4
    assert loss == pytest.approx(expected, rel=1e-5)
    # The gradient is the slope of that, score by score.
    for place in np.ndindex(4, 4):
        slopes = []
        for step in (0.01, -0.01):
            moved = np.array(SCORES)
            moved[place] += step
            slopes.append(component.get_loss([Example(doc, reference)], [ranking(moved)])[0])
        assert gradient[place] == pytest.approx((slopes[0] - slopes[1]) / 0.02, abs=1e-4)


def test_loss_is_the_mean_over_all_spans(trained):
    doc = Doc(trained.vocab, words=list("abcd"))
    reference = words_of(doc)
    set_clusters(reference, [[(0, 1), (1, 2), (3, 4)]])
    one = Example(doc, reference)
    component = trained.get_pipe("coref")
    loss, (gradient,) = component.get_loss([one], [ranking(SCORES)])
    again, gradients = component.get_loss([one, one], [ranking(SCORES)] * 2)
    assert again == pytest.approx(loss)
    assert_allclose(gradients[0], gradient / 2)


def test_right_antecedents_of_other_tokens(trained):
    """The labelled Doc may have other tokens. Mentions that match no tokens are left out."""
    vocab = trained.vocab
    reference = Doc(vocab, words=["Anna", "can", "not", "leave", "her"])
    set_clusters(reference, [[(0, 1), (1, 2), (4, 5)]])
    example = Example(Doc(vocab, words=["Anna", "cannot", "leave", "her"]), reference)
    assert aligned_clusters(example) == [[(0, 1), (3, 4)]]


def test_links_make_clusters():
    """The links are 0 <- 2 and 1 <- 3. The score of no antecedent is the best one for the others."""
    scores = np.array(SCORES)
    scores[3] = [0, -1, 3, 1]
    assert linked(ranking(scores)) == [[(0, 1), (2, 3)], [(1, 2), (3, 4)]]
    scores[3] = [0, -1, -3, -1]
    assert linked(ranking(scores)) == [[(0, 1), (2, 3)]]
    scores[3] = [0, -1, -3, 1]
    assert linked(ranking(scores)) == [[(0, 1), (2, 3), (3, 4)]]


def test_pieces(tmp_path):
    vocab = spacy.blank("en").vocab
    words, found = DOCUMENTS[0]
    doc = coref_doc(vocab, words, found)
    first, second = pieces(doc, 8)
    assert [token.text for token in first] == "Anna saw Bob . She waved .".split()
    assert [token.text for token in second] == "He left .".split()
    assert (clusters(first), clusters(second)) == ([[(0, 1), (4, 5)]], [])
    # No sentence fits: each is a piece of its own.
    assert [len(piece) for piece in pieces(doc, 1)] == [4, 3, 3]
    (whole,) = pieces(doc, 10)
    assert clusters(whole) == found
    rain = "It rains on us all day long . "
    later = coref_doc(vocab, rain + words, [[(a + 8, b + 8) for a, b in each] for each in found])
    rainy, first, second = pieces(later, 7)
    assert (len(rainy), clusters(first), clusters(second)) == (8, [[(0, 1), (4, 5)]], [])


def test_files_keep_clusters_and_the_reader_cuts_them(tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "a.spacy"
    DocBin(docs=[coref_doc(nlp.vocab, *document) for document in DOCUMENTS]).to_disk(path)
    (example, *others) = coref_pieces(path, 100)(spacy.blank("en"))
    assert clusters(example.reference) == DOCUMENTS[0][1] and len(others) == 2
    assert clusters(example.predicted) == []
    assert_array_equal(
        [token.text for token in example.predicted], [token.text for token in example.reference]
    )
    assert len(list(coref_pieces(path, 8)(nlp))) == 7
    assert len(list(coref_pieces(path, 8, limit=1)(nlp))) == 2


def test_the_reader_of_a_config_without_paths():
    """The reader can be created, as `spacy debug config` does. It reports the missing path when it is read."""
    reader = coref_pieces(None, 100)
    with pytest.raises(ValueError, match="--paths.train"):
        next(reader(spacy.blank("en")))


def test_scores_of_a_whole_set():
    """Counts are summed over Docs, not averaged: the second Doc has more mentions."""
    nlp = spacy.blank("en")
    pair = coref_examples(nlp)[:2]
    set_clusters(pair[0].predicted, [DOCUMENTS[0][1][0]])
    scores = score_coref(pair)
    assert scores["coref_muc_p"] == 1 and scores["coref_muc_r"] == pytest.approx(1 / 3)
    assert scores["coref_b3_r"] == pytest.approx(2 / 6)
    assert scores["coref_ceafe_r"] == pytest.approx(1 / 3)
    assert scores["coref_f"] == pytest.approx(0.5)
    nothing = score_coref([Example(words_of(nlp.make_doc("a")), nlp.make_doc("a"))])
    assert nothing["coref_f"] == 0
