"""From Docs to layers: equal to the bare network, in whatever batch, and the gradient back through it."""

import functools
import mmap
from unittest.mock import patch

import numpy as np
import pytest
import spacy
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from thinc.api import PyTorchShim, data_validation

from spacy_elmo.bilm.kernels import native
from spacy_elmo.pipeline.encode import encoder
from spacy_elmo.pipeline.encode.encoder import (
    BiLM_v1,
    averages,
    configure,
    shim_of,
    write_means,
)
from spacy_elmo.pipeline.encode.spans import rule_spans, sentence_spans, whole_docs, window_spans
from spacy_elmo.pipeline.factory_options import BiLMOptions
from spacy_elmo.weight_names import bundled_names
from tests import tiny
from tests.bilm import golden
from tests.pipelines import TEXTS, assert_close, assert_same

NLP = spacy.blank("en")


def build(weights, **options):
    model = BiLM_v1()
    configure(model, BiLMOptions(weights=str(weights), **options))
    return model


def doc_of(*words):
    return Doc(NLP.vocab, words=list(words))


def docs_of(texts=TEXTS):
    return [NLP(text) for text in texts]


@pytest.fixture(scope="module")
def model(weights):
    return build(weights)


def by_hand(model, words, sentences):
    """Return the layers of a Doc, one sentence at a time, from the indices of the words of each."""
    layers = np.zeros((3, len(words), 10), dtype="f")
    for places in sentences:
        output = tiny.read(shim_of(model).bilm, [[words[place] for place in places]])
        layers[:, places] = output.layers.numpy()
    return layers


def test_each_token_gets_the_layers_of_its_sentence(model):
    words = ["A", "cat", ".", " ", "The", "cat", "\n", "sat", "."]
    (layers,) = model.predict([doc_of(*words)])
    assert layers.dtype == np.float32
    assert_same(layers, by_hand(model, words, [[0, 1, 2], [4, 5], [7, 8]]))
    assert (layers[:, [3, 6]] == 0).all()
    # The same words in the same sentence, but not the same vectors: context.
    assert np.abs(layers[1:, 1] - layers[1:, 5]).max() > 1e-3
    assert_same(layers[:1, 1:2], layers[:1, 5:6])


def sentences_in_docs(docs):
    """The sentences of each Doc, all of it, and its sentences again."""
    return [
        [*own, *whole, *own] for own, whole in zip(rule_spans(docs), whole_docs(docs), strict=True)
    ]


@given(
    texts=st.lists(st.text("ab .\n!", max_size=30) | st.sampled_from(TEXTS), max_size=8),
    max_words=st.integers(1, 40),
    get_spans=st.sampled_from(
        [
            None,
            whole_docs,
            functools.partial(window_spans, size=7, stride=1),
            sentences_in_docs,
        ]
    ),
    dtype=st.sampled_from(["float32", "float16"]),
    seed=st.randoms(),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_doc_has_its_vectors_whatever_it_is_read_with(
    weights, texts, max_words, get_spans, dtype, seed
):
    """Vectors depend neither on the batch size, which may be smaller than a span, nor on the order of the Docs."""
    plain = build(weights, get_spans=get_spans)
    docs = docs_of(texts)
    alone = [(plain.predict([doc])[0], averages(plain, [doc])[0]) for doc in docs]
    order = seed.sample(range(len(texts)), len(texts))
    mixed = build(weights, get_spans=get_spans, dtype=dtype)
    docs = [docs[place] for place in order]
    with patch.object(encoder, "MAX_WORDS", max_words):
        actual = zip(order, mixed.predict(docs), averages(mixed, docs), strict=True)
    for place, layers, average in actual:
        expected, mean = alone[place]
        assert_same(layers, expected.astype(dtype))
        assert_same(average[None], mean[None].astype(dtype))
        assert_close(mean[None], expected.mean(0, keepdims=True))


def test_sizes_that_are_nothing_or_huge(model):
    docs = [doc_of(), doc_of("One"), doc_of(" "), doc_of("x" * 100_000, "y")]
    layers = model.predict(docs)
    assert [x.shape for x in layers] == [(3, 0, 10), (3, 1, 10), (3, 1, 10), (3, 2, 10)]
    assert_same(layers[1], by_hand(model, ["One"], [[0]]))
    assert (layers[2] == 0).all()
    # Only the first bytes of a word are read.
    assert_same(layers[3], by_hand(model, ["x" * 10, "y"], [[0, 1]]))
    assert model.predict([]) == []
    assert [x.shape for x in model.predict([doc_of(), doc_of()])] == [(3, 0, 10)] * 2


def test_training_of_nothing(weights):
    model = build(weights, frozen=False)
    for docs in ([], [doc_of()], [doc_of(" "), doc_of()]):
        layers, backprop = model.begin_update(docs)
        assert backprop(layers) == []
    assert all(parameter.grad is None for parameter in shim_of(model).bilm.parameters())


def test_layers_are_owned_and_of_no_batch(model):
    """A slice of the batch would keep the whole batch in memory as long as one Doc of it exists."""
    together = [*model.predict(docs_of()), *averages(model, docs_of())]
    for kept in [*together, *model.predict(docs_of()[:1]), *averages(model, docs_of()[:1])]:
        assert kept.base is None and kept.flags.c_contiguous and kept.flags.writeable
    # What is too large for the heap is a mapping of its own, which numpy takes for a base.
    for kept in model.predict([doc_of(*"ab" * 200), doc_of(*"abc" * 200)]):
        assert isinstance(kept.base, mmap.mmap) and len(kept.base) == kept.nbytes


def test_docs_of_several_vocabularies(model):
    other = spacy.blank("de")
    docs = [NLP("A cat sat."), other("Ein Kätzchen saß."), NLP("A cat sat.")]
    layers = model.predict(docs)
    assert_same(layers[1], model.predict([docs[1]])[0])
    assert_same(layers[0], layers[2])


def test_overlapping_spans_are_averaged_and_gaps_are_zero(weights):
    words = ["a", "cat", "sat", "here", "now"]
    model = build(weights, get_spans=lambda docs: [[doc[0:3], doc[1:4]] for doc in docs])
    (layers,) = model.predict([doc_of(*words)])
    first, second = (by_hand(model, words, [places]) for places in ([0, 1, 2], [1, 2, 3]))
    both = first + second
    both[:, 1:3] /= 2
    assert_same(layers, both)
    assert (layers[:, 4] == 0).all()


@pytest.mark.skipif(native.processor() is None, reason="there are no kernels")
@pytest.mark.parametrize("name", bundled_names())
@pytest.mark.parametrize("max_words", [64, 4096])
def test_overlapping_spans_are_those_of_the_golden_file(name, max_words, monkeypatch):
    monkeypatch.setattr(encoder, "MAX_WORDS", max_words)
    (words,) = golden.texts()["long"]
    ranges = golden.spans()
    model = build(
        name,
        get_spans=lambda docs: [[doc[r.start : r.stop] for r in ranges] for doc in docs],
    )
    docs = [doc_of(*words[20:]), doc_of(*words), doc_of(*words[::-1])]
    found = golden.digest(model.predict(docs)[1])
    assert found == golden.expected()[name]["overlapping spans"]


def test_whole_docs_and_set_sentences(weights):
    words = ["A", "cat", ".", "It", "sat", "."]
    doc = doc_of(*words)
    for place, token in enumerate(doc):
        token.is_sent_start = place in (0, 2)
    model = build(weights, get_spans=whole_docs)
    assert_same(model.predict([doc])[0], by_hand(model, words, [[0, 1, 2, 3, 4, 5]]))
    model = build(weights, get_spans=sentence_spans)
    assert_same(model.predict([doc])[0], by_hand(model, words, [[0, 1], [2, 3, 4, 5]]))


def test_default_spans_read_no_annotation(model):
    doc = NLP("A cat sat. It slept.")
    (before,) = model.predict([doc])
    for token in doc:
        token.is_sent_start = token.i in (0, 2)
        token.tag_, token.lemma_ = "X", "y"
    np.testing.assert_array_equal(model.predict([doc])[0], before)


def test_getter_that_forgets_docs(weights):
    model = build(weights, get_spans=lambda docs: [])
    with pytest.raises(ValueError, match="spans for 0 of 1 Docs"):
        model.predict([doc_of("a")])


def test_batches_keep_to_their_size(weights, monkeypatch):
    monkeypatch.setattr(encoder, "MAX_WORDS", 7)
    model = build(weights)
    steps = steps_of(model)
    model.predict([doc_of(*"abcd"), doc_of(*"abcdefghi"), doc_of(*"ab"), doc_of(*"abc")])
    # One span is longer than a batch, so it is alone, and read in pieces, the first of which holds the boundary.
    # The others are together, longest first.
    assert steps == [[1] * 8, [1] * 2, [2, 2, 2, 2, 1], [1] * 3]


def test_a_span_in_training_is_read_whole(weights, monkeypatch):
    """No gradient flows out of the state that a piece leaves."""
    monkeypatch.setattr(encoder, "MAX_WORDS", 7)
    model = build(weights, frozen=False)
    steps = steps_of(model)
    model.begin_update([doc_of(*"abcdefghi")])
    assert steps == [[1] * 10]


def steps_of(model):
    """A list that records each call of the network: how many sentences it reads at each step."""
    steps: list[list[int]] = []
    shim = shim_of(model)
    for bilm in (shim.bilm, shim.bilm_for_inference()):
        bilm.lstm.register_forward_pre_hook(lambda _, args: steps.append(args[2]))
    return steps


@pytest.mark.parametrize("overlap", [False, True])
def test_gradient_is_that_of_torch(weights, overlap, monkeypatch):
    """torch computes it through a graph over one sentence at a time."""
    monkeypatch.setattr(encoder, "MAX_WORDS", 3)
    sentences = [["a", "cat", "sat"], ["cat", "here"]]
    doc = doc_of(*sentences[0], *sentences[1])

    def get_spans(docs):
        return [[doc[0:3], doc[3:5], doc[3:5]] if overlap else [doc[0:3], doc[3:5]] for doc in docs]

    model, reference = (build(weights, frozen=False, get_spans=get_spans) for _ in range(2))
    d_layers = np.random.default_rng(0).normal(size=(3, 5, 10)).astype("f")

    layers, backprop = model.begin_update([doc, doc_of()])
    assert_same(layers[0], model.predict([doc])[0])
    assert backprop([d_layers, np.zeros((3, 0, 10), dtype="f")]) == []

    bilm = shim_of(reference).bilm
    whole = torch.cat([tiny.forward(bilm, [words]).layers for words in sentences], 1)
    whole.backward(torch.from_numpy(d_layers))
    for name, parameter in bilm.named_parameters():
        got = shim_of(model).bilm.get_parameter(name).grad
        assert (got is None) == (parameter.grad is None), name
        assert got is None or torch.allclose(got, parameter.grad, atol=1e-5), name


def test_gradient_with_any_strides(weights):
    """torch ends the process when it gets an array with negative strides."""
    model = build(weights, frozen=False)
    d_layers = np.random.default_rng(0).normal(size=(3, 4, 10)).astype("f")
    actual = []
    for gradient in (d_layers[::-1, ::-1, ::-1], d_layers[::-1, ::-1, ::-1].copy()):
        _, backprop = model.begin_update([doc_of(*"abcd")])
        backprop([gradient])
        bias = shim_of(model).bilm.lstm[0].bias
        actual.append(bias.grad.numpy().copy())
        bias.grad = None
    np.testing.assert_array_equal(*actual)


def test_training_sees_what_prediction_sees(weights):
    """Layers are rounded before a listener gets them; the gradient is that of the unrounded layers."""
    model, exact = (build(weights, frozen=False, dtype=dtype) for dtype in ("float16", "float32"))
    doc = doc_of(*"abcd")
    layers, backprop = model.begin_update([doc])
    assert layers[0].dtype == np.float16
    np.testing.assert_array_equal(layers[0], model.predict([doc])[0])
    d_layers = np.random.default_rng(0).normal(size=(3, 4, 10)).astype("f")
    backprop([d_layers])
    exact.begin_update([doc])[1]([d_layers])
    for got, expected in zip(*(shim_of(m).bilm.parameters() for m in (model, exact)), strict=True):
        np.testing.assert_array_equal(got.grad, expected.grad)


def test_frozen_training_builds_no_graph(weights):
    model = build(weights)
    docs = docs_of()
    layers, backprop = model.begin_update(docs)
    assert backprop(layers) == []
    assert all(parameter.grad is None for parameter in shim_of(model).bilm.parameters())


def test_options_come_from_the_config_not_from_the_bytes(weights):
    data = build(weights, get_spans=whole_docs).to_bytes()
    loaded = build(weights).from_bytes(data)
    words = ["a", ".", "b"]
    assert_same(loaded.predict([doc_of(*words)])[0], by_hand(loaded, words, [[0, 1], [2]]))


def test_width_is_a_dim_of_the_model(weights):
    """The width is known as soon as the weights are loaded."""
    model = build(weights)
    assert model.has_dim("nO") is None
    model.predict([doc_of("a")])
    assert model.get_dim("nO") == 10
    assert build(weights).from_bytes(model.to_bytes()).get_dim("nO") == 10
    random = BiLM_v1()
    configure(random, BiLMOptions(weights=None))
    random.initialize()
    assert random.get_dim("nO") == 1024


def test_it_looks_like_a_pytorch_model(model):
    shim = shim_of(model)
    assert isinstance(shim, PyTorchShim)
    # thinc's `device` needs a network, which an earlier test may not have loaded.
    shim.ensure_loaded()
    assert shim.device == torch.device("cpu")


def test_data_validation(model):
    """`spacy debug model` switches data validation on, which reads the annotations of `forward`."""
    with data_validation(True):
        build(shim_of(model).options.weights).initialize(X=docs_of())


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.filterwarnings("ignore:precision = ")
def test_the_default_device_of_torch_changes_nothing(weights, is_loaded, precision):
    """Users of a GPU set it for other networks. Here it is one without memory."""
    expected = build(weights, precision=precision).predict(docs_of())
    model = build(weights, precision=precision)
    if is_loaded:
        model.predict(docs_of(["Other words"]))
    with torch.device("meta"):
        found = model.predict(docs_of())
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


def test_the_network_stays_in_evaluation_mode_and_predicts_without_a_graph(weights):
    """`PyTorchShim` leaves the module in training mode, and changes the mode while other threads compute."""
    model, modes = build(weights, frozen=False), []
    shim = shim_of(model)
    for bilm in (shim.bilm, shim.bilm_for_inference()):
        bilm.lstm.register_forward_pre_hook(
            lambda *_, bilm=bilm: modes.append((bilm.training, torch.is_grad_enabled()))
        )
    model.begin_update([doc_of("a")])
    model.predict([doc_of("a")])
    assert modes == [(False, True), (False, False)] and not shim.bilm.training


def test_training_where_gradients_are_off(weights):
    model = build(weights, frozen=False)
    with torch.no_grad():
        layers, backprop = model.begin_update([doc_of("a", "cat")])
    backprop([np.ones_like(layers[0])])
    named = shim_of(model).bilm.named_parameters()
    assert all(parameter.grad is not None for _, parameter in named)


def test_means_of_two_and_of_one_and_none():
    target = torch.zeros(1, 4, 1)
    vectors = torch.tensor([[[1.0], [-0.0], [4.0]]], requires_grad=True)
    write_means(target, vectors, np.array([2, 0, 2]))
    assert target[0, :, 0].tolist() == [0, 0, 2.5, 0]
    assert torch.signbit(target[0, :, 0]).tolist() == [True, False, False, False]
    target.backward(torch.ones_like(target))
    assert vectors.grad[0, :, 0].tolist() == [0.5, 1, 0.5]


def test_vectors_are_added_in_their_order():
    """In any other order, the large numbers would not cancel before the small one comes."""
    target, big = torch.zeros(1, 1, 1), 3 * 2.0**30
    write_means(target, torch.tensor([[[big], [-big], [3.0]]]), np.array([0, 0, 0]))
    assert target.item() == 1
