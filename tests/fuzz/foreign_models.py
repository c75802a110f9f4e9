"""Models of other programs, in every layout that `convert` reads."""

import functools
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import torch

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.converters.api import convert
from tests import tiny
from tests.converters import foreign, foreign_allennlp, foreign_many_langs, tensor_bundle
from tests.fuzz.bytes_and_values import damaged_bytes, damaged_json, damaged_text
from tests.fuzz.containers import (
    damaged_hdf5,
    damaged_old_pickle,
    damaged_table,
    damaged_tar_gz,
    damaged_torch_zip,
    damaged_zip,
)
from tests.fuzz.target import Target


def _model(**fields: object) -> BiLM:
    return tiny.bilm(tiny.config(layers=1, filters=((1, 2), (2, 2)), char_dim=2, **fields))


def make_bilm_hdf5(folder: Path) -> None:
    """Write a model of bilm-tf with its softmax."""
    model = _model()
    foreign.write_model(folder, model, tiny.VOCABULARY)
    size = len(tiny.VOCABULARY)
    softmax = {
        "softmax/W": np.ones((size, model.config.projection), np.float32),
        "softmax/b": np.zeros(size, np.float32),
    }
    foreign.write_arrays(folder / "softmax.hdf5", softmax)


def make_words_hdf5(folder: Path) -> None:
    """Write a model of bilm-tf with word input."""
    model = tiny.bilm(tiny.config(layers=1, n_words=len(tiny.VOCABULARY)))
    foreign.write_model(folder, model, tiny.VOCABULARY)


def make_simple_elmo(folder: Path) -> None:
    """Write the archive of a model as simple_elmo's users share it."""
    make_bilm_hdf5(folder)
    _zipped(folder, ("lm_weights.hdf5", "options.json", "vocab.txt"))


def make_bilm_tf(folder: Path) -> None:
    """Write a checkpoint of TensorFlow with two data files."""
    model = _model()
    variables = {f"lm/{_trained(name)}": array for name, array in foreign.arrays_of(model).items()}
    size = len(tiny.VOCABULARY)
    variables["lm/softmax/W"] = np.ones((size, model.config.projection), np.float32)
    variables["lm/softmax/b"] = np.zeros(size, np.float32)
    variables["global_step"] = np.float32(7).reshape(())
    tensor_bundle.write(folder / "model.ckpt-7", variables, shards=2)
    options = foreign.options_of(model.config) | {"bidirectional": True, "n_tokens_vocab": size}
    options["char_cnn"]["n_characters"] = 261
    (folder / "options.json").write_text(json.dumps(options), "utf8")
    (folder / "vocab.txt").write_text("\n".join(tiny.VOCABULARY) + "\n", "utf8")


def _trained(name: str) -> str:
    """Return the name under which bilm-tf trains an array."""
    for dumped, trained in (
        ("/RNN/MultiRNNCell/Cell", "/rnn/multi_rnn_cell/cell_"),
        ("/LSTMCell/W_P_0", "/lstm_cell/projection/kernel"),
        ("/LSTMCell/W_0", "/lstm_cell/kernel"),
        ("/LSTMCell/B", "/lstm_cell/bias"),
    ):
        name = name.replace(dumped, trained)
    return name


def make_allennlp(folder: Path) -> None:
    """Write the unpacked archive of a trained model of AllenNLP."""
    model = _model(square_projections=True)
    foreign_allennlp.write_model(folder, model, [([0.0, 1.0], 1.0)])


def make_allennlp_archive(folder: Path) -> None:
    """Write the archive of a trained model of AllenNLP."""
    make_allennlp(folder)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as file:
        for path in sorted(folder.iterdir()):
            file.add(path, path.name)
            path.unlink()
    (folder / "model.tar.gz").write_bytes(stream.getvalue())


def make_parameters(folder: Path) -> None:
    """Write a file that contains only parameters, with its options next to it."""
    make_allennlp(folder)
    (folder / "config.json").unlink()


def make_many_langs(folder: Path, *, old: bool = False) -> None:
    """Write a model of ELMoForManyLangs, by PyTorch before 1.6 or after."""
    foreign_many_langs.write_model(folder, foreign_many_langs.options(n_layers=1), old=old)


def make_many_langs_zip(folder: Path) -> None:
    """Write the archive of a published model."""
    make_many_langs(folder)
    _zipped(folder, sorted(path.name for path in folder.iterdir()))


def _zipped(folder: Path, names: tuple[str, ...] | list[str]) -> None:
    with zipfile.ZipFile(folder / "m.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(zipfile.ZipInfo(name), (folder / name).read_bytes())
    for path in folder.iterdir():
        if path.name != "m.zip":
            path.unlink()


def _load(folder: Path, name: str = ".", format: str = "auto") -> object:
    return convert(folder / name, format=format)


def damaged_state(random: Random, data: bytes) -> bytes:
    """Damage a file of `torch.save`, or replace one of its tensors by a tensor that no network has."""
    if random.random() < 0.6:
        return damaged_torch_zip(random, data)
    state = dict(torch.load(io.BytesIO(data), weights_only=True))
    name = random.choice(sorted(state))
    state[name] = random.choice(_TENSORS)(state[name].float())
    stream = io.BytesIO()
    torch.save(state, stream)
    return stream.getvalue()


_TENSORS: tuple[Callable[[torch.Tensor], object], ...] = (
    lambda t: t.to(torch.float8_e4m3fn),
    lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8),
    lambda t: t.to_sparse(),
    lambda t: t.to(torch.complex64).conj(),
    lambda t: torch.nested.nested_tensor([t, t]),
    lambda t: t.to("meta"),
    lambda t: torch.zeros(1).expand(1 << 40),
    lambda t: torch.zeros(1).expand(*t.shape[:1], 1 << 20),
    lambda t: t.double(),
    lambda t: t.bfloat16(),
    lambda t: t * float("nan"),
    lambda t: t[:0],
    lambda t: t.t() if t.dim() == 2 else t,
    lambda t: torch.nn.Parameter(t),
    lambda t: t.tolist(),
    lambda t: {"t": t},
    lambda t: None,
    lambda t: 1e30,
)

_HDF5 = {"lm_weights.hdf5": damaged_hdf5, "options.json": damaged_json, "vocab.txt": damaged_text}
_MANY_LANGS = {
    "config.json": damaged_json,
    "network.json": damaged_json,
    "word.dic": damaged_text,
    "char.dic": damaged_text,
}
_INNER = {".json": damaged_json, ".txt": damaged_text, ".dic": damaged_text, ".hdf5": damaged_hdf5,
          ".th": damaged_state, ".pkl": damaged_state}  # fmt: skip
_ALLENNLP = {"weights.th": damaged_state, "config.json": damaged_json, "options.json": damaged_json}

TARGETS = (
    Target("bilm-hdf5", make_bilm_hdf5, _load, _HDF5 | {"softmax.hdf5": damaged_hdf5}),
    Target(
        "bilm-hdf5-words", make_words_hdf5, functools.partial(_load, format="bilm-hdf5"), _HDF5
    ),
    Target(
        "simple-elmo-zip", make_simple_elmo, functools.partial(_load, name="m.zip"),
        {"m.zip": functools.partial(damaged_zip, inner=_INNER)},
    ),
    Target(
        "bilm-tf", make_bilm_tf, functools.partial(_load, format="bilm-tf"),
        {
            "model.ckpt-7.index": damaged_table, "options.json": damaged_json, "vocab.txt": damaged_text,
            "model.ckpt-7.data-00000-of-00002": damaged_bytes, "checkpoint": damaged_text,
        },
    ),
    Target("allennlp", make_allennlp, _load, _ALLENNLP),
    Target(
        "allennlp-archive", make_allennlp_archive, functools.partial(_load, name="model.tar.gz"),
        {"model.tar.gz": functools.partial(damaged_tar_gz, inner=_INNER)},
    ),
    Target(
        "allennlp-th", make_parameters, functools.partial(_load, name="weights.th"),
        {"weights.th": damaged_state, "options.json": damaged_json},
    ),
    Target(
        "many-langs", make_many_langs, _load,
        _MANY_LANGS | {"encoder.pkl": damaged_state, "token_embedder.pkl": damaged_state},
    ),
    Target(
        "many-langs-old", functools.partial(make_many_langs, old=True), _load,
        {"encoder.pkl": damaged_old_pickle, "token_embedder.pkl": damaged_old_pickle},
    ),
    Target(
        "many-langs-zip", make_many_langs_zip, functools.partial(_load, name="m.zip"),
        {"m.zip": functools.partial(damaged_zip, inner=_INNER)},
    ),
)  # fmt: skip
