"""The network is compared with the oracle for every combination of its options, and its copy for inference with the
network."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.token_encoder import TokenCache
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import DEFAULT_WEIGHTS, find_weights
from tests import tiny
from tests.oracle import Oracle

# The longest is neither first nor last; one word, no word, a word cut and a boundary within.
SENTENCES = [["cat"], ["the", "naïve", "cat"], [], ["extraordinarily", "</S>"]]
FILTERS = [((2, 3),), ((1, 2), (3, 3)), ((8, 1), (1, 1), (5, 2))]
ENCODERS = list(itertools.product(["relu", "tanh"], range(4), FILTERS))
LSTMS = list(
    itertools.product([1, 2, 3], [True, False], [True, False], [4, 5], [0.0, 1.0])
)  # layers, skip, clips, dim (5 is the projection), forget bias


def oracle_of(model):
    return Oracle(model.config, model.state_dict(), tiny.VOCABULARY[: model.config.n_words])


def assert_equals_the_oracle(model, sentences):
    oracle = oracle_of(model)
    got = tiny.read(model, sentences)
    start = 0
    for b, sentence in enumerate(sentences):
        expected, (h, c) = oracle.layers(sentence)
        part = got.layers[:, start : start + len(sentence)]
        np.testing.assert_allclose(part, expected, atol=1e-5)
        np.testing.assert_allclose(got.state[0][:, :, b], h, atol=1e-5)
        np.testing.assert_allclose(got.state[1][:, :, b], c, atol=1e-5)
        start += len(sentence)
    assert got.layers.shape == (model.config.layers + 1, start, model.config.width)


def options(layers, skip, clips, dim, forget_bias):
    return {
        "layers": layers,
        "skip": skip,
        "cell_clip": 0.3 if clips else None,
        "proj_clip": 0.2 if clips else None,
        "dim": dim,
        "forget_bias": forget_bias,
    }


@pytest.mark.parametrize("number", range(len(ENCODERS)))
def test_character_input_equals_the_oracle(number):
    """Every encoder is tested with two LSTMs, and every LSTM with one encoder, because their options are
    independent."""
    activation, highways, filters = ENCODERS[number]
    for lstm in LSTMS[number :: len(ENCODERS)]:
        config = tiny.config(
            activation=activation,
            highways=highways,
            filters=filters,
            max_characters=8,
            **options(*lstm),
        )
        assert_equals_the_oracle(tiny.bilm(config), SENTENCES)


@pytest.mark.parametrize("lstm", LSTMS)
def test_word_input_equals_the_oracle(lstm):
    assert_equals_the_oracle(tiny.bilm(tiny.config(n_words=8, **options(*lstm))), SENTENCES)


sentences = st.lists(
    st.lists(st.sampled_from(["a", "cat", "", "naïve", "<S>", "x" * 60]) | st.text(max_size=4), max_size=6),
    max_size=6,
)  # fmt: skip


@pytest.mark.parametrize("config", [tiny.config, tiny.lexicon_config])
@settings(max_examples=20)
@given(sentences, st.randoms())
def test_neighbors_and_order_do_not_matter(config, sentences, random):
    model = tiny.bilm(config(layers=3))
    alone = [tiny.read(model, [sentence]) for sentence in sentences]
    order = random.sample(range(len(sentences)), len(sentences))
    together = tiny.read(model, [sentences[b] for b in order])
    parts = together.layers.split([len(sentences[b]) for b in order], 1) if order else []
    for rank, b in enumerate(order):
        torch.testing.assert_close(parts[rank], alone[b].layers, atol=1e-6, rtol=0)
        for got, expected in zip(together.state, alone[b].state, strict=True):
            torch.testing.assert_close(got[:, :, rank], expected[:, :, 0], atol=1e-6, rtol=0)


def test_unused_and_repeated_types_do_not_matter():
    model = tiny.bilm(tiny.config())
    types = model.encode_words(["unused", "cat", "a", "cat"])
    (chunk,) = model.forward_chunks(types, np.array([3, 2, 1]), [3], 3)
    (plain,) = model.forward_chunks(*tiny.batch(model, [["cat", "a", "cat"]]), 3)
    for got, expected in zip(chunk.layers, plain.layers, strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("closing", [False, True])
def test_only_empty_sentences(closing):
    model = tiny.bilm(tiny.config())
    got = tiny.read(model, [[], []], closing=closing)
    _, (h, c) = oracle_of(model).layers([], closing=closing)
    assert got.layers.shape == (3, 0, 10)
    np.testing.assert_allclose(got.state[0][:, :, 1], h, atol=1e-6)
    np.testing.assert_allclose(got.state[1][:, :, 1], c, atol=1e-6)


@pytest.mark.parametrize("closing", [False, True])
def test_state_carried_across_batches(closing):
    """Row r of a batch starts with the final state of row r of the previous batch, as in bilm-tf."""
    model = tiny.bilm(tiny.config(layers=3))
    oracle = oracle_of(model)
    batches = [
        [["a", "cat"], ["sat"]],
        [[], ["the", "cat", "sat"]],
        [["one"], ["cat", "a"]],
    ]
    state, expected_state = None, [None, None]
    for batch in batches:
        got = tiny.read(model, batch, state, closing=closing)
        state = got.state
        parts = got.layers.split([len(sentence) for sentence in batch], 1)
        for row, sentence in enumerate(batch):
            expected, expected_state[row] = oracle.layers(sentence, expected_state[row], closing)
            np.testing.assert_allclose(parts[row], expected, atol=1e-5)


@settings(max_examples=40)
@given(sentences, st.integers(1, 12), st.booleans())
def test_chunks_equal_the_whole(sentences, max_words, from_zero):
    model = tiny.bilm(tiny.config(layers=3))
    shapes = [(3, 2, len(sentences), size) for size in (5, 7)]
    state = None if from_zero else tuple(torch.randn(shape) for shape in shapes)
    expected = tiny.read(model, sentences, state).layers
    got = torch.full_like(expected, torch.nan)
    half = model.config.projection
    for chunk in model.forward_chunks(*tiny.batch(model, sentences), max_words, state=state):
        assert len(chunk.layers) == 4
        for direction, words in enumerate(chunk.places):
            columns = slice(direction * half, (direction + 1) * half)
            for level, layer in enumerate(chunk.layers):
                got[level, words, columns] = layer[direction]
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_chunks_are_no_longer_than_asked():
    """In a chunk of a single sentence, each direction processes this number of words from its own end."""
    model = tiny.bilm(tiny.config())
    words = ["a", "cat", "sat", "on", "it"]
    chunks = list(model.forward_chunks(*tiny.batch(model, [words]), 2))
    assert [chunk.places.tolist() for chunk in chunks] == [
        [[0, 1], [4, 3]],
        [[2, 3], [2, 1]],
        [[4], [0]],
    ]


def test_gradients_equal_finite_differences():
    config = tiny.config(activation="tanh", cell_clip=3.0, proj_clip=3.0)
    model = tiny.bilm(config).double()
    torch.manual_seed(0)
    upstream = torch.randn_like(tiny.forward(model, SENTENCES).layers)
    (tiny.forward(model, SENTENCES).layers * upstream).sum().backward()
    for name, parameter in model.named_parameters():
        direction = torch.randn_like(parameter)
        sums = []
        for step in (1e-6, -2e-6):
            with torch.no_grad():
                parameter += step * direction
                sums.append(float((tiny.forward(model, SENTENCES).layers * upstream).sum()))
        with torch.no_grad():
            parameter += 1e-6 * direction
        slope = (sums[0] - sums[1]) / 2e-6
        assert float((parameter.grad * direction).sum()) == pytest.approx(slope, rel=1e-5), name


def test_dropout_acts_on_the_input_of_every_layer():
    model = tiny.bilm(tiny.config(cell_clip=None, proj_clip=None))
    batch = tiny.batch(model, SENTENCES)
    with torch.no_grad():
        torch.manual_seed(0)
        first = model.forward_packed(*batch, dropout=0.5)
        torch.manual_seed(0)
        again = model.forward_packed(*batch, dropout=0.5)
        plain = model.forward_packed(*batch)
    for one, other in zip(first.outputs, again.outputs, strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(first.outputs[0], plain.outputs[0])


BATCH = [["a", "cat", "sat"], ["naïve"], [], ["鳥", "sat", "a", "cat", "a", "cat"], ["cat"] * 9]
CONFIGS = [tiny.config(), tiny.config(layers=3, skip=False, cell_clip=None, proj_clip=None),
           tiny.config(dim=5, square_projections=False), tiny.config(n_words=8),
           tiny.lexicon_config()]  # fmt: skip


# Relative to the largest magnitude of a layer, at least 1: for the tiny networks, whose numbers are of the order of 1.
BOUNDS = {"float32": 1e-5, "bfloat16": 3e-2}


def difference(found, expected):
    return float((found - expected).abs().max()) / max(float(expected.abs().max()), 1.0)


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("config", CONFIGS)
def test_inference(config, precision):
    model = tiny.bilm(config)
    other = model.prepare_for_inference(precision)
    for closing in (False, True):
        expected = tiny.read(model, BATCH, closing=closing)
        found = tiny.read(other, BATCH, closing=closing)
        assert difference(found.layers, expected.layers) <= BOUNDS[precision]
        for got, wanted in zip(found.state, expected.state, strict=True):
            assert difference(got, wanted) <= 3 * BOUNDS[precision]


def test_a_sentence_does_not_depend_on_the_others_in_bfloat16():
    model = tiny.bilm(tiny.config()).prepare_for_inference("bfloat16")
    together = tiny.read(model, BATCH).layers.split([len(s) for s in BATCH], 1)
    for sentence, expected in zip(BATCH, together, strict=True):
        if sentence:
            alone = tiny.read(model, [sentence]).layers
            assert difference(alone, expected) <= BOUNDS["bfloat16"]


def test_bundled_model_in_bfloat16():
    """Compare every token in every layer of trained weights."""
    bilm = Weights.load(find_weights(DEFAULT_WEIGHTS)).without_head().build_bilm().eval()
    text = "The quick brown fox sat by the bank of the river , and did n't say a word . LOL :-)"
    sentences = [
        text.split(),
        text.lower().split()[4:],
        ["Hello"],
        ["http://a.example/x?y=1", "!!"],
    ]
    expected = tiny.read(bilm, sentences).layers
    found = tiny.read(bilm.prepare_for_inference("bfloat16"), sentences).layers
    assert torch.nn.functional.cosine_similarity(found, expected, dim=-1).min() >= 0.9999


def test_word_vectors_have_the_precision_too():
    """On a CPU, bfloat16 also applies to the dense layers of the token encoder."""
    bilm = Weights.load(find_weights(DEFAULT_WEIGHTS)).without_head().build_bilm().eval()
    words = ["river", "naïve", "http://a.example/x?y=1", "!!", "DON'T", "a" * 60]
    with torch.no_grad():
        expected = bilm.encoder.vectors(words)
        prepared = {name: bilm.prepare_for_inference(name).encoder for name in BOUNDS}
        found = {
            name: torch.from_numpy(encoder.vectors(words)) for name, encoder in prepared.items()
        }
    assert torch.equal(found["float32"], expected)
    assert found["bfloat16"].dtype == torch.float32
    assert not torch.equal(found["bfloat16"], expected)
    assert torch.nn.functional.cosine_similarity(found["bfloat16"], expected).min() > 0.9999


def test_the_network_itself_is_as_it_was():
    model = tiny.bilm(tiny.config())
    names = list(model.state_dict())
    model.prepare_for_inference("bfloat16")
    assert list(model.state_dict()) == names and isinstance(model, BiLM)
    layers = tiny.forward(model, BATCH).layers
    assert layers.requires_grad


def test_a_word_table_needs_no_cache():
    assert isinstance(tiny.bilm(tiny.config()).prepare_for_inference("float32").encoder, TokenCache)
    model = tiny.bilm(tiny.config(n_words=8))
    assert model.prepare_for_inference("float32").encoder is model.encoder


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize("sentence", [["a"], ["a", "cat"], ["cat"] * 9])
def test_autocast_changes_nothing_but_the_token_encoder(precision, sentence):
    model = tiny.bilm(tiny.config())
    expected = tiny.read(model, [sentence]).layers
    with torch.autocast("cpu", torch.bfloat16):
        found = tiny.read(model.prepare_for_inference(precision), [sentence]).layers
    assert found.dtype == torch.float32
    assert difference(found, expected) <= max(BOUNDS[precision], BOUNDS["bfloat16"])
