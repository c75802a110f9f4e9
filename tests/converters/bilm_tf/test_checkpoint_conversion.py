"""Conversion of bilm-tf's training folder: names, head, vocabulary, and every mismatch between its files."""

import json

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.api import read_model
from spacy_elmo.converters.bilm_tf.checkpoint_conversion import convert, recognize
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.corpus.prepare import prepare
from spacy_elmo.pretraining.training.initial_weights import initial_model, read_given_weights
from tests import tiny
from tests.converters import foreign, tensor_bundle

WORDS = tiny.VOCABULARY
CELL = "lm/RNN_{}/rnn/multi_rnn_cell/cell_{}/lstm_cell/"


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


def assert_same_model(weights, model):
    expected = model.state_dict()
    got = {n: t for n, t in weights.tensors.items() if not n.startswith("head.")}
    assert got.keys() == expected.keys()
    for name, tensor in got.items():
        assert torch.equal(tensor, expected[name]), name


@pytest.fixture
def model():
    return tiny.bilm(tiny.config())


def test_model_and_head(tmp_path, model):
    write(tmp_path, model)
    words = write_words(tmp_path / "words")
    conversion = convert(tmp_path, vocabulary=words)
    weights = conversion.weights
    assert weights.config == model.config
    assert_same_model(weights, model)
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
    assert_same_model(again, model)
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
    assert_same_model(weights, model)
    assert torch.equal(weights.build_head().weight, head_of(model).weight)


def test_word_input(tmp_path):
    model = tiny.bilm(tiny.config(n_words=8))
    write_words(write(tmp_path, model) / "vocab.txt")
    weights = convert(tmp_path).weights
    assert weights.config.n_words == 8
    assert_same_model(weights, model)
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
    assert_same_model(convert(tmp_path).weights, model)


def test_one_direction(tmp_path, model):
    variables = {
        name.replace("RNN_0/", ""): array
        for name, array in variables_of(model, head_of(model)).items()
        if "RNN_1/" not in name
    }
    with pytest.raises(ValueError, match="no RNN_1"):
        convert(write(tmp_path, model, variables))


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
    assert_same_model(conversion.weights, model)
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
    assert_same_model(convert(write(tmp_path, model, changed=changed)).weights, model)


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


def test_bfloat16_and_float16_checkpoints(tmp_path, model):
    """bfloat16 becomes float32 with the same value. float16 raises no NumPy warning (warnings are errors here)."""
    write_words(tmp_path / "words.txt")
    variables = variables_of(model, head_of(model))
    halves = {
        name: array.astype(np.float16) if array.dtype == np.float32 else array
        for name, array in variables.items()
    }
    write(tmp_path, model, halves)
    assert convert(tmp_path).weights.config == model.config
    rounded = {
        name: (array.view(np.uint32) >> 16).astype(np.uint16).view(np.float16)
        if array.dtype == np.float32
        else array
        for name, array in variables.items()
    }
    changed = {name: {"dtype": 14} for name, a in variables.items() if a.dtype == np.float32}
    write(tmp_path, model, rounded, changed=changed)
    weights = convert(tmp_path).weights
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(weights.tensors[name], tensor, rtol=2**-7, atol=0)


def test_float16(tmp_path, model):
    write_words(write(tmp_path, model) / "vocab.txt")
    tensors = convert(tmp_path, dtype=torch.float16).weights.tensors
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    assert torch.equal(tensors["head.weight"], head_of(model).weight.half())


def test_newest_checkpoint_and_another(tmp_path, model):
    other = tiny.bilm(tiny.config(), seed=1)
    write(tmp_path, other, step=6)
    write(tmp_path, model, step=10)
    assert_same_model(convert(tmp_path).weights, model)
    assert_same_model(convert(tmp_path / "model.ckpt-6.index").weights, other)


def test_options_of_another_folder(tmp_path, model):
    write(tmp_path, model)
    (tmp_path / "options.json").rename(tmp_path / "other.json")
    with pytest.raises(FileNotFoundError, match=r"options.json.* is missing.*--options"):
        convert(tmp_path)
    assert_same_model(convert(tmp_path, options=tmp_path / "other.json").weights, model)


@pytest.mark.parametrize(
    "words, problem",
    [
        (WORDS[:7], "has 7 words, but the softmax has 8 rows. Give the vocabulary of the training"),
        (["<S>", *"abcdefg"], "does not contain </S>, <UNK>"),
    ],
)
def test_vocabulary_that_does_not_fit(tmp_path, model, words, problem):
    path = write_words(write(tmp_path, model) / "words.txt", words)
    with pytest.raises(ValueError, match=f"words.txt {problem}"):
        convert(tmp_path, vocabulary=path)


def test_every_mismatch_is_named(tmp_path, model):
    variables = variables_of(model, head_of(model))
    del variables[CELL.format(0, 1) + "bias"]
    variables["lm/char_embed"] = np.zeros((262, 3), np.float32)
    variables["lm/CNN_proj/b_proj"] = np.full(5, np.nan, np.float32)
    variables["lm/CNN/b_cnn_0"] = np.zeros(2, np.int32)
    variables["lm/hello"] = np.zeros(1, np.float32)
    with pytest.raises(ValueError) as error:
        convert(write(tmp_path, model, variables))
    first, *problems = str(error.value).split("\n")
    assert str(tmp_path / "model.ckpt-7.index") in first
    for problem in (
        "Cell1/LSTMCell/B: missing",
        "char_embed: shape [262, 3], expected [261, 3]",
        "CNN_proj/b_proj: contains values that are not finite",
        "CNN/b_cnn_0: type int32",
        "hello: unexpected",
    ):
        assert any(problem in line for line in problems)


@pytest.mark.parametrize(
    "changed, problem",
    [
        ({"lm/softmax/W": tensor_bundle.float32(8, 4)}, r"  softmax/W: shape \[8, 4\], expected \[8, 5\]"),
        ({"lm/softmax/b": tensor_bundle.float32(8, 1)}, r"  softmax/b: shape \[8, 1\], expected \[8\]"),
        ({"lm/softmax/W": np.full((8, 5), np.inf, np.float32)}, "  softmax/W: contains values that are not finite"),
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


def test_pretraining_goes_on_from_it(tmp_path, model):
    """`pretrain --init` starts from the network and the head of the checkpoint, and keeps its vocabulary."""
    (tmp_path / "training").mkdir()
    write_words(write(tmp_path / "training", model) / "vocab.txt")
    convert(tmp_path / "training").weights.save(tmp_path / "out.safetensors")
    text = tmp_path / "raw.txt"
    text.write_text("a cat sat\n" * 200, "utf8")
    paths = {"init": str(tmp_path / "out.safetensors"), "raw_text": str(text)}
    config, weights = read_given_weights(
        PretrainConfig.of({"paths": paths, "training": {"vocab_size": None, "max_steps": 1}})
    )
    corpus = prepare(config.paths, config.prepare, tmp_path / "corpus")
    actual = initial_model(config, corpus, weights)
    assert actual.vocabulary == WORDS
    for name, tensor in model.state_dict().items():
        assert torch.equal(actual.bilm.state_dict()[name], tensor)
    assert torch.equal(actual.head.weight, head_of(model).weight)
    assert torch.equal(actual.head.bias, head_of(model).bias)
