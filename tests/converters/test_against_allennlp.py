"""Our conversions compared with AllenNLP itself: its loader, its parameters, its numbers.

pip install --no-deps --target FOLDER allennlp==2.10.1
ELMO_ALLENNLP=FOLDER python -m pytest tests/converters/test_against_allennlp.py
"""

import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.allennlp_elmo import AllenNLP, elmo_module
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters import allennlp, bilm_tf
from spacy_elmo.converters.convert import read_model
from tests import tiny
from tests.converters import foreign

FOLDER = os.environ.get("ELMO_ALLENNLP")
pytestmark = pytest.mark.skipif(not FOLDER, reason="ELMO_ALLENNLP names no folder")

SENTENCES = [
    ["She", "sat", "on", "the", "bank", "of", "the", "river", "."],
    ["a"],
    ["x" * 60, "é" * 30, "漢字" * 20, "🦉" * 13],  # cut at 48 bytes, also inside a character
    ["naïve", "鳥", "🦉", "​", "a\u0301", "\x00", "<S>", "</S>", "<UNK>", "@@UNKNOWN@@"],
    ["A", "a"] * 20,
    ["", "a", ""],
    ["…"],
]
ARCHITECTURES = 32


@pytest.fixture(scope="module")
def peer():
    return elmo_module(Path(FOLDER))


def architecture(seed, **fields):
    """Return a random architecture that AllenNLP supports."""
    rng = np.random.default_rng(seed)
    projection = int(rng.integers(2, 9))
    filters = [
        (int(rng.integers(1, 8)), int(rng.integers(1, 7))) for _ in range(rng.integers(1, 5))
    ]
    if sum(number for _, number in filters) == projection:
        filters.append((1, 1))
    drawn = {
        "projection": projection,
        "dim": projection + int(rng.integers(1, 9)),
        "layers": int(rng.integers(1, 4)),
        "cell_clip": [None, 0.3, 3.0][rng.integers(3)],
        "proj_clip": [None, 0.2, 3.0][rng.integers(3)],
        "char_dim": int(rng.integers(1, 6)),
        "filters": tuple(filters),
        "activation": ["relu", "tanh"][rng.integers(2)],
        "highways": int(rng.integers(0, 3)),
        "max_characters": 50,
    }
    return tiny.config(**(drawn | fields))


def model_of(seed):
    return tiny.bilm(architecture(seed), seed)


def assert_same_layers(net, model):
    expected = AllenNLP(net).layers(SENTENCES)
    got = tiny.read(model, SENTENCES).layers.split([len(words) for words in SENTENCES], 1)
    for ours, theirs in zip(got, expected, strict=True):
        assert theirs.abs().max() > 0.01
        torch.testing.assert_close(ours, theirs.detach(), atol=1e-5, rtol=0)


def elmo_of(peer, folder, mixes=1):
    """Return AllenNLP's `Elmo` with the content of one of its folders."""
    return peer.Elmo(f"{folder}/options.json", f"{folder}/weights.hdf5", mixes, dropout=0.0)


@pytest.mark.parametrize("seed", range(ARCHITECTURES))
def test_exports(peer, tmp_path, seed):
    """AllenNLP's loader reads the HDF5 export. The state dict, for a network with other numbers, has the same bits."""
    model, other = model_of(seed), tiny.bilm(architecture(seed), seed + 1)
    bilm_tf.export(Weights.from_bilm(model), tmp_path / "same")
    bilm_tf.export(Weights.from_bilm(other), tmp_path / "other")
    allennlp.export(Weights.from_bilm(model), tmp_path / "state")
    loaded, elmo = elmo_of(peer, tmp_path / "same"), elmo_of(peer, tmp_path / "other")
    assert_same_layers(loaded._elmo_lstm, model)
    elmo.load_state_dict(torch.load(tmp_path / "state" / "weights.th", weights_only=True))
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(elmo.state_dict()[name], tensor), name


@pytest.mark.parametrize("seed", range(ARCHITECTURES))
def test_archive(peer, tmp_path, seed):
    """AllenNLP's state dict inside a tagger's archive is converted and exported again, bit for bit."""
    model = model_of(seed)
    bilm_tf.export(Weights.from_bilm(model), tmp_path)
    elmo = elmo_of(peer, tmp_path, mixes=2)
    torch.nn.init.normal_(elmo.scalar_mix_1.gamma)
    for parameter in elmo.scalar_mix_1.scalar_parameters:
        torch.nn.init.normal_(parameter)
    tagger = torch.nn.Module()
    tagger.tag_projection_layer = torch.nn.Linear(2, 3)
    tagger.text_field_embedder = torch.nn.Module()
    tagger.text_field_embedder.token_embedder_elmo = torch.nn.Module()
    tagger.text_field_embedder.token_embedder_elmo._elmo = elmo
    path = write_archive(tmp_path, tagger, tmp_path / "options.json")
    weights, _ = read_model(path)
    assert weights.config.cell_clip == model.config.cell_clip
    assert_same_layers(elmo._elmo_lstm, weights.build_bilm())
    back = allennlp.state_of(weights)
    assert back.keys() == elmo.state_dict().keys()
    for name, tensor in elmo.state_dict().items():
        assert torch.equal(back[name], tensor), name


def write_archive(folder, model, options):
    """Write model.tar.gz as AllenNLP before 1.0 did, with the options file of its configuration."""
    inside = folder / "archive"
    (inside / "fta").mkdir(parents=True)
    embedder = {"type": "elmo_token_embedder", "options_file": "/elsewhere/options.json"}
    config = {"model": {"text_field_embedder": {"token_embedders": {"elmo": embedder}}}}
    (inside / "config.json").write_text(json.dumps(config), "utf8")
    setting = "model.text_field_embedder.token_embedders.elmo.options_file"
    (inside / "fta" / setting).write_bytes(options.read_bytes())
    torch.save(model.state_dict(), inside / "weights.th")
    with tarfile.open(folder / "model.tar.gz", "w:gz") as archive:
        for path in inside.iterdir():
            archive.add(path, path.name)
    return folder / "model.tar.gz"


@pytest.mark.parametrize("dim, filters", [(5, ((1, 3), (2, 4))), (7, ((1, 2), (2, 3))), (5, ((5, 5),))])  # fmt: skip
def test_projections_where_the_sizes_agree(peer, tmp_path, dim, filters):
    """AllenNLP has projections even if the sizes are equal."""
    model = tiny.bilm(
        architecture(0, dim=dim, projection=5, filters=filters, square_projections=True)
    )
    foreign.write_model(tmp_path, model)
    (tmp_path / "lm_weights.hdf5").rename(tmp_path / "weights.hdf5")
    elmo = elmo_of(peer, tmp_path)
    assert_same_layers(elmo._elmo_lstm, model)
    torch.save(elmo.state_dict(), tmp_path / "best.th")
    converted = allennlp.convert(tmp_path / "best.th")[0]
    assert converted.config.square_projections
    assert_same_layers(elmo._elmo_lstm, Weights.from_bytes(converted.to_bytes()).build_bilm())
