"""The component `spacy_conventions`: spaces, vectors and labels as programs for spaCy expect them."""

import pickle

import numpy as np
import pytest
import spacy
import srsly
from hypothesis import given
from hypothesis import strategies as st
from spacy import displacy
from spacy.tokens import Doc, Span

from spacy_elmo.components.noun_chunks import noun_chunks
from tests import pipelines
from tests.packages import MODELS

NLP = spacy.blank("en")
CONVENTIONS = NLP.add_pipe("spacy_conventions")


@st.composite
def trees(draw):
    """A Doc with spaces anywhere in random projective trees, one for each sentence."""
    words, heads, starts = [], [], []

    def grow(first, last, parent):
        """Attach a random token of a range to its parent, and the tokens beside it to this token."""
        if first < last:
            root = draw(st.integers(first, last - 1))
            heads[root] = root if parent is None else parent
            grow(first, root, root)
            grow(root + 1, last, root)

    for length in draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)):
        first = len(words)
        words += draw(
            st.lists(st.sampled_from(["a", "b", "\n", "  "]), min_size=length, max_size=length)
        )
        heads += [0] * length
        starts += [True] + [False] * (length - 1)
        grow(first, len(words), None)
    deps = ["ROOT" if head == index else "obj" for index, head in enumerate(heads)]
    n = len(words)
    return Doc(
        NLP.vocab, words, heads=heads, deps=deps,
        tags=["T"] * n, pos=["X"] * n, morphs=["A=B"] * n, lemmas=["l"] * n,
    )  # fmt: skip


@given(trees())
def test_spaces(doc):
    """Spaces lose children and morphology. A sentence of spaces joins the words before it. Otherwise, sentences and the
    ways between words stay."""
    first = min((token.i for token in doc if not token.is_space), default=len(doc))
    starts = [
        sentence.start
        for sentence in doc.sents
        if sentence.start <= first or not all(token.is_space for token in sentence)
    ]
    ancestors = [{a.i for a in token.ancestors if not a.is_space} for token in doc]
    CONVENTIONS(doc)
    assert [sentence.start for sentence in doc.sents] == starts
    for token in doc:
        if token.is_space:
            assert (token.tag_, token.pos_, str(token.morph), token.lemma_) == (
                "_SP",
                "SPACE",
                "",
                token.text,
            )
            words = [word for word in token.sent if not word.is_space]
            assert not words or not list(token.children)
        else:
            assert (token.tag_, token.pos_, str(token.morph), token.lemma_) == (
                "T",
                "X",
                "A=B",
                "l",
            )
            assert ancestors[token.i] <= {a.i for a in token.ancestors}
    for sentence in doc.sents:
        roots = [token for token in sentence if token.dep_ == "ROOT"]
        assert roots == [sentence.root]


def test_unannotated_spaces_stay():
    doc = NLP("a  b")
    CONVENTIONS(doc)
    assert not any(doc.has_annotation(name) for name in ("TAG", "POS", "MORPH", "LEMMA", "DEP"))


def test_vectors_are_those_of_elmo(weights):
    nlp = pipelines.blank(weights)
    nlp.add_pipe("spacy_conventions")
    doc = nlp("She sat on the bank of the river.")
    other = nlp("The bank lent her money.")
    np.testing.assert_array_equal(doc[4].vector, doc[4]._.elmo)
    np.testing.assert_allclose(doc.vector, doc._.elmo.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(doc[2:5].vector, doc[2:5]._.elmo, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(doc[2:5].as_doc().vector, doc[2:5].as_doc().tensor.mean(axis=0))
    assert nlp("").vector.shape == doc.vector.shape
    expected = cosine(doc[4]._.elmo, other[1]._.elmo)
    assert expected < 0.9999
    assert doc[4].similarity(other[1]) == pytest.approx(expected)
    assert doc.similarity(other) == pytest.approx(cosine(doc.vector, other.vector))
    assert doc[3:5].similarity(other) == pytest.approx(cosine(doc[3:5].vector, other.vector))
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[3:5])
    assert doc[3].similarity(other[1]) == pytest.approx(expected)  # spaCy keeps the last row


def cosine(one, other):
    return one @ other / np.sqrt((one @ one) * (other @ other))


def test_spacys_own_similarity(weights):
    nlp = pipelines.blank(weights)
    nlp.add_pipe("spacy_conventions", config={"similarity": False})
    assert nlp("the bank")[1].similarity(nlp("a bank")[1]) == 1.0


@pytest.mark.parametrize(
    "labels, deps, ents",
    [
        ("ud", ["nsubj:pass", "ROOT", "obj"], ["PER", "LOC"]),
        ("spacy", ["nsubjpass", "ROOT", "dobj"], ["PERSON", "LOC"]),
    ],
)
def test_labels(labels, deps, ents):
    nlp = spacy.blank("en")
    nlp.add_pipe("spacy_conventions", config={"labels": labels})
    doc = Doc(nlp.vocab, ["A", "b", "C"], heads=[1, 1, 1], deps=["nsubj:pass", "ROOT", "obj"])
    doc.ents = [Span(doc, 0, 1, "PER", kb_id="Q1", span_id="anna"), Span(doc, 2, 3, "LOC")]
    nlp.get_pipe("spacy_conventions")(doc)
    assert [token.dep_ for token in doc] == deps
    person, place = doc.ents
    assert [person.label_, place.label_] == ents
    assert (person.kb_id_, person.id_, place.kb_id_) == ("Q1", "anna", "")


def test_entities_that_nothing_looked_for_stay_unknown():
    nlp = spacy.blank("en")
    nlp.add_pipe("spacy_conventions", config={"labels": "spacy"})
    assert not nlp("Anna").has_annotation("ENT_IOB")


def test_iterator_stays_with_the_pipeline(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("spacy_conventions")
    nlp.to_disk(tmp_path)
    for copy in (nlp, spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp))):
        assert copy.vocab.get_noun_chunks is noun_chunks
    other = spacy.blank("en")
    other.add_pipe("spacy_conventions", source=nlp)
    assert other("a").vocab.get_noun_chunks is noun_chunks
    other.vocab.get_noun_chunks = list  # the user's own
    assert other("a").vocab.get_noun_chunks is list


@pytest.mark.parametrize(
    "lang, is_ours", [("de", True), ("fa", True), ("grc", True), ("la", True), ("fr", False)]
)
def test_languages_with_our_noun_chunks(lang, is_ours):
    """spaCy has none for Ancient Greek. Those of French read UD."""
    nlp = spacy.blank(lang)
    nlp.add_pipe("spacy_conventions")
    assert (nlp.vocab.get_noun_chunks is noun_chunks) == is_ours


def test_displacy_has_colours():
    doc = NLP("Anna")
    doc.ents = [Span(doc, 0, 1, "PER")]
    assert "#aa9cfc" in displacy.render(doc, style="ent", jupyter=False)


def test_every_label_is_explained():
    """`spacy.explain` knows the labels of `en_elmo_web`."""
    labels = srsly.read_json(MODELS / "en_elmo_web/en_elmo_web/meta.json")["labels"]
    for label in (*labels["parser"], *labels["tagger"], *labels["ner"]):
        assert spacy.explain(label), label
