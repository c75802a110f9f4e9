"""The graph-based parser: its scores and gradients, its trees, and its place in a pipeline."""

import pickle
import random

import numpy as np
import pytest
import spacy
import torch
import torch.nn.functional as F
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Adam, Model

from spacy_elmo.bilm.kernels.fused_lstm import has_fused_lstm
from spacy_elmo.components.biaffine_model import BiaffineParser_v1, Scores, Sentences
from spacy_elmo.components.biaffine_parser import cross_entropy
from tests.components.test_bilstm import oracle as bilstm_oracle

SMALL = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 16,
    "depth": 1,
    "embed_size": 200,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}
MODEL = {
    "@architectures": "spacy-elmo.BiaffineParser.v1",
    "tok2vec": SMALL,
    "lstm_width": 32,
    "arc_width": 16,
    "label_width": 16,
}

# Words, heads and labels of sentences. The second tree is not projective.
SENTENCES = [
    ("the cat sleeps", [1, 2, 2], ["det", "nsubj", "ROOT"]),
    ("hearing was held today on it", [2, 2, 2, 2, 5, 0], ["nsubj", "aux", "ROOT", "obl", "case", "nmod"]),
    ("stop", [0], ["ROOT"]),
]  # fmt: skip


def gold(vocab, sentences=SENTENCES):
    """Return one Doc of some sentences."""
    words, heads, deps = [], [], []
    for text, own_heads, own_deps in sentences:
        heads += [len(words) + head for head in own_heads]
        words += text.split()
        deps += own_deps
    return Doc(vocab, words=words, heads=heads, deps=deps)


def example(vocab, sentences=SENTENCES):
    """Return an example whose predicted Doc has no annotation, as in training."""
    reference = gold(vocab, sentences)
    return Example(Doc(vocab, words=[token.text for token in reference]), reference)


def without_trees(doc):
    starts = [token.is_sent_start for token in doc]
    return Doc(doc.vocab, words=[token.text for token in doc], sent_starts=starts)


def tree(doc):
    return [(token.head.i, token.dep_) for token in doc]


def initialized(**config):
    fix_random_seed()
    nlp = spacy.blank("xx")
    nlp.add_pipe("biaffine_parser", config={"model": MODEL, **config})
    return nlp, nlp.initialize(lambda: [example(nlp.vocab)])


def trained(steps=80, **config):
    nlp, optimizer = initialized(**config)
    for _ in range(steps):
        nlp.update([example(nlp.vocab)], sgd=optimizer)
    return nlp


# Scores and gradients


def given_vectors(vectors):
    """A layer that returns these vectors for any Docs, and keeps the gradients that it gets."""
    kept = []

    def forward(model, docs, is_train):
        return vectors, lambda gradients: kept.append(gradients) or []

    width = vectors[0].shape[1]
    return Model("given-vectors", forward, dims={"nO": width}), kept


def scores_oracle(parameters, lstm, x, words, heads):
    """Compute the formulas of `BiaffineParser_v1` arc by arc."""
    one = torch.ones(1, dtype=x.dtype)
    all_arcs, all_labels = [], []
    for own, own_heads in zip(words, heads, strict=True):
        states = bilstm_oracle(lstm, x[own])
        hidden = F.leaky_relu(states @ parameters["W"] + parameters["b"], 0.1)
        arc, label = parameters["arcs"].shape[1], parameters["labels"].shape[0] - 1
        d, d_, h, h_ = hidden.split([arc, label, arc, label], 1)
        n = range(len(own))
        arcs = [torch.cat([d[i], one]) @ parameters["arcs"] @ h[j] for i in n for j in n]
        all_arcs.append(torch.stack(arcs).view(len(own), len(own)))
        for i, j in zip(n, own_heads, strict=True):
            pair = torch.cat([d_[i], one]), torch.cat([h_[j], one])
            all_labels.append(torch.einsum("i,ikj,j->k", pair[0], parameters["labels"], pair[1]))
    return all_arcs, torch.stack(all_labels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_and_gradients_equal_those_of_the_formulas(dtype):
    numbers = np.random.default_rng(0)
    # Two Docs; the third token of the second one is in no sentence.
    vectors = [numbers.normal(size=(n, 5)).astype(dtype) for n in (4, 6)]
    words = [np.arange(4), np.array([4, 5]), np.array([7, 8, 9])]
    heads = [np.array([1, 1, 0, 2]), np.array([0, 0]), np.array([2, 2, 2])]
    tok2vec, kept = given_vectors(vectors)
    fix_random_seed()
    model = BiaffineParser_v1(tok2vec, lstm_width=8, arc_width=3, label_width=2, nO=4)
    model.initialize(X=Sentences([], []))
    for node in model.walk():
        for name in node.param_names:
            shape = node.get_param(name).shape
            node.set_param(name, numbers.normal(0, 0.5, shape).astype(dtype))
    scores, backprop = model(Sentences([], words, heads), is_train=True)

    lstm = model.layers[1]
    leaves = {
        (node.id, name): torch.tensor(node.get_param(name)).double().requires_grad_()
        for node in (model, lstm)
        for name in node.param_names
    }
    own, of_lstm = (
        {name: leaves[node.id, name] for name in node.param_names} for node in (model, lstm)
    )
    x = torch.tensor(np.concatenate(vectors)).double().requires_grad_()
    arcs, labels = scores_oracle(own, of_lstm, x, words, heads)
    close = {"atol": 1e-4 if dtype == "float32" else 1e-11, "rtol": 0}
    for got, expected in zip([*scores.arcs, scores.labels], [*arcs, labels], strict=True):
        np.testing.assert_allclose(got, expected.detach(), **close)

    d_arcs = [numbers.normal(size=own.shape).astype(dtype) for own in arcs]
    d_labels = numbers.normal(size=labels.shape).astype(dtype)
    backprop(Scores(d_arcs, d_labels, heads))
    torch.autograd.backward(
        [*arcs, labels], [torch.tensor(d).double() for d in (*d_arcs, d_labels)]
    )
    for node in (model, lstm):
        for name in node.param_names:
            np.testing.assert_allclose(
                node.get_grad(name), leaves[node.id, name].grad, err_msg=name, **close
            )
    np.testing.assert_allclose(np.concatenate(kept[0]), x.grad, **close)
    assert (kept[0][1][2] == 0).all() and [len(own) for own in kept[0]] == [4, 6]


@pytest.mark.parametrize("smoothing", [0.0, 0.03])
def test_the_loss_equals_that_of_torch(smoothing):
    scores = np.random.default_rng(0).normal(0, 3, (6, 5)).astype("float32")
    gold = np.array([0, 4, -1, 2, 2, -1])
    loss, gradient = cross_entropy(scores, gold, smoothing)
    leaf = torch.tensor(scores, requires_grad=True)
    options = {"ignore_index": -1, "reduction": "sum", "label_smoothing": smoothing}
    expected = F.cross_entropy(leaf, torch.tensor(gold), **options)
    expected.backward()
    assert float(loss) == pytest.approx(expected.item(), rel=1e-6)
    np.testing.assert_allclose(gradient, leaf.grad, atol=1e-6)
    assert (gradient[gold == -1] == 0).all()


# Trees


@pytest.mark.parametrize("label_smoothing", [0.0, 0.03])
def test_it_learns_trees_that_are_not_projective(label_smoothing):
    nlp = trained(label_smoothing=label_smoothing)
    reference = gold(nlp.vocab)
    doc = nlp(without_trees(reference))
    assert tree(doc) == tree(reference)
    assert [sent.start for sent in doc.sents] == [sent.start for sent in reference.sents]
    scores = nlp.evaluate([Example(without_trees(reference), reference)])
    assert scores["dep_uas"] == scores["dep_las"] == 1


def random_docs(vocab, count):
    """Docs of 0 to 4 sentences of 1 to 30 tokens, some of them whitespace."""
    choose = random.Random(0)
    words = [*(f"w{number}" for number in range(200)), "\n", " "]
    docs = []
    for _ in range(count):
        lengths = [choose.randint(1, 30) for _ in range(choose.randint(0, 4))]
        starts = [token == 0 for length in lengths for token in range(length)]
        docs.append(Doc(vocab, choose.choices(words, k=len(starts)), sent_starts=starts))
    return docs


def with_random_scores():
    nlp, _ = initialized()
    parser = nlp.get_pipe("biaffine_parser")
    numbers = np.random.default_rng(0)
    for name in ("arcs", "labels"):
        shape = parser.model.get_param(name).shape
        parser.model.set_param(name, numbers.normal(0, 1, shape).astype("float32"))
    return nlp, parser


@pytest.mark.skipif(not has_fused_lstm(torch.float32), reason="there are no kernels")
def test_a_doc_has_the_same_scores_and_tree_whatever_its_batch_mates():
    nlp, parser = with_random_scores()
    docs = random_docs(nlp.vocab, 300)
    model = parser.model

    def scored(batch):
        """Return the scores of each sentence of a batch, which `predict` gives to the model."""
        seen = []
        parser.model = Model(
            "spy", lambda _, X, is_train: (seen.append(model.predict(X)) or seen[-1], None)
        )
        try:
            parses = parser.predict(batch)
        finally:
            parser.model = model
        [scores] = seen or [Scores([], np.zeros((0, 0)), [])]
        return parses, scores

    alone = [scored([doc]) for doc in docs]
    order = list(range(300))
    random.Random(1).shuffle(order)
    for numbers, size in ((range(300), 32), (order, 7)):
        for start in range(0, 300, size):
            batch = list(numbers[start : start + size])
            parses, scores = scored([docs[number] for number in batch])
            for number, (heads, deps) in zip(batch, parses, strict=True):
                [(own_heads, own_deps)], _ = alone[number]
                assert np.array_equal(heads, own_heads) and np.array_equal(deps, own_deps)
            arcs = [arcs for number in batch for arcs in alone[number][1].arcs]
            assert all(map(np.array_equal, scores.arcs, arcs))
            labels = [alone[number][1].labels for number in batch if len(docs[number])]
            assert np.array_equal(scores.labels, np.concatenate(labels))


def test_each_sentence_has_one_root_and_keeps_its_words():
    nlp, _ = with_random_scores()
    for doc in random_docs(nlp.vocab, 50):
        bounds = [(sent.start, sent.end) for sent in doc.sents]
        nlp(doc)
        assert [(sent.start, sent.end) for sent in doc.sents] == bounds
        for sent in doc.sents:
            assert [token.dep_ for token in sent if token.head == token] == ["ROOT"]
            for token in sent:
                assert sent.root == token or sent.root in token.ancestors


def test_whitespace_depends_on_the_word_before_it():
    nlp, _ = with_random_scores()
    words = ["\n", "a", " ", "b", "\n", "\t", "\n"]
    doc = nlp(Doc(nlp.vocab, words, sent_starts=[i in (0, 5) for i in range(7)]))
    assert [doc[i].head.i for i in (0, 2, 4, 5, 6)] == [1, 1, 3, 5, 5]
    assert [doc[i].dep_ for i in (0, 2, 4, 5, 6)] == ["dep", "dep", "dep", "ROOT", "dep"]


def test_a_doc_without_sentences_is_an_error():
    nlp, _ = initialized()
    with pytest.raises(ValueError, match="E030"):
        nlp("the cat sleeps")
    assert tree(nlp("stop")) == [(0, "ROOT")]
    assert [len(doc) for doc in nlp.pipe(["", "stop", ""])] == [0, 1, 0]


# Training


def gradients(nlp, examples):
    """Return the gradients of a step for all parameters, in the order of the layers."""
    parser = nlp.get_pipe("biaffine_parser")
    losses = parser.update(examples)
    found = []
    for node in parser.model.walk():
        for name in node.param_names:
            if node.has_grad(name):
                found.append(node.get_grad(name).copy())
                node.set_grad(name, np.zeros_like(found[-1]))
    return losses["biaffine_parser"], found


def test_the_sentences_are_those_of_the_reference():
    """Whether the predicted Doc has no sentences, or others."""
    nlp, _ = with_random_scores()
    whole = example(nlp.vocab)
    wrong = Doc(nlp.vocab, [token.text for token in whole.predicted], sent_starts=[True] * 10)
    loss, expected = gradients(nlp, [whole])
    other, got = gradients(nlp, [Example(wrong, whole.reference)])
    assert loss == other
    for one, two in zip(got, expected, strict=True):
        assert np.array_equal(one, two)


def test_missing_heads_are_not_in_the_loss():
    nlp, _ = with_random_scores()
    words = "the cat sleeps".split()

    def loss(deps, heads=(1, 2, 2)):
        reference = Doc(nlp.vocab, words, heads=list(heads), deps=list(deps))
        return gradients(nlp, [Example(Doc(nlp.vocab, words), reference)])[0]

    whole = loss(["det", "nsubj", "ROOT"])
    parts = [
        loss(["det", "", ""]),
        loss(["", "nsubj", ""]),
        loss(["", "", "ROOT"]),
    ]
    assert sum(parts) == pytest.approx(whole, rel=1e-5) and min(parts) > 0
    # The head of a label that is not known counts.
    assert 0 < loss(["new", "", ""]) < parts[0]


def test_words_of_another_tokenizer():
    """A word that is two in the reference has no gold head, nor have its children."""
    nlp, _ = with_random_scores()
    reference = Doc(nlp.vocab, ["I", "do", "n't", "know"], heads=[3, 3, 1, 3], deps=["nsubj", "aux", "det", "ROOT"],
                    spaces=[True, False, True, False])  # fmt: skip
    predicted = Doc(nlp.vocab, ["I", "don't", "know"], spaces=[True, True, False])
    same = Doc(nlp.vocab, ["I", "don't", "know"], heads=[2, 1, 2], deps=["nsubj", "", "ROOT"])
    loss, got = gradients(nlp, [Example(predicted, reference)])
    other, expected = gradients(nlp, [Example(predicted, same)])
    assert loss == other > 0
    assert all(map(np.array_equal, got, expected))


def test_docs_without_gold_leave_the_shared_encoder_in_order():
    """The parser is the last listener, so the encoder waits for its gradient."""
    fix_random_seed()
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": SMALL})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16}
    nlp.add_pipe(
        "tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}}
    )
    nlp.add_pipe("biaffine_parser", config={"model": {**MODEL, "tok2vec": listener}})
    tagged = example(nlp.vocab, SENTENCES[:1])
    for token in tagged.reference:
        token.tag_ = token.text
    optimizer = nlp.initialize(lambda: [tagged])
    no_trees = Doc(nlp.vocab, ["the", "cat"], tags=["the", "cat"])
    unparsed = Example(Doc(nlp.vocab, ["the", "cat"]), no_trees)
    encoder = nlp.get_pipe("tok2vec").model
    before = encoder.to_bytes()
    losses = {}
    for _ in range(2):  # the first update comes after the first step of the encoder
        nlp.update([unparsed], sgd=optimizer, losses=losses)
    assert losses["biaffine_parser"] == 0 and losses["tagger"] > 0
    assert encoder.to_bytes() != before
    nlp.update(
        [unparsed, tagged, Example(Doc(nlp.vocab), Doc(nlp.vocab))], sgd=optimizer, losses=losses
    )
    assert losses["biaffine_parser"] > 0
    nlp.update([Example(Doc(nlp.vocab), Doc(nlp.vocab))], sgd=optimizer)


# Labels and files


def test_labels():
    nlp, _ = initialized()
    parser = nlp.get_pipe("biaffine_parser")
    labels = ("ROOT", "aux", "case", "det", "nmod", "nsubj", "obl")
    assert parser.labels == parser.label_data == labels
    assert parser.add_label("aux") == 0
    with pytest.raises(ValueError, match="E922"):
        parser.add_label("new")
    other = spacy.blank("xx")
    pipe = other.add_pipe("biaffine_parser", config={"model": MODEL})
    assert pipe.add_label("first") == 1
    pipe.initialize(lambda: [example(other.vocab)], nlp=other, labels=labels[:3])
    assert pipe.labels == ("first", *labels[:3])
    assert pipe.model.get_dim("nO") == 4
    with pytest.raises(ValueError, match="E143"):
        words = Example(Doc(other.vocab, ["a"]), Doc(other.vocab, ["a"]))
        other.add_pipe("biaffine_parser", name="second").initialize(lambda: [words])


@pytest.fixture(params=["disk", "bytes", "pickle"])
def copied(request, tmp_path):
    def copy(nlp):
        if request.param == "disk":
            nlp.to_disk(tmp_path)
            return spacy.load(tmp_path)
        if request.param == "bytes":
            return spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
        return pickle.loads(pickle.dumps(nlp))

    return copy


def test_a_copy_goes_on_training_like_the_original(copied):
    nlp = trained(steps=10)
    other = copied(nlp)
    reference = gold(nlp.vocab)
    assert tree(other(without_trees(gold(other.vocab)))) == tree(nlp(without_trees(reference)))
    weights = []
    for pipeline in (nlp, other):
        fix_random_seed(1)
        optimizer = Adam(0.001)
        for _ in range(5):
            pipeline.update([example(pipeline.vocab)], sgd=optimizer, drop=0.3)
        model = pipeline.get_pipe("biaffine_parser").model
        weights.append([node.get_param(name) for node in model.walk() for name in node.param_names])
    assert all(map(np.array_equal, *weights))
