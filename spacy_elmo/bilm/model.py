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
from .lstm import LSTM
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
    """Output of each LSTM layer, with its residual connection, (2, M, P) for both directions."""
    state: tuple[Tensor, Tensor]
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

    def forward_packed(
        self,
        token_ids: Tensor,
        type_of_word: np.ndarray,
        lengths: Lengths,
        *,
        state: tuple[Tensor, Tensor] | None = None,
        closing: bool = False,
        dropout: float = 0.0,
    ) -> PackedOutput:
        """Run the token encoder and both directions of the LSTM over a batch of B sentences with N words.

        Args:
            token_ids: (K, ...) token ids of the K types, from `BiLM.token_ids`.
            type_of_word: (N,) for each word, the index of its type in `token_ids`, sentence after sentence.
            lengths: number of words of each sentence; 0 is allowed.
            state: LSTM states before the first time step, h (L, 2, B, P) and c (L, 2, B, C), for L layers,
                two directions, output width P and C cells; None: zeros.
            closing: also process the last boundary of each direction (`</S>` forward, `<S>` backward).
            dropout: probability with which each value in the input of an LSTM layer is set to zero.
        """
        types = self.encoder(self._with_boundaries(token_ids).to(self.device))
        packing = Packing.of(lengths, closing=closing)
        sequence = sequences(type_of_word, lengths, len(token_ids))
        # Not types[...], because with several threads its backward pass adds in another order each time.
        x = nn.functional.embedding(self._index(sequence[packing.positions]), types)
        h, c = self._start_state(state, packing)
        outputs, h, c = self.lstm(x, packing.batch_sizes, h, c, dropout)
        ranks = self._index(np.argsort(packing.order))
        return PackedOutput(sequence, packing, outputs, (h[:, :, ranks], c[:, :, ranks]))

    def forward_chunks(
        self,
        token_ids: Tensor,
        type_of_word: np.ndarray,
        lengths: Lengths,
        max_words: int,
        *,
        state: tuple[Tensor, Tensor] | None = None,
    ) -> Iterator[PackedChunk]:
        """Compute the layers of every word of a batch of sentences, in chunks of consecutive time steps.

        The forward direction starts with the first words of the sentences, the backward direction with the
        last words.

        Each chunk starts with the final LSTM states of the previous chunk, so the layers are the same as
        without chunks. The memory does not grow with the length of a sentence. No gradient flows from a chunk
        to the previous chunk, so training needs a single chunk.

        Args:
            token_ids, type_of_word, lengths, state: see `forward_packed`. In each chunk, each type is encoded
                once.
            max_words: approximate number of words that each direction processes in a chunk. A chunk has at
                least one time step.
        """
        ids = self._with_boundaries(token_ids)
        packing = Packing.of(lengths)
        sequence = sequences(type_of_word, lengths, len(token_ids))
        n_words = len(type_of_word)
        places = sequences(np.arange(n_words), lengths, n_words)
        h, c = self._start_state(state, packing)
        start, boundaries = 0, len(lengths)  # the first step processes the opening boundaries
        for batch_sizes in packing.chunks(max_words):
            positions = packing.positions[:, start : start + sum(batch_sizes)]
            chunk_ids, rows = np.unique(sequence[positions], return_inverse=True)
            tokens = self.encoder(ids[torch.from_numpy(chunk_ids)].to(self.device))
            x = nn.functional.embedding(self._index(rows.reshape(positions.shape)), tokens)
            outputs, h, c = self.lstm(x, batch_sizes, h, c)
            yield PackedChunk(
                places[positions[:, boundaries:]],
                [layer[:, boundaries:] for layer in (x, *outputs)],
            )
            start, boundaries = start + positions.shape[1], 0

    @property
    def device(self) -> torch.device:
        """The device of the parameters. Pass token ids and word indices on the CPU, even if the network is on
        a GPU."""
        return next(self.parameters()).device

    def _index(self, rows: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self.device)

    def _with_boundaries(self, token_ids: Tensor) -> Tensor:
        return torch.cat([token_ids, self.token_ids(self.encoder.boundaries)])

    def _start_state(
        self, state: tuple[Tensor, Tensor] | None, packing: Packing
    ) -> tuple[Tensor, Tensor]:
        if state is not None:
            order = self._index(packing.order)
            return state[0][:, :, order], state[1][:, :, order]
        shape, zeros = (self.config.layers, 2, len(packing.order)), next(self.parameters()).new_zeros
        return zeros(*shape, self.config.projection), zeros(*shape, self.config.dim)


@contextlib.contextmanager
def plain_inference(device: torch.device) -> Iterator[None]:
    """Create a context for prediction, in which gradients, autocast and inference mode are off.

    Autocast would round the word vectors that a network for inference caches, and vectors from inference mode
    could not be used outside of it.
    """
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
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    starts = np.concatenate([[0], ends])[:-1]
    boundaries = np.stack([starts, ends], 1).ravel()
    return np.insert(
        np.asarray(type_of_word, dtype=np.int64),
        boundaries,
        np.tile([n_types, n_types + 1], len(ends)),
    )
