"""Conversion of bilm-tf's training folder: names, head, vocabulary, and every mismatch between its files."""

import json

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.api import read_model
from spacy_elmo.converters.bilm_tf.checkpoint_conversion import convert, recognize
from tests import tiny
from tests.converters import foreign, tensor_bundle
from tests.converters.foreign import assert_same_tensors

WORDS = tiny.VOCABULARY


def head_of(model, words=WORDS):
    torch.manual_seed(3)
    head = Head(len(words), model.config.projection)
    with torch.no_grad():
        head.bias.normal_()
    return head


def variables_of(model, head):
    """Return the variables that bilm-tf saves: the model, the optimizer's slots, and the training state."""
    variables = {}
    for name, array in foreign.arrays_of(model).items():
        if name.startswith("RNN_"):
            name = name.replace("/RNN/MultiRNNCell/Cell", "/rnn/multi_rnn_cell/cell_")
            name = name.replace("/LSTMCell/W_P_0", "/lstm_cell/projection/kernel")
            name = name.replace("/LSTMCell/W_0", "/lstm_cell/kernel")
            name = name.replace("/LSTMCell/B", "/lstm_cell/bias")
        variables[f"lm/{name}"] = array
    variables["lm/softmax/W"] = head.weight.detach().numpy()
    variables["lm/softmax/b"] = head.bias.detach().numpy()[:, 0]
    slots = {f"{name}/Adagrad": np.ones_like(array) for name, array in variables.items()}
    state = {"global_step": np.float32(7).reshape(()), "train_perplexity": np.zeros((), np.float32)}
    return {**variables, **slots, **state}


def options_of(config):
    """Return options.json as bilm-tf writes it when training starts."""
    options = foreign.options_of(config)
    if not config.n_words:
        options["char_cnn"]["n_characters"] = 261
    return options | {"bidirectional": True, "n_tokens_vocab": len(WORDS), "unroll_steps": 20}


def write(folder, model, variables=None, step=7, **keywords):
    variables = variables_of(model, head_of(model)) if variables is None else variables
    (folder / "options.json").write_text(json.dumps(options_of(model.config)), "utf8")
    tensor_bundle.write(folder / f"model.ckpt-{step}", variables, **keywords)
    return folder


def write_words(path, words=WORDS):
    path.write_text("".join(f"{word}\n" for word in words), "utf8")
    return path


@pytest.fixture
def model():
    return tiny.bilm(tiny.config())


def test_model_and_head(tmp_path, model):
    write(tmp_path, model)
    words = write_words(tmp_path / "words")
    conversion = convert(tmp_path, vocabulary=words)
    weights = conversion.weights
    assert weights.config == model.config
    assert_same_tensors(weights, model)
    assert weights.vocabulary == WORDS
    head = head_of(model)
    assert torch.equal(weights.build_head().weight, head.weight)
    assert torch.equal(weights.build_head().bias, head.bias)
    assert weights.card == {"converted_from": "model.ckpt-7.index and options.json (bilm-tf)"}
    names = ["options.json", "model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001", "words"]
    assert conversion.files == [tmp_path / name for name in names]
    assert conversion.notes == [
        "checkpoint model.ckpt-7",
        "head: softmax over the 8 words of words",
    ]
    # And through our own strict check.
    again = Weights.from_bytes(weights.to_bytes())
    assert_same_tensors(again, model)
    assert torch.equal(again.build_head().weight, head.weight)


@pytest.mark.parametrize(
    "fields",
    [
        {"dim": 5},
        {"layers": 3, "skip": False},
        {"highways": 0, "filters": ((3, 5),)},
    ],
)
def test_other_shapes(tmp_path, fields):
    """Models without W_P_0, with more layers, or without highways and CNN_proj."""
    model = tiny.bilm(tiny.config(**fields))
    write_words(write(tmp_path, model, shards=2) / "vocab.txt")
    weights = convert(tmp_path).weights
    assert weights.config == model.config
    assert_same_tensors(weights, model)
    assert torch.equal(weights.build_head().weight, head_of(model).weight)


def test_word_input(tmp_path):
    model = tiny.bilm(tiny.config(n_words=8))
    write_words(write(tmp_path, model) / "vocab.txt")
    weights = convert(tmp_path).weights
    assert weights.config.n_words == 8
    assert_same_tensors(weights, model)
    sentences = [["a", "cat", "unheard"]]
    expected = tiny.read(model, sentences).layers
    assert torch.equal(tiny.read(weights.build_bilm(), sentences).layers, expected)


def test_one_layer(tmp_path):
    """With one layer, TensorFlow writes no `multi_rnn_cell/cell_0`."""
    model = tiny.bilm(tiny.config(layers=1))
    variables = {
        name.replace("/multi_rnn_cell/cell_0", ""): array
        for name, array in variables_of(model, head_of(model)).items()
    }
    write(tmp_path, model, variables)
    assert_same_tensors(convert(tmp_path).weights, model)


def test_softmax_that_is_the_table_of_words(tmp_path):
    """In bilm-tf this is the option share_embedding_softmax."""
    model = tiny.bilm(tiny.config(n_words=8))
    variables = variables_of(model, head_of(model))
    for name in ("lm/softmax/W", "lm/softmax/W/Adagrad"):
        del variables[name]
    write_words(write(tmp_path, model, variables) / "vocab.txt")
    weights = convert(tmp_path).weights
    assert torch.equal(weights.build_head().weight, model.encoder.words)
    # They are two tensors from here on: a file could not hold the same one twice.
    assert torch.equal(
        Weights.from_bytes(weights.to_bytes()).build_head().weight, model.encoder.words
    )


def test_without_a_vocabulary(tmp_path, model):
    """Without a vocabulary there is no head, so its numbers, the larger part of a checkpoint, are not read."""
    write(tmp_path, model, changed={"lm/softmax/W": {"crc": 0}, "lm/softmax/b": {"crc": 0}})
    conversion = convert(tmp_path)
    assert_same_tensors(conversion.weights, model)
    assert conversion.weights.build_head() is None
    assert conversion.weights.vocabulary == []
    assert any("no head: the softmax needs the vocabulary" in note for note in conversion.notes)


def test_vocabulary_is_found_by_its_size(tmp_path, model):
    write(tmp_path, model)
    write_words(tmp_path / "notes.txt", WORDS[:3])
    write_words(tmp_path / "others.txt", list("abcdefgh"))
    (tmp_path / "latin.txt").write_bytes("naïve".encode("latin1"))
    write_words(tmp_path / "vocab.txt")
    conversion = convert(tmp_path)
    assert conversion.files[-1] == tmp_path / "vocab.txt"
    assert conversion.weights.vocabulary == WORDS
    write_words(tmp_path / "vocab2.txt")
    assert convert(tmp_path).weights.build_head() is None


def test_slots_are_not_read(tmp_path, model):
    variables = variables_of(model, head_of(model))
    changed = {name: {"crc": 0} for name in variables if "Adagrad" in name}
    assert_same_tensors(convert(write(tmp_path, model, changed=changed)).weights, model)


@pytest.mark.parametrize("name", ["model.ckpt", "model.ckpt-1250"])
def test_old_format(tmp_path, model, name):
    """A checkpoint of format V1 has no index. It is named by its path or its folder."""
    write(tmp_path, model)
    index, data = tmp_path / "model.ckpt-7.index", tmp_path / "model.ckpt-7.data-00000-of-00001"
    index.rename(tmp_path / name)
    data.unlink()
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(ValueError, match=f"{name} .* format V1"):
            convert(path)
        assert recognize(path) == "it is a TensorFlow checkpoint of the old format V1"
        with pytest.raises(ValueError, match=r"format V1(?s:.*) bilm-tf"):
            read_model(path)


def test_float16_checkpoint(tmp_path, model):
    """It raises no NumPy warning (warnings are errors here)."""
    write_words(tmp_path / "words.txt")
    variables = variables_of(model, head_of(model))
    halves = {
        name: array.astype(np.float16) if array.dtype == np.float32 else array
        for name, array in variables.items()
    }
    write(tmp_path, model, halves)
    assert convert(tmp_path).weights.config == model.config


def test_float16(tmp_path, model):
    write_words(write(tmp_path, model) / "vocab.txt")
    tensors = convert(tmp_path, dtype=torch.float16).weights.tensors
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    assert torch.equal(tensors["head.weight"], head_of(model).weight.half())


def test_newest_checkpoint_and_another(tmp_path, model):
    other = tiny.bilm(tiny.config(), seed=1)
    write(tmp_path, other, step=6)
    write(tmp_path, model, step=10)
    assert_same_tensors(convert(tmp_path).weights, model)
    assert_same_tensors(convert(tmp_path / "model.ckpt-6.index").weights, other)


def test_options_of_another_folder(tmp_path, model):
    write(tmp_path, model)
    (tmp_path / "options.json").rename(tmp_path / "other.json")
    with pytest.raises(FileNotFoundError, match=r"options.json.* is missing.*--options"):
        convert(tmp_path)
    assert_same_tensors(convert(tmp_path, options=tmp_path / "other.json").weights, model)


def test_vocabulary_that_does_not_fit(tmp_path, model):
    path = write_words(write(tmp_path, model) / "words.txt", WORDS[:7])
    with pytest.raises(ValueError, match="words.txt has 7 words, but the softmax has 8 rows. Give"):
        convert(tmp_path, vocabulary=path)


@pytest.mark.parametrize(
    "changed, problem",
    [
        ({"lm/softmax/W": tensor_bundle.float32(8, 4)}, r"  softmax/W: shape \[8, 4\], expected \[8, 5\]"),
        ({"lm/softmax/b": tensor_bundle.float32(8, 1)}, r"  softmax/b: shape \[8, 1\], expected \[8\]"),
        ({"lm/softmax/W": None}, "  softmax/W: missing"),
        ({"lm/softmax/b": None}, "no variable lm/softmax/b, the bias of the softmax"),
    ],
)  # fmt: skip
def test_softmax_that_does_not_fit(tmp_path, model, changed, problem):
    variables = {**variables_of(model, head_of(model)), **changed}
    gone = tuple(name for name, array in changed.items() if array is None)
    variables = {n: a for n, a in variables.items() if not (gone and n.startswith(gone))}
    write_words(write(tmp_path, model, variables) / "vocab.txt")
    with pytest.raises(ValueError, match=problem):
        convert(tmp_path)


def test_word_input_without_its_vocabulary(tmp_path):
    with pytest.raises(ValueError, match="word input needs a vocabulary"):
        convert(write(tmp_path, tiny.bilm(tiny.config(n_words=8))))


def test_checkpoint_of_another_program(tmp_path, model):
    write(tmp_path, model, {"bert/embeddings/word_embeddings": tensor_bundle.float32(3)})
    with pytest.raises(ValueError, match=" lm/. .* bert/embeddings"):
        convert(tmp_path)
    assert recognize(tmp_path) is None


def test_neither_folder_nor_index(tmp_path):
    with pytest.raises(NotADirectoryError, match="is not a TensorFlow checkpoint"):
        convert(tmp_path / "nowhere")


def test_recognize(tmp_path, model):
    assert recognize(tmp_path) is None
    assert recognize(tmp_path / "nowhere") is None
    write(tmp_path, model)
    reason = recognize(tmp_path)
    assert reason.startswith("model.ckpt-7.index is a TensorFlow checkpoint with 27 variables")
    assert recognize(tmp_path / "model.ckpt-7.index") == reason
    (tmp_path / "model.ckpt-7.index").write_bytes(b"anything")
    assert recognize(tmp_path) is None
