"""The encoder that reads each sentence alone. The oracle is the same network on Docs of one sentence."""

import numpy as np
import pytest
import spacy
from spacy.ml.models import MultiHashEmbed
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_elmo.components.bilstm import BiLSTMEncoder_v1
from spacy_elmo.components.sentence_tok2vec import SentenceTok2Vec_v1, gold_sentences_v1

NLP = spacy.blank("xx")
SENTENCES = [["She", "sat", "down"], ["Why", "?"], ["He", "saw", "her", "there"], ["Yes"]]


def doc_of(*sentences):
    words = [word for sentence in sentences for word in sentence]
    starts = [i == 0 for sentence in sentences for i in range(len(sentence))]
    return Doc(NLP.vocab, words=words, sent_starts=starts)


@pytest.fixture
def model():
    fix_random_seed()
    embed = MultiHashEmbed(width=8, attrs=["NORM"], rows=[100], include_static_vectors=False)
    built = SentenceTok2Vec_v1(embed, BiLSTMEncoder_v1(width=12, depth=2))
    built.initialize(X=[doc_of(*SENTENCES)])
    return built


def gradients(model, docs, upstream):
    for node in model.walk():
        for name in node.grad_names:
            node.set_grad(name, node.get_grad(name) * 0)
    _, backprop = model(docs, is_train=True)
    backprop(upstream)
    return [node.get_grad(name) for node in model.walk() for name in node.grad_names]


def test_a_sentence_is_read_alone(model):
    together = [doc_of(*SENTENCES[:3]), Doc(NLP.vocab), doc_of(SENTENCES[3])]
    alone = [doc_of(sentence) for sentence in SENTENCES]
    assert model.get_dim("nO") == 12
    found, expected = model.predict(together), model.predict(alone)
    assert [array.shape for array in found] == [(9, 12), (0, 12), (1, 12)]
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))
    random = np.random.default_rng(0)
    upstream = random.normal(size=(10, 12)).astype("float32")
    rows = np.split(upstream, [3, 5, 9])
    of_alone = gradients(model, alone, rows)
    of_together = gradients(model, together, [upstream[:9], upstream[:0], upstream[9:]])
    assert len(of_alone) > 5
    for got, wanted in zip(of_together, of_alone, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_nothing_to_read(model):
    assert model.predict([]) == []
    (empty,), backprop = model([Doc(NLP.vocab)], is_train=True)
    assert empty.shape == (0, 12) and backprop([empty]) == []


def test_a_doc_without_sentences(model):
    with pytest.raises(ValueError, match="E030"):
        model.predict([Doc(NLP.vocab, words=["a", "b"])])


def test_gold_sentences():
    """The same words, and other words: "downWhy" is in two sentences, and starts the second."""
    gold = doc_of(*SENTENCES)
    for words, expected in (
        ([token.text for token in gold], [0, 3, 5, 9]),
        (["She", "sat", "downWhy", "?", "He", "saw", "herthere", "Yes"], [0, 2, 4, 7]),
    ):
        example = Example(Doc(NLP.vocab, words=words), gold.copy())
        (made,) = gold_sentences_v1()(NLP, example)
        assert [sentence.start for sentence in made.predicted.sents] == expected
        assert [token.text for token in made.predicted] == words
        assert made.reference.to_bytes() == gold.to_bytes()
