"""Every part of the package that writes a file or a folder, by the module that writes it.

A writer replaces something that exists: `make` is called with 0 for the old version, and with 1 for the new one.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from confection import Config

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli.output_files import write_json
from spacy_elmo.converters.allennlp import export as allennlp
from spacy_elmo.converters.bilm_tf import export as bilm_tf
from spacy_elmo.converters.onnx import export as onnx
from spacy_elmo.lab.explore.page import save_map
from spacy_elmo.lab.figures import save_figure
from spacy_elmo.pipeline.store.cache import LayerFiles
from spacy_elmo.pipeline.weights_package import write_package
from spacy_elmo.pretraining.config import Paths, Prepare, PretrainConfig
from spacy_elmo.pretraining.corpus.prepare import prepare
from spacy_elmo.pretraining.report import write_report
from spacy_elmo.pretraining.run_folder import prepare_run_folder
from spacy_elmo.pretraining.training import checkpoint
from tests import tiny
from tests.fuzz import index_files, own_files

_MODEL = own_files.MODEL
_CARD = {"language": "en", "licence": "CC0", "name": "x"}


@dataclass(frozen=True)
class Writer:
    """A function that writes `folder / name`, a file or a folder."""

    module: str
    name: str
    write: Callable[[Path, int], object]
    """Writes version 0 or 1."""
    setup: Callable[[Path, int], object] | None = None
    """Writes what the function reads in the same folder."""


def weights_of(seed: int) -> Weights:
    """Return small weights with a head."""
    torch.manual_seed(seed)
    model = tiny.bilm(tiny.config(layers=1, max_characters=50, square_projections=False), seed)
    head = Head(len(tiny.VOCABULARY), model.config.projection)
    return Weights.from_bilm(model, head, vocabulary=tiny.VOCABULARY, card=_CARD | {"seed": seed})


def _save_checkpoint(path: Path, version: int) -> None:
    checkpoint.save({"step": version, "tensor": torch.full((50,), float(version))}, path.parent)


def _held_out(text: str | Path) -> str:
    return str(shutil.copy(text, f"{text}.dev.txt"))


def _prepare(path: Path, version: int) -> None:
    text = _source(path, version)
    if not version:
        return  # it never replaces a corpus
    settings = Prepare(tokenized=True)
    prepare(Paths(raw_text=str(text), dev_text=_held_out(text)), settings, path)


def _index(method: str) -> Callable[[Path, int], None]:
    def write(path: Path, version: int) -> None:
        index_files.search_index(method, repeats=1 + version).to_disk(path)

    return write


def _package(path: Path, version: int) -> None:
    write_package(weights_of(version), "x_v1", path.parent, version="1.0", force=True)


def _layers(path: Path, version: int) -> None:
    files = LayerFiles(str(path.parent), "k")
    files._path = lambda key: path
    files.write(b"k", np.full((3, 4), version, np.float32))


def _prepare_run_folder(path: Path, version: int) -> None:
    text = str(_source(path, 0))
    config = _config(3 + version, raw_text=text, dev_text=_held_out(text))
    prepare_run_folder(path.parent, config, resume=True)


def _run_files(path: Path, version: int) -> None:
    row = {
        "step": 1 + version, "steps": 3, "epoch": 0.5, "tokens": 100, "loss": 3.0, "learn_rate": 0.1, "grad_norm": 1.0,
        "tokens_per_second": 10.0, "minutes": 0.1, "dev": None, "best": False,
    }  # fmt: skip
    path.with_name("log.jsonl").write_text(json.dumps(row) + "\n", "utf8")
    Config(_config(3).model_dump()).to_disk(path.with_name("config.cfg"))


def _config(steps: int, **paths: str) -> PretrainConfig:
    training = {"max_steps": steps, "vocab_size": 10, "negatives": 4}
    return PretrainConfig.of({"model": _MODEL, "training": training, "paths": paths})


def _figure(path: Path, version: int) -> None:
    spec: dict[str, Any] = {
        "data": {"values": [{"a": version, "b": 1}]}, "mark": "point",
        "encoding": {"x": {"field": "a", "type": "quantitative"}},
    }  # fmt: skip
    save_figure(spec, path)


def _source(path: Path, version: int) -> Path:
    """Return a text outside the folder in which calls fail."""
    file = path.parent.with_name(f"text-{version}.txt")
    words = ["the cat sleeps .", "a dog barks .", "the river runs ."][: 2 + version]
    file.write_text("\n\n".join(words * 4) + "\n", "utf8")
    return file


WRITERS = {
    "weights": Writer("bilm.weights", "w.safetensors", lambda p, v: weights_of(v).save(p)),
    "checkpoint": Writer("pretraining.training.checkpoint", "checkpoint", _save_checkpoint),
    "prepare": Writer("pretraining.corpus.prepare", "corpus", _prepare),
    "index-exact": Writer("lab.search.index_files", "index", _index("exact")),
    "index-hnsw": Writer("lab.search.index_files", "index", _index("hnsw")),
    "layers": Writer("pipeline.store.cache", "k.npy", _layers),
    "package": Writer("pipeline.weights_package", "x", _package),
    "bilm-hdf5": Writer(
        "converters.bilm_tf.export", "m", lambda p, v: bilm_tf.export(weights_of(v), p, force=True)
    ),
    "allennlp": Writer(
        "converters.allennlp.export", "m", lambda p, v: allennlp.export(weights_of(v), p, force=True)
    ),
    "onnx": Writer(
        "converters.onnx.export", "m.onnx", lambda p, v: onnx.export(weights_of(v), p, force=True)
    ),
    "json": Writer("cli.output_files", "r.json", lambda p, v: write_json(p, {"a": [v] * 9})),
    "figure": Writer("lab.figures", "f.png", _figure),
    "map": Writer("lab.explore.page", "m.html", lambda p, v: save_map(p, {"n": v}, title="t", source="s")),
    "report": Writer(
        "pretraining.report", "report.html", lambda p, v: write_report(p.parent), setup=_run_files
    ),
    "prepare_run_folder": Writer("pretraining.run_folder", "config.cfg", _prepare_run_folder),
}  # fmt: skip
