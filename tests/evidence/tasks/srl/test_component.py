"""The srl component learns roles that depend on the predicate, and predicts the same after saving, copying and
pickling."""

import numpy as np
import pytest
import spacy
import tasks.srl.component  # noqa: F401
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from tasks.srl.annotation import (
    Argument,
    arguments,
    predicate_corpus,
    predicates,
    set_arguments,
    set_predicates,
)
from tasks.srl.model import PLACES, seen_from_predicates
from thinc.api import Model, fix_random_seed

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
EMBED = {"@architectures": "spacy.HashEmbedCNN.v2", "width": 16, "depth": 1, "embed_size": 200,
         "window_size": 1, "maxout_pieces": 2, "subword_features": False, "pretrained_vectors": None}  # fmt: skip
LISTENER = {"@architectures": "spacy-elmo.ElmoListener.v1"}


def gold(vocab, words, roles):
    doc = Doc(vocab, words=words.split())
    set_predicates(doc, dict.fromkeys(roles, "be.01"))
    set_arguments(
        doc, {index: [Argument(*each) for each in actual] for index, actual in roles.items()}
    )
    return doc


def given(doc):
    """Return the part of a labelled Doc that the pipeline receives."""
    copy = Doc(doc.vocab, words=[token.text for token in doc])
    set_predicates(copy, dict.fromkeys(predicates(doc), "be.01"))
    return copy


def examples(nlp):
    docs = [gold(nlp.vocab, *sentence) for sentence in SENTENCES]
    return [Example(given(doc), doc) for doc in docs]


def pipeline(tok2vec=EMBED, steps=0):
    fix_random_seed(0)
    nlp = spacy.blank("en")
    if tok2vec is LISTENER:
        nlp.add_pipe("elmo")
    model = {"@architectures": "evidence.PredicateTagger.v1", "hidden_width": 16, "depth": 1}
    nlp.add_pipe("srl", config={"model": {**model, "tok2vec": tok2vec}})
    optimizer = nlp.initialize(lambda: examples(nlp))
    optimizer.learn_rate = 0.01
    for _ in range(steps):
        nlp.update(examples(nlp), sgd=optimizer, drop=0.1)
    return nlp


@pytest.fixture(scope="module")
def trained():
    return pipeline(steps=60)


def read(nlp, *docs):
    return [arguments(doc) for doc in nlp.pipe(docs)]


def test_roles_are_learnt_for_each_predicate(trained):
    docs = [given(gold(trained.vocab, *sentence)) for sentence in SENTENCES]
    assert read(trained, *docs) == [roles for _, roles in SENTENCES]
    scores = trained.evaluate(examples(trained))
    assert (scores["srl_p"], scores["srl_r"], scores["srl_f"]) == (1, 1, 1)


def test_labels(trained):
    expected = ("ARG0", "ARG1", "ARG2", "ARGM-TMP", "R-ARG0")
    assert trained.get_pipe("srl").labels == expected


def test_journeys(trained, tmp_path):
    trained.to_disk(tmp_path)
    fresh = pipeline()
    fresh.from_bytes(trained.to_bytes())
    for nlp in (spacy.load(tmp_path), fresh):
        assert nlp.get_pipe("srl").labels == trained.get_pipe("srl").labels
        for words, roles in SENTENCES:
            doc = given(gold(nlp.vocab, words, roles))
            (expected,) = trained.get_pipe("srl").predict([doc])[:1]
            assert_allclose(nlp.get_pipe("srl").predict([doc])[0], expected, atol=1e-6)
            assert read(nlp, doc) == [roles]


def test_batch_mates_change_nothing(trained):
    srl = trained.get_pipe("srl")
    docs = [given(gold(trained.vocab, *sentence)) for sentence in SENTENCES]
    together = srl.predict(docs)
    alone = [scores for doc in docs for scores in srl.predict([doc])]
    assert len(together) == len(alone) == 6
    for one, other in zip(together, alone, strict=True):
        assert_allclose(one, other, atol=1e-6)


def test_probabilities(trained):
    doc = given(gold(trained.vocab, *SENTENCES[0]))
    asked, left = trained.get_pipe("srl").predict([doc])
    assert asked.shape == left.shape == (7, 11)
    assert_allclose(asked.sum(axis=1), 1, rtol=1e-5)


def test_same_seed_same_weights():
    one, other = pipeline(steps=3), pipeline(steps=3)
    assert one.get_pipe("srl").model.to_bytes() == other.get_pipe("srl").model.to_bytes()


def test_loss_is_the_mean_over_tokens_of_all_predicates():
    """Before the first step all tags are equally likely, whatever the number of Docs."""
    nlp = pipeline()
    for batch in (examples(nlp), examples(nlp)[1:2]):
        srl = nlp.get_pipe("srl")
        scores, _ = srl.model.begin_update([example.predicted for example in batch])
        loss, gradients = srl.get_loss(batch, scores)
        assert loss == pytest.approx(np.log(11))
        # softmax - 1 at the right tag, softmax elsewhere: 2 * 10/11 per token, over all tokens.
        assert sum(np.abs(each).sum() for each in gradients) == pytest.approx(20 / 11, rel=1e-5)


def test_without_predicates_nothing_happens(trained):
    before = trained.get_pipe("srl").model.to_bytes()
    assert read(trained, trained.make_doc("It rains ."), trained.make_doc("")) == [{}, {}]
    doc = trained.make_doc("It rains .")
    assert trained.update([Example(doc, doc.copy())], sgd=False) == {"srl": 0.0}
    assert trained.get_pipe("srl").model.to_bytes() == before


def test_gradient_of_the_view_by_differences():
    """The gradient equals finite differences of a weighted sum of the output."""
    nlp = spacy.blank("en")
    docs = [given(gold(nlp.vocab, *sentence)) for sentence in SENTENCES[:2]]
    random = np.random.default_rng(0)
    vectors = [random.normal(size=(len(doc), 3)) for doc in docs]
    received = []

    def lookup(model, docs, is_train):
        return vectors, lambda gradient: received.append(gradient) or docs

    model = seen_from_predicates(Model("lookup", lookup))
    views, backprop = model.begin_update(docs)
    width = 3 + 3 + PLACES
    assert [view.shape for view in views] == [(7, width), (7, width), (8, width), (8, width)]
    # Of the 8 words around "fell", the second, those from the sixth on are all far behind it.
    assert views[2][:, 6:].argmax(axis=1).tolist() == [3, 4, 5, 6, 7, 8, 8, 8]
    assert_array_equal(views[2][:, 6:].sum(axis=1), 1)
    assert_array_equal(views[1][6, :6], [*vectors[0][6], *vectors[0][4]])
    weights = [random.normal(size=view.shape).astype("f") for view in views]
    backprop(weights)

    def total():
        return sum((w * view).sum() for w, view in zip(weights, model.predict(docs), strict=True))

    for vector, gradient in zip(vectors, received[0], strict=True):
        for place in np.ndindex(vector.shape):
            before = vector[place]
            vector[place] = before + 0.5
            high = total()
            vector[place] = before - 0.5
            slope = high - total()
            vector[place] = before
            assert gradient[place] == pytest.approx(slope, abs=1e-4)


def test_listener_is_trained():
    nlp = pipeline(LISTENER, steps=3)
    (mix,) = (node for node in nlp.get_pipe("srl").model.walk() if node.name == "elmo-mix")
    assert mix.get_param("scalars").any() and mix.get_param("scale").any()


def test_files_keep_roles_and_the_reader_hands_on_predicates(tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "a.spacy"
    DocBin(docs=[gold(nlp.vocab, *sentence) for sentence in SENTENCES]).to_disk(path)
    actual = list(predicate_corpus(path)(spacy.blank("en")))
    assert [arguments(example.reference) for example in actual] == [r for _, r in SENTENCES]
    assert [predicates(example.predicted) for example in actual] == [list(r) for _, r in SENTENCES]
    assert [arguments(example.predicted)[1] for example in actual[:2]] == [[], []]
    assert actual[0].predicted.spans["predicates"][0].label_ == "be.01"
    assert len(list(predicate_corpus(path, limit=2)(nlp))) == 2


def test_a_reader_without_a_file_says_what_to_give():
    with pytest.raises(ValueError, match=r"--paths.train and --paths.dev .*tasks\.srl\.convert"):
        list(predicate_corpus(None)(spacy.blank("en")))


def test_files_without_predicates_are_refused(tmp_path):
    nlp = spacy.blank("en")
    path = tmp_path / "a.spacy"
    DocBin(docs=[nlp.make_doc("It rains")]).to_disk(path)
    with pytest.raises(ValueError, match=r"a\.spacy: 'It rains' has no span group 'predicates'"):
        list(predicate_corpus(path)(nlp))


@pytest.mark.parametrize(
    "has_gold, message",
    [(False, "'srl' found no argument in the training Docs"), (True, "PredicateCorpus")],
)
def test_initialize_needs_predicates_and_arguments(has_gold, message):
    nlp = spacy.blank("en")
    model = {"@architectures": "evidence.PredicateTagger.v1", "hidden_width": 4, "depth": 1}
    nlp.add_pipe("srl", config={"model": {**model, "tok2vec": EMBED}})
    doc = gold(nlp.vocab, *SENTENCES[0])
    bare = nlp.make_doc(doc.text)
    with pytest.raises(ValueError, match=message):
        nlp.initialize(lambda: [Example(bare, doc if has_gold else bare)])
