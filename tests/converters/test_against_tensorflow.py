"""Checkpoints written by TensorFlow itself, and its outputs compared with ours.

Skipped unless the environment variable ELMO_TENSORFLOW names the Python of an environment with TensorFlow (2.15 still
has the cells of version 1 that bilm-tf used): python3.11 -m venv TF && TF/bin/pip install tensorflow-cpu==2.15.1
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.words.char_ids import BOS, EOS
from spacy_elmo.converters.bilm_tf.checkpoint_conversion import convert, recognize
from spacy_elmo.converters.readers.tensorflow import Checkpoint, newest
from tests import oracle, tiny
from tests.converters.bilm_tf.test_checkpoint_conversion import WORDS, options_of, write_words

PYTHON = os.environ.get("ELMO_TENSORFLOW")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="ELMO_TENSORFLOW names no Python")

SENTENCES = [["a", "cat", "sat", "<UNK>"], ["naïve", "鳥", "a", "sat"]]
TARGETS = np.array([[3, 4, 5, 2, 1], [6, 7, 3, 5, 1]])
SHAPES = {
    "as published": {"filters": ((1, 2), (2, 3), (4, 4)), "highways": 2},
    "three layers without residuals": {"layers": 3, "skip": False, "activation": "tanh"},
    "without projections": {"dim": 5, "filters": ((3, 5),), "highways": 0},
    "one layer": {"layers": 1, "cell_clip": None, "proj_clip": None},
    "words": {"n_words": 8},
    "words shared with the softmax": {"n_words": 8, "layers": 3},
    "one direction": {},
}


def inputs_of(config):
    """Return the input of each direction: the boundary, then the words in its order."""
    read = {
        "forward": [[BOS, *s] for s in SENTENCES],
        "backward": [[EOS, *s[::-1]] for s in SENTENCES],
    }
    if config.n_words:
        return {
            d: np.array([[WORDS.index(w) for w in row] for row in rows]) for d, rows in read.items()
        }
    size = config.max_characters
    return {
        d: np.array([[oracle.char_ids(w, size) for w in row] for row in rows]) for d, rows in read.items()
    }  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folders = {name: tmp_path_factory.mktemp("trained") for name in SHAPES}
    for name, folder in folders.items():
        config = tiny.config(**SHAPES[name])
        options = options_of(config) | {"bidirectional": name != "one direction"}
        if name == "words shared with the softmax":
            options["share_embedding_softmax"] = True
        (folder / "options.json").write_text(json.dumps(options), "utf8")
        np.savez(folder / "inputs.npz", targets=TARGETS, **inputs_of(config))
        write_words(folder / "vocab.txt")
    script = Path(__file__).with_name("train_in_tensorflow.py")
    done = subprocess.run([PYTHON, script, *folders.values()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folders


def outputs_of(folder):
    with np.load(folder / "outputs.npz") as file:
        return dict(file)


@pytest.mark.parametrize("name", SHAPES)
def test_every_tensor_bit_by_bit(folders, name):
    """Every tensor, including the optimizer's slots, which a conversion does not read."""
    checkpoint = Checkpoint(newest(folders[name]))
    expected = {n: a for n, a in outputs_of(folders[name]).items() if not n.startswith("says:")}
    assert checkpoint.entries.keys() == expected.keys()
    assert any(n.endswith("/Adagrad") for n in expected)
    for variable, array in expected.items():
        got = checkpoint.read(variable)
        assert (got.shape, got.dtype) == (array.shape, array.dtype)
        assert got.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "one direction"])
def test_the_converted_model_says_the_same(folders, name):
    assert recognize(folders[name])
    weights = convert(folders[name]).weights
    model, head = weights.build_bilm(), weights.build_head()
    n, width = len(SENTENCES[0]), model.config.projection
    layers = tiny.read(model, SENTENCES).layers.unflatten(1, (len(SENTENCES), n))
    expected = outputs_of(folders[name])
    for part, direction in enumerate(("forward", "backward")):
        # The first thing read is the boundary, which has no layers; the backward direction read the last word first.
        order = slice(1, None) if part == 0 else slice(None, 0, -1)
        token, top, logs = (
            expected[f"says:{direction}:{what}"][:, order] for what in ("token", "top", "log_softmax")
        )  # fmt: skip
        half = layers[..., part * width : (part + 1) * width]
        with torch.no_grad():
            own_logs = head.log_softmax(half[-1].reshape(-1, width))
        np.testing.assert_allclose(half[0], token, rtol=0, atol=1e-5)
        np.testing.assert_allclose(half[-1], top, rtol=0, atol=1e-5)
        np.testing.assert_allclose(own_logs, logs.reshape(own_logs.shape), rtol=0, atol=1e-5)
        assert np.abs(top).max() > 0.05  # or anything would be near it


def test_one_direction_is_refused(folders):
    with pytest.raises(ValueError, match="no RNN_1"):
        convert(folders["one direction"])
