"""The network of a biLM: a token encoder and two stacks of LSTM layers, one for each direction."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .config import BiLMConfig, Precision
from .kernels.matmul import has_bfloat16
from .kernels.native import inference_threads
from .lstm import LSTM, State
from .packing import Lengths, Packing
from .token_encoder import token_encoder

MAX_WORDS = 4096
"""Number of words that prediction processes together. The results do not depend on it, because each chunk of a longer
sentence continues from the LSTM state of the previous chunk."""


@dataclass
class PackedOutput:
    """Inputs and packed outputs of the LSTM layers for a batch of B sentences (see `Packing`).

    The batch has N words. Each direction processes M words and boundaries. P is the width of its outputs.
    """

    sequence: np.ndarray
    """The concatenated sequences `<S> w1 .. wn </S>`, (N + 2B,); see `sequences`."""
    packing: Packing
    outputs: Sequence[Tensor]
    """Output of each LSTM layer, with its residual connection, (2, M, P) for both directions. A network for inference
    may return NumPy arrays in place of the tensors here and in `PackedChunk`."""
    state: State
    """LSTM states h (L, 2, B, P) and c (L, 2, B, C) after the last time step of each sentence, for L layers of C
    cells."""


@dataclass
class PackedChunk:
    """Layers of the words that the LSTM processes in some consecutive time steps. Boundaries are left out.

    Each direction processes m words in these steps, not always the same words.
    """

    places: np.ndarray
    """For both directions, the place in the batch of each word that the direction processes, (2, m)."""
    layers: list[Tensor]
    """Layers 0 to L of these words, each (2, m, P). Each direction computes half of the vector of a word, of
    width P."""


class BiLM(nn.Module):
    """The network of Peters et al. 2018, with the formulas of bilm-tf `model.py`, which `reference.py` lists.

    The network keeps no LSTM state between calls. A new network has random parameters, from torch's global
    random number generator.

    Args:
        config: the hyperparameters. If the model has a word table or an alphabet, call `set_vocabulary` next.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.spelling = config.spelling
        """The spelling rule, kept because each new rule is checked and tabulated."""
        self.encoder = token_encoder(config)
        self.lstm = LSTM(config)

    @torch.no_grad()
    def prepare_for_inference(self, precision: Precision) -> BiLM:
        """Return a copy of the network for prediction only. Later changes of the parameters may have no
        effect on the copy.

        The matrices of the copy are converted and prepacked once. On a CPU the copy caches the vectors of
        recently used words, unless they are rows of a word table.

        Args:
            precision: data type in which the LSTM multiplies matrices. Sums, gates and states are always
                float32. The token encoder also computes in float32, but on a CPU its dense layers multiply in
                this data type.
        """
        if (
            precision == "bfloat16"
            and self.device.type == "cpu"
            and has_bfloat16(self.device) is False
        ):
            warnings.warn(
                'precision = "bfloat16" may be much slower than "float32" here, because this processor has no'
                ' instructions for it. Set precision = "float32" in the config',
                stacklevel=2,
            )
        other = copy.copy(self)
        encoder: nn.Module = self.encoder
        # On a GPU, a cache of vectors would wait for a lookup on the CPU in every call.
        if self.device.type == "cpu":
            encoder = self.encoder.prepare_for_inference(precision)
        modules: dict[str, Any] = {
            "encoder": encoder,
            "lstm": self.lstm.prepare_for_inference(precision),
        }
        other._modules = modules
        return other

    def set_vocabulary(self, vocabulary: Sequence[str], alphabet: str = "") -> None:
        """Set the words of the word table and the characters of the table of code points; see
        `TokenEncoder.set_vocabulary`."""
        self.encoder.set_vocabulary(vocabulary, alphabet)

    def token_ids(self, words: Sequence[str]) -> Tensor:
        """Return the input of the token encoder for K types: integers, (K, ...), such as character ids,
        (K, max_characters). The spelling rule of the configuration is applied to the words first."""
        return self.encoder.ids(self.spelling(words))

    def encode(self, token_ids: Tensor) -> Tensor:
        """Return the vectors of K types, and of the start and the end of a sentence: (K + 2, P). `token_ids` are the
        token ids of the types."""
        boundaries = self.token_ids(self.encoder.boundaries)
        return self.encoder(torch.cat([token_ids, boundaries]))

    def encode_words(self, words: Sequence[str]) -> Tensor:
        """Return the result of `encode` for the types `words`, which a network for inference caches."""
        return self.encoder.vectors([*self.spelling(words), *self.encoder.boundaries])

    def forward_packed(
        self,
        types: Tensor,
        type_of_word: np.ndarray,
        lengths: Lengths,
        *,
        state: State | None = None,
        closing: bool = False,
        dropout: float = 0.0,
    ) -> PackedOutput:
        """Run both directions of the LSTM over a batch of B sentences with N words.

        Args:
            types: (K + 2, P) vectors of the K types and the boundaries, from `encode` or `encode_words`.
            type_of_word: (N,) for each word, the index of its type in `types`, sentence after sentence.
            lengths: number of words of each sentence; 0 is allowed.
            state: LSTM states before the first time step, h (L, 2, B, P) and c (L, 2, B, C), for L layers,
                two directions, output width P and C cells; None: zeros.
            closing: also process the last boundary of each direction (`</S>` forward, `<S>` backward).
            dropout: probability with which each value in the input of an LSTM layer is set to zero.
        """
        packing = Packing.of(lengths, closing=closing)
        sequence = sequences(type_of_word, lengths, len(types) - 2)
        values, final = self.lstm(
            types,
            sequence[packing.positions],
            packing.batch_sizes,
            _by_rank(state, packing.order),
            dropout,
        )
        final = _by_rank(final, np.argsort(packing.order))
        return PackedOutput(sequence, packing, values[1:], final)

    def forward_chunks(
        self,
        types: Tensor,
        type_of_word: np.ndarray,
        lengths: Lengths,
        max_words: int,
        *,
        state: State | None = None,
    ) -> Iterator[PackedChunk]:
        """Compute the layers of every word of a batch of sentences, in chunks of consecutive time steps.

        The forward direction starts with the first words of the sentences, the backward direction with the
        last words.

        Each chunk starts with the final LSTM states of the previous chunk, so the layers are the same as
        without chunks. No gradient flows from a chunk to the previous chunk, so training needs a single chunk.

        Args:
            types, type_of_word, lengths, state: see `forward_packed`.
            max_words: approximate number of words that each direction processes in a chunk. A chunk has at
                least one time step.
        """
        packing = Packing.of(lengths)
        n_words = len(type_of_word)
        # Two more words and types, for the boundaries.
        places = sequences(np.arange(n_words), lengths, n_words)[packing.positions]
        rows = np.append(type_of_word, (len(types) - 2, len(types) - 1))[places]
        state = _by_rank(state, packing.order)
        start, boundaries = 0, len(lengths)  # the first step processes the opening boundaries
        for batch_sizes in packing.chunks(max_words):
            end = start + sum(batch_sizes)
            values, state = self.lstm(types, rows[:, start:end], batch_sizes, state)
            layers = [layer[:, boundaries:] for layer in values]
            yield PackedChunk(places[:, start + boundaries : end], layers)
            start, boundaries = end, 0

    @property
    def device(self) -> torch.device:
        """The device of the parameters. Pass token ids on the CPU, even if the network is on a GPU."""
        return next(self.parameters()).device


def _by_rank(state: Any, order: np.ndarray) -> Any:
    """Return the state h and c, (L, 2, B, any), with the sentences in another order."""
    if state is None:
        return None
    return state[0][:, :, order], state[1][:, :, order]


@contextlib.contextmanager
def plain_inference(device: torch.device) -> Iterator[None]:
    """Create a context for prediction, in which gradients, autocast and inference mode are off.

    Autocast would round the word vectors that a network for inference caches, and vectors from inference mode
    could not be used outside of it. `inference_threads` explains the number of threads.
    """
    with inference_threads(), torch.no_grad():
        if not (torch.is_inference_mode_enabled() or torch.is_autocast_enabled(device.type)):
            yield
            return
        # Only where it is needed, because in a short text it would take 4 % of the time.
        with (
            torch.inference_mode(False),
            torch.no_grad(),
            torch.autocast(device.type, enabled=False),
        ):
            yield


def is_finite(tensor: Tensor) -> bool:
    """Return True if no value of the tensor is NaN or infinite. Only the minimum and maximum are checked,
    because both are NaN if any value is NaN."""
    return not tensor.numel() or all(math.isfinite(extreme.item()) for extreme in tensor.aminmax())


def sequences(type_of_word: np.ndarray, lengths: Lengths, n_types: int) -> np.ndarray:
    """Return the concatenated sequences `<S> w1 .. wn </S>` of all sentences, as integers: for a word the index of its
    type, `n_types` for `<S>`, and `n_types + 1` for `</S>`."""
    lengths = np.asarray(lengths, dtype=np.int64)
    ends = np.cumsum(lengths + 2)
    sequence = np.empty(len(type_of_word) + 2 * len(lengths), dtype=np.int64)
    is_word = np.ones(len(sequence), dtype=bool)
    for boundary, places in enumerate((ends - lengths - 2, ends - 1), n_types):
        sequence[places] = boundary
        is_word[places] = False
    sequence[is_word] = type_of_word
    return sequence
