"""Tiny random biLMs, and batches for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spacy_elmo.bilm.config import N_MARKS, BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights

VOCABULARY = ["<S>", "</S>", "<UNK>", "a", "cat", "sat", "naïve", "鳥"]
LEXICON = ["<oov>", "<bos>", "<eos>", "a", "cat", "Cat", "naïve", "鳥"]
ALPHABET = "acstCnïve鳥\u3000🙂"


def config(**fields: Any) -> BiLMConfig:
    """Return a small character model with all features; its clips are so narrow that they are active."""
    small: dict[str, Any] = {
        "dim": 7, "projection": 5, "layers": 2, "cell_clip": 0.3, "proj_clip": 0.2,
        "char_dim": 3, "filters": ((1, 2), (2, 3), (4, 4)), "highways": 1, "max_characters": 12,
    }  # fmt: skip
    return BiLMConfig(**(small | fields))


def lexicon_config(**fields: Any) -> BiLMConfig:
    """Return the same with the words and the code points of ELMoForManyLangs as input."""
    size = N_MARKS + len(ALPHABET)
    return config(**{"n_words": len(LEXICON), "word_dim": 4, "n_symbols": size, **fields})


def bilm(config: BiLMConfig, seed: int = 0) -> BiLM:
    """Return a network in which every parameter, also each bias, is random and large enough to matter."""
    generator = torch.Generator().manual_seed(seed)
    model = BiLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    words = LEXICON if config.is_many_langs else VOCABULARY
    model.set_vocabulary(words[: config.n_words], ALPHABET[: max(config.n_symbols - N_MARKS, 0)])
    return model.eval()


def save(path: Path, card: dict[str, Any] | None = None, **fields: Any) -> Path:
    """Save the weights of such a network with fields of its config, and return their path."""
    Weights.from_bilm(bilm(config(**fields)), card=card or {}).save(path)
    return path


def batch(
    model: BiLM, sentences: Sequence[Sequence[str]]
) -> tuple[torch.Tensor, np.ndarray, list[int]]:
    """Return the first arguments of `BiLM.forward_packed`: vectors of the distinct words, their rows, the lengths."""
    types = sorted({word for sentence in sentences for word in sentence})
    rows = {word: row for row, word in enumerate(types)}
    words = np.array([rows[word] for sentence in sentences for word in sentence], dtype=np.int64)
    return model.encode_words(types), words, [len(sentence) for sentence in sentences]


@dataclass
class Output:
    """Layers of N words, (L+1, N, 2P), and the final LSTM states, for L layers and the width P of one direction."""

    layers: torch.Tensor
    state: tuple[torch.Tensor, torch.Tensor]


def forward(model: BiLM, sentences: Sequence[Sequence[str]], **options: Any) -> Output:
    """Compute the layers of sentences by `BiLM.forward_packed`, which has these options, with an autograd graph."""
    types, words, lengths = batch(model, sentences)
    packed = model.forward_packed(types, words, lengths, **options)
    is_word = packed.sequence < len(types) - 2
    layers = [torch.as_tensor(types)[packed.sequence[is_word]].repeat(1, 2)]
    for y in map(torch.as_tensor, packed.outputs):
        by_place = [y.new_zeros(len(is_word), y.shape[2]) for _ in y]
        for direction, places in enumerate(packed.packing.positions):
            by_place[direction] = by_place[direction].index_copy(
                0, torch.from_numpy(places).to(y.device), y[direction]
            )
        layers.append(torch.cat(by_place, 1)[is_word])
    h, c = map(torch.as_tensor, packed.state)
    return Output(torch.stack(layers), (h, c))


@torch.no_grad()
def read(
    model: BiLM, sentences: Sequence[Sequence[str]], state: Any = None, **options: Any
) -> Output:
    """Compute `forward` without a graph."""
    return forward(model, sentences, state=state, **options)
