"""`start = "warm"`: every sequence starts from the state in the weights file, also after saving, copying and
training."""

import copy

import numpy as np
import pytest
import spacy
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc

from spacy_elmo.bilm.weights import StartState, Weights
from spacy_elmo.pipeline.encode.encoder import averages, shim_of
from tests import pipelines, tiny
from tests.oracle import Oracle
from tests.pipelines import TEXTS, assert_same

CONFIG = tiny.config(layers=3)
GENERATOR = torch.Generator().manual_seed(1)
START = StartState(
    torch.randn(3, 2, 5, generator=GENERATOR), torch.randn(3, 2, 7, generator=GENERATOR)
)
ZEROS = StartState(torch.zeros(3, 2, 5), torch.zeros(3, 2, 7))
SENTENCES = [["A", "cat", "sat", "here", "."], ["No", "."], ["It", "rained"]]
WARM = {"start": "warm"}


def write(folder, start, dtype=torch.float32):
    path = folder / "w.safetensors"
    Weights.from_bilm(
        tiny.bilm(CONFIG), card={"language": "en"}, start_state=start, dtype=dtype
    ).save(path)
    return path


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return write(tmp_path_factory.mktemp("with"), START)


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    return write(tmp_path_factory.mktemp("without"), None)


@pytest.fixture(scope="module")
def expected(weights):
    """The layers of TEXTS, warm."""
    return pipelines.layers(pipelines.blank(weights, **WARM), TEXTS)


def doc_of(nlp):
    return Doc(nlp.vocab, words=[word for sentence in SENTENCES for word in sentence])


def shim(nlp):
    return shim_of(nlp.get_pipe("elmo").model)


def assert_all_close(some, others):
    for one, other in zip(some, others, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("max_words", [1, 2, 7, 4096])
def test_every_sentence_equals_the_oracle(weights, max_words, monkeypatch):
    """Computed at once and in a stream; with one sentence in a batch, and with several."""
    monkeypatch.setattr("spacy_elmo.pipeline.encode.encoder.MAX_WORDS", max_words)
    nlp = pipelines.blank(weights, start="warm")
    oracle = Oracle(CONFIG, tiny.bilm(CONFIG).state_dict())
    state = (START.h.numpy(), START.c.numpy())
    layers = np.concatenate([oracle.layers(sentence, state)[0] for sentence in SENTENCES], 1)
    doc = nlp(doc_of(nlp))
    assert_allclose(doc._.elmo_layers, layers, atol=1e-5)
    (average,) = averages(nlp.get_pipe("elmo").model, [doc_of(nlp)])
    assert_allclose(average, layers.mean(0), atol=1e-5)
    # Layer 0 knows no context, all others do.
    cold = pipelines.blank(weights)(doc_of(nlp))._.elmo_layers
    assert_same(cold[:1], doc._.elmo_layers[:1])
    assert (np.abs(cold - doc._.elmo_layers)[1:].max(axis=(1, 2)) > 1e-2).all()


def test_zero_is_the_default_and_overlooks_the_state(weights, without):
    for options in ({}, {"start": "zero"}):
        one, other = pipelines.blank(weights, **options), pipelines.blank(without, **options)
        assert_all_close(pipelines.layers(one, TEXTS), pipelines.layers(other, TEXTS))
        assert shim(one).digest() == shim(other).digest()


@pytest.mark.parametrize(
    "use",
    [
        lambda nlp: nlp("A cat."),
        lambda nlp: nlp.initialize(),
        lambda nlp: nlp.to_bytes(),
        lambda nlp: copy.deepcopy(nlp.get_pipe("elmo")),
    ],
)
def test_file_without_a_start_state(without, use):
    nlp = pipelines.blank(without, **WARM)
    with pytest.raises(ValueError) as error:
        use(nlp)
    for text in (f"{without} has no start state", "elmo convert FORMAT IN OUT_FILE --warm TEXT"):
        assert text in str(error.value)


def test_random_weights_have_no_start_state():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": None, **WARM})
    with pytest.raises(ValueError, match="a random biLM has no start state"):
        nlp.initialize()


@pytest.mark.parametrize("saved", ["zero", "warm"])
def test_saved_pipeline_needs_no_file_and_keeps_the_state(tmp_path, saved, expected):
    """Also if the state was not used before, so that loading with `start = "warm"` works."""
    path = write(tmp_path, START)
    nlp = pipelines.blank(path, start=saved)
    nlp.to_disk(tmp_path / "nlp")
    path.unlink()
    loaded = spacy.load(tmp_path / "nlp", config={"components.elmo.start": "warm"})
    assert_all_close(pipelines.layers(loaded, TEXTS), expected)
    from_bytes = pipelines.blank("gone", **WARM).from_bytes(nlp.to_bytes())
    assert_all_close(pipelines.layers(from_bytes, TEXTS), expected)
    assert spacy.load(tmp_path / "nlp").config["components"]["elmo"]["start"] == saved


def test_saved_pipeline_without_a_start_state(tmp_path, without):
    pipelines.blank(without).to_disk(tmp_path)
    with pytest.raises(ValueError, match="the saved pipeline has no start state"):
        spacy.load(tmp_path, config={"components.elmo.start": "warm"})


def test_float16_file(tmp_path):
    """The saved state takes half of the bytes, and is exact."""
    nlp = pipelines.blank(write(tmp_path, START, torch.float16), **WARM)
    saved = Weights.from_bytes(shim(nlp).to_bytes())
    assert saved.start_state.h.dtype == saved.tensors["lstm.0.bias"].dtype == torch.float16
    loaded = pipelines.blank("gone", **WARM).from_bytes(nlp.to_bytes())
    for one, other in zip(*(pipelines.layers(p, TEXTS) for p in (nlp, loaded)), strict=True):
        assert_array_equal(one, other)


def test_start_state_that_float16_does_not_hold_is_saved_in_full(tmp_path):
    weights = Weights.from_bilm(tiny.bilm(CONFIG), start_state=START, dtype=torch.float16)
    weights.start_state = START
    weights.save(tmp_path / "w.safetensors")
    saved = Weights.from_bytes(shim(pipelines.blank(tmp_path / "w.safetensors", **WARM)).to_bytes())
    assert torch.equal(saved.start_state.h, START.h) and torch.equal(saved.start_state.c, START.c)


@pytest.mark.parametrize("frozen", [True, False])
def test_replaced_listener_starts_warm(tmp_path, frozen):
    path = write(tmp_path, START)
    nlp = pipelines.listening(path, frozen=frozen, **WARM)
    pipelines.trained(nlp, 3)
    docs = list(nlp.pipe(TEXTS))
    expected = nlp.get_pipe("tagger").model.get_ref("tok2vec").predict(docs)
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path / "nlp")
    path.unlink()
    loaded = spacy.load(tmp_path / "nlp")
    assert loaded.config["components"]["tagger"]["model"]["tok2vec"]["start"] == "warm"
    for one in (nlp, loaded):
        tok2vec = one.get_pipe("tagger").model.get_ref("tok2vec")
        got = tok2vec.predict([one.make_doc(text) for text in TEXTS])
        for vectors, wanted in zip(got, expected, strict=True):
            assert_allclose(vectors, wanted, atol=1e-5)


def test_training_starts_warm_too(weights):
    """The layers are those of prediction; the gradient is that of the network from this state."""
    nlp = pipelines.blank(weights, frozen=False, **WARM)
    model, doc = nlp.get_pipe("elmo").model, doc_of(nlp)
    (layers,), backprop = model.begin_update([doc])
    assert_same(layers, model.predict([doc])[0])
    upstream = np.random.default_rng(0).normal(size=layers.shape).astype("f")
    backprop([upstream])
    network = tiny.bilm(CONFIG)
    state = START.for_batch(len(SENTENCES), torch.device("cpu"))
    output = tiny.forward(network, SENTENCES, state=state).layers
    output.backward(torch.from_numpy(upstream))
    gradients = dict(pipelines.bilm(nlp).named_parameters())
    for name, parameter in network.named_parameters():
        assert_allclose(gradients[name].grad, parameter.grad, atol=1e-5)


def test_training_leaves_the_state(weights):
    nlp = pipelines.listening(weights, **WARM)
    before = pipelines.parameters(nlp)
    optimizer = pipelines.trained(nlp, 0)
    pipelines.awaken(nlp, "tagger")
    pipelines.step(nlp, optimizer)
    assert pipelines.changed(before, pipelines.parameters(nlp)) == before.keys()
    saved = Weights.from_bytes(shim(nlp).to_bytes()).start_state
    assert torch.equal(saved.h, START.h) and torch.equal(saved.c, START.c)
