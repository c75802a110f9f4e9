"""The exported network in onnxruntime computes the same layers as our network."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.onnx import export
from spacy_elmo.weight_names import DEFAULT_WEIGHTS, find_weights
from tests import tiny

WORDS = ["a", "cat", "Cat", "naïve", "鳥", "🙂", "extraordinarily", "unheard-of", "</S>", ""]
SENTENCES = [["a", "cat", "sat", "naïve"], ["鳥"], [], ["extraordinarily", "cat"]]


def exported(model, path):
    """Return an onnxruntime session of the exported file, after a check by ONNX."""
    export(weights_of(model), path, force=True)
    onnx.checker.check_model(path, full_check=True)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def weights_of(model):
    names = tiny.LEXICON if model.config.is_many_langs else tiny.VOCABULARY
    return Weights.from_bilm(
        model, vocabulary=names[: model.config.n_words], card={"language": "en"}
    )


def run(session, model, sentences, *, words=None, filler=0):
    """Return layers (L+1, B, T, 2P), where T is `words` or the longest length. `filler` is the id after the end of a
    sentence."""
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    words = max(lengths) if words is None else words
    shape = (len(sentences), words, *model.token_ids([]).shape[1:])
    ids = np.full(shape, filler, dtype=np.int64)
    for row, sentence in zip(ids, sentences, strict=True):
        row[: len(sentence)] = model.token_ids(sentence)
    (layers,) = session.run(["layers"], {"ids": ids, "lengths": lengths})
    return layers


def assert_ours(layers, model, sentences):
    expected = tiny.read(model, sentences).layers.numpy()
    flat = [layers[:, row, : len(sentence)] for row, sentence in enumerate(sentences)]
    np.testing.assert_allclose(np.concatenate(flat, 1), expected, rtol=0, atol=1e-5)
    for row, sentence in enumerate(sentences):
        assert not layers[:, row, len(sentence) :].any()


KINDS = [
    tiny.config(dim=5, layers=3, skip=False, activation="tanh", cell_clip=None, proj_clip=None),
    tiny.config(layers=3, skip=True, cell_clip=0.2, proj_clip=0.2),
    tiny.config(layers=1, skip=False, cell_clip=0.2, proj_clip=None),
    tiny.config(layers=1, skip=True, activation="tanh", cell_clip=None, proj_clip=0.2),
    tiny.config(highways=0, forget_bias=0.0),
    tiny.config(dim=5, square_projections=True, filters=((1, 5),)),
    tiny.config(filters=((12, 5),), highways=2),
    tiny.config(n_words=8),
    tiny.lexicon_config(),
    tiny.lexicon_config(n_symbols=0),
    tiny.lexicon_config(n_words=0, word_dim=0),
]


@pytest.mark.parametrize("config", KINDS)
def test_every_kind(tmp_path, config):
    model = tiny.bilm(config)
    session = exported(model, tmp_path / "elmo.onnx")
    assert_ours(run(session, model, SENTENCES), model, SENTENCES)
    facts = session.get_modelmeta().custom_metadata_map
    assert BiLMConfig.from_dict(json.loads(facts["config"])) == config
    assert json.loads(facts["vocabulary"]) == weights_of(model).vocabulary
    assert json.loads(facts["alphabet"]) == model.encoder.alphabet
    assert json.loads(facts["card"]) == {"language": "en"}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    model = tiny.bilm(tiny.config())
    return exported(model, tmp_path_factory.mktemp("onnx") / "elmo.onnx"), model


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=9), min_size=1, max_size=6),
    st.integers(0, 4),
    st.integers(0, 260),
)
def test_any_batch(small, sentences, more, filler):
    """Neither the ids after the end of a sentence nor their number matter."""
    session, model = small
    words = max(map(len, sentences)) + more
    layers = run(session, model, sentences, words=words, filler=filler)
    assert layers.shape == (3, len(sentences), words, 10)
    assert_ours(layers, model, sentences)


def test_float16_weights_with_a_head(tmp_path):
    model = tiny.bilm(tiny.config())
    head = Head(len(tiny.VOCABULARY), 5)
    low = Weights.from_bilm(model, head, vocabulary=tiny.VOCABULARY, dtype=torch.float16)
    alone = Weights.from_bilm(low.build_bilm())
    for name, weights in (("low", low), ("alone", alone)):
        assert export(weights, tmp_path / name) == [tmp_path / name]
    assert (tmp_path / "low").read_bytes() == (tmp_path / "alone").read_bytes()


DOCS = Path(__file__).parents[2] / "docs" / "onnx.md"


def test_documentation(tmp_path, monkeypatch):
    """The program in the documentation computes the layers of the bundled model."""
    weights = Weights.load(find_weights(DEFAULT_WEIGHTS))
    export(weights, tmp_path / "elmo.onnx")
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf8"), re.DOTALL)
    actual = {}
    exec(program, actual)
    assert_ours(actual["layers"], weights.build_bilm(), actual["sentences"])
    np.testing.assert_allclose(actual["elmo"], actual["layers"].mean(0))
    for word in ["x" * 60, "é" * 30, "", "\u3000", "<S>", "</S>", "<UNK>"]:
        np.testing.assert_array_equal(
            actual["spell"](word), weights.build_bilm().token_ids([word])[0]
        )


def test_what_one_file_cannot_hold(tmp_path):
    tensor = torch.empty(500_000_001, device="meta")
    with pytest.raises(ValueError, match="2,000,000,004 bytes .* 2,000,000,000"):
        export(Weights(tiny.config(), {"large": tensor}), tmp_path / "elmo.onnx")
    assert list(tmp_path.iterdir()) == []
