"""The files of this package: weights, checkpoints, prepared corpora, cached layers."""

import json
from pathlib import Path

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

from spacy_elmo.bilm import weights as weights_module
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.start_state import StartState
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pipeline.store.cache import LayerFiles
from spacy_elmo.pretraining.config import Paths, Prepare, PretrainConfig
from spacy_elmo.pretraining.corpus.prepare import prepare
from spacy_elmo.pretraining.corpus.prepared import Corpus
from spacy_elmo.pretraining.training import checkpoint
from spacy_elmo.pretraining.training.distributed import Ranks
from spacy_elmo.pretraining.training.initial_weights import GivenWeights
from spacy_elmo.pretraining.training.trainer import Trainer
from tests import tiny
from tests.fuzz.bytes_and_values import damaged_bytes, damaged_json, damaged_text, with_length
from tests.fuzz.containers import damaged_npy, damaged_safetensors, damaged_torch_zip
from tests.fuzz.target import Target

MODEL = {
    "dim": 8, "projection": 4, "char_dim": 4, "filters": [[1, 4], [3, 4]], "highways": 1, "max_characters": 12,
}  # fmt: skip
_LINES = ["the cat sleeps .", "a dog barks and sleeps .", "the river runs in the rain ."]


# Weights


def make_weights(folder: Path) -> None:
    """Write weights with all optional parts, in two data types."""
    torch.manual_seed(0)
    model = tiny.bilm(tiny.lexicon_config())
    head = Head(len(tiny.LEXICON), model.config.projection)
    start = StartState(torch.randn(2, 2, 5), torch.randn(2, 2, 7))
    content = Weights.from_bilm(
        model, head, vocabulary=tiny.LEXICON, card={"language": "en", "n": [1, {"a": None}]}, start_state=start
    )  # fmt: skip
    content.save(folder / "w.safetensors")


def load_weights(folder: Path) -> object:
    """Load weights and build their network."""
    weights = Weights.load(folder / "w.safetensors")
    weights.build_bilm()
    weights.build_head()
    return weights


def load_weights_bytes(folder: Path) -> object:
    """Load weights from the bytes that a pipeline contains."""
    return Weights.from_bytes((folder / "w.safetensors").read_bytes())


def seal_weights(folder: Path) -> None:
    """Correct the digest of weights."""
    path = folder / "w.safetensors"
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"]["digest"] = weights_module._digest(
        header["__metadata__"], safetensors.torch.load(data)
    )
    path.write_bytes(with_length(json.dumps(header).encode(), data[8 + size :]))


# Checkpoints


def _trainer(corpus: Corpus) -> Trainer:
    training = {"max_steps": 3, "vocab_size": 10, "negatives": 4, "batch_tokens": 16}
    sections = {"model": MODEL, "training": training, "prepare": {"tokenized": True}}
    return Trainer(
        PretrainConfig.of(sections), corpus, torch.device("cpu"), Ranks(), GivenWeights()
    )


def make_corpus(folder: Path) -> Corpus:
    """Prepare a corpus of some sentences."""
    text, dev = folder / "raw.txt", folder / "dev.txt"
    for file in (text, dev):
        file.write_text("\n".join((line + "\n") * 2 for line in _LINES * 30), "utf8")
    paths = Paths(raw_text=str(text), dev_text=str(dev))
    corpus = prepare(paths, Prepare(tokenized=True), folder / "corpus")
    text.unlink()
    dev.unlink()
    return corpus


def make_checkpoint(folder: Path) -> None:
    """Train a step, and write its checkpoint."""
    trainer = _trainer(make_corpus(folder))
    trainer.advance()
    checkpoint.save(trainer.state(), folder)


def load_checkpoint(folder: Path) -> object:
    """Resume a run from its checkpoint."""
    trainer = _trainer(Corpus.open(folder / "corpus"))
    state = checkpoint.load(folder)
    assert state is not None
    trainer.load_state(state, folder)
    return trainer.state()


def load_corpus(folder: Path) -> object:
    """Open a prepared corpus, and read all of it."""
    corpus = Corpus.open(folder / "corpus")
    parts = [np.concatenate([*part.chunks()]) for part in (corpus.train, corpus.dev)]
    return corpus, parts, corpus.vocabulary(100)


# Cached layers

_KEY = b"\x01" * 8


def make_layers(folder: Path) -> None:
    """Write the layers of a Doc as the cache does."""
    LayerFiles(str(folder), "k").write(_KEY, np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    (path,) = folder.rglob("*.npy")
    path.rename(folder / "layers.npy")
    path.parent.rmdir()


def load_layers(folder: Path) -> object:
    """Read the layers of a Doc. Damaged layers count as missing, and are computed again."""
    files = LayerFiles(str(folder), "k")
    path = files._path(_KEY)
    path.parent.mkdir()
    (folder / "layers.npy").rename(path)
    layers = files.read(_KEY)
    if layers is None:
        raise ValueError(f"{folder}: no layers")
    return layers


_CORPUS = {
    "corpus/corpus.json": damaged_json,
    "corpus/types.txt": damaged_text,
    **{
        f"corpus/{name}.npy": damaged_npy
        for name in ("counts", "train-ids", "train-offsets", "dev-ids", "dev-offsets")
    },
}

TARGETS = (
    Target("weights", make_weights, load_weights, {"w.safetensors": damaged_safetensors}, digests=True),
    Target(
        "weights-sealed", make_weights, load_weights, {"w.safetensors": damaged_safetensors}, digests=True,
        seal=seal_weights,
    ),
    Target(
        "weights-bytes", make_weights, load_weights_bytes, {"w.safetensors": damaged_safetensors}, digests=True,
        names_path=False,
    ),
    Target("checkpoint", make_checkpoint, load_checkpoint, {"checkpoint/current.pt": damaged_bytes}, digests=True),
    # With right checksums.
    Target("checkpoint-sealed", make_checkpoint, load_checkpoint, {"checkpoint/current.pt": damaged_torch_zip}),
    Target("corpus", make_corpus, load_corpus, _CORPUS, digests=True),
    Target("layers", make_layers, load_layers, {"layers.npy": damaged_npy}, digests=True),
)  # fmt: skip
