"""Hashes (digests) of the float32 results of small networks and of the bundled models. With the C kernels, the
hashes are the same on every machine.

python -m tests.bilm.golden

The command writes the digests. Run it if you replace a bundled model or change the order of a sum on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xxhash
from torch import nn

from spacy_elmo.bilm.config import N_MARKS, BiLMConfig
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.spelling import BOS, EOS, MANY_LANGS_BOUNDARIES, UNK
from spacy_elmo.bilm.token_encoder import ManyLangsEncoder, WordEncoder
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pipeline.encode.encoder import write_means
from spacy_elmo.weight_names import bundled_names, find_weights
from tests import tiny

GOLDEN = Path(__file__).with_name("golden.json")
"""File with the expected digests: {network: {kind of text: digest}}."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SMALL: dict[str, Any] = {
    "dim": 24,
    "projection": 16,
    "layers": 2,
    "char_dim": 5,
    "filters": [[1, 7], [3, 20]],
}
NETWORKS = {
    "characters": BiLMConfig(**_SMALL),
    "one layer": BiLMConfig(**{**_SMALL, "layers": 1}),
    "three layers, odd sizes": BiLMConfig(**{**_SMALL, "layers": 3, "dim": 37, "projection": 19}),
    "no projection": BiLMConfig(**{**_SMALL, "dim": 16}),
    "square projections": BiLMConfig(**{**_SMALL, "dim": 16, "square_projections": True}),
    "no residuals, no clips, tanh": BiLMConfig(
        **{**_SMALL, "skip": False, "cell_clip": None, "proj_clip": None, "activation": "tanh"}
    ),
    "wide": BiLMConfig(dim=300, projection=130, filters=((2, 70), (5, 200)), highways=1),
    "words": BiLMConfig(**{**_SMALL, "n_words": 40}),
    "lexicon": BiLMConfig(**{**_SMALL, "n_words": 40, "word_dim": 9, "n_symbols": 26 + N_MARKS}),
    "lexicon of words": BiLMConfig(**{**_SMALL, "n_words": 40, "word_dim": 9}),
    "lexicon of code points": BiLMConfig(**{**_SMALL, "n_symbols": 26 + N_MARKS}),
}


def texts() -> dict[str, list[list[str]]]:
    """Return the test sentences, each a list of words, by kind of text, such as "long" or "odd bytes"."""
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list(_LETTERS), n)) for n in random.integers(1, 12, 60)]
    return {
        "nothing": [[]],
        "one token": [["a"], ["."], ["Donaudampfschifffahrt"], ["x" * 300]],
        "one word again and again": [["the"] * 700],
        "odd bytes": [
            ["\x00", "\x7f\xff"],
            ["é", "e\u0301", "\U0001f600\u200d"],
            ["漢字", "\ud800", "ß"],
        ],
        "long": [[words[k] for k in random.integers(0, 60, 150)]],
        "sentences": [
            [words[k] for k in random.integers(0, 60, length)] for length in [*range(1, 30)] * 3
        ],
    }


def network(name: str) -> tuple[BiLM, Head]:
    """Build the network with this name in `NETWORKS`, and a softmax layer. Their parameters are the same on
    every machine."""
    config = NETWORKS[name]
    bilm, head = BiLM(config), Head(50, config.projection)
    random = np.random.default_rng(1)
    for module in (bilm, head):
        _fill(module, random)
    # A table has the boundaries, the word for unknown words, and some words of the texts.
    marks: dict[type, list[str]] = {
        WordEncoder: [BOS, EOS, UNK],
        ManyLangsEncoder: [*MANY_LANGS_BOUNDARIES, "<oov>"],
    }
    words = dict.fromkeys(word for sentence in texts()["long"] for word in sentence)
    vocabulary = [*marks.get(type(bilm.encoder), []), *words][: config.n_words]
    bilm.set_vocabulary(vocabulary, _LETTERS if config.n_symbols else "")
    return bilm.eval().requires_grad_(False), head.requires_grad_(False)


def _fill(module: nn.Module, random: np.random.Generator) -> None:
    for parameter in module.parameters():
        whole = random.integers(-(1 << 12), 1 << 12, tuple(parameter.shape)).astype(np.float32)
        # The numbers of large matrices are smaller. The scale is a power of two, so no number is rounded.
        scale = 2.0 ** -round(np.log2(max(parameter.shape[-2:]) ** 0.5) - 1)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(whole / (1 << 12) * scale))


def layers_of(bilm: BiLM, sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """Compute the layers of all words of some sentences in one batch, (layers, words, width)."""
    return tiny.read(bilm, sentences).layers.numpy()


def digest(numbers: np.ndarray) -> str:
    """Return the xxh3_128 hash of the little-endian bytes of float32 numbers."""
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(numbers, dtype="<f4").tobytes())


def digests(bilm: BiLM, head: Head | None = None) -> dict[str, str]:
    """Return a hash of the network's layers for each kind of text, and for overlapping spans. If there is a
    softmax layer `head`, also return hashes of its log-probabilities and losses."""
    found = {}
    for kind, sentences in texts().items():
        layers = layers_of(bilm, sentences)
        found[kind] = digest(layers)
        if head is not None and kind == "long":
            hidden = torch.from_numpy(layers[-1][:, : bilm.config.projection])
            with torch.no_grad():
                targets = torch.arange(len(hidden)) % len(head.weight)
                found["log-probabilities"] = digest(head.log_softmax(hidden).numpy())
                found["losses"] = digest(head.full_loss(hidden, targets).numpy())
    return {**found, "overlapping spans": digest(_layers_of_spans(bilm))}


def spans() -> list[range]:
    """Return overlapping ranges of words of `texts()["long"]`. Up to six ranges contain the same word."""
    return [range(start, min(start + 40, 150)) for start in range(0, 150, 9)] + [range(150)]


def _layers_of_spans(bilm: BiLM) -> np.ndarray:
    (sentence,) = texts()["long"]
    vectors = layers_of(bilm, [[sentence[k] for k in span] for span in spans()])
    layers = np.zeros((len(vectors), len(sentence), vectors.shape[2]), dtype=np.float32)
    write_means(torch.from_numpy(layers), torch.from_numpy(vectors), np.concatenate(spans()))
    return layers


def bundled_model(name: str) -> dict[str, str]:
    """Return the digests of a bundled model on this machine."""
    return digests(Weights.load(find_weights(name)).build_bilm().prepare_for_inference("float32"))


def small_network(name: str) -> dict[str, str]:
    """Return the digests of a network in `NETWORKS` on this machine."""
    bilm, head = network(name)
    return digests(bilm.prepare_for_inference("float32"), head)


def expected() -> dict[str, dict[str, str]]:
    """Read the expected digests from the file `GOLDEN`."""
    return json.loads(GOLDEN.read_text("utf-8"))


if __name__ == "__main__":
    found = {name: small_network(name) for name in NETWORKS}
    found |= {name: bundled_model(name) for name in bundled_names()}
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
