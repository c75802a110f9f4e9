"""The biLM: token encoder, two stacks of LSTM layers, and the layers of the words that they have read."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from .config import BiLMConfig
from .lstm import LSTMLayer
from .matmul_precision import Precision
from .packing import Lengths, Packing
from .words.token_cache import TokenCache
from .words.token_encoder import WordEncoder, token_encoder


@dataclass
class BiLMOutput:
    """What a biLM says of a batch of B sentences with N words."""

    layers: Tensor
    """(L+1, N, 2P), sentence after sentence, boundaries left out. Layer 0 is the token vector twice;
    layer l is [forward_l ; backward_l]."""
    state: tuple[Tensor, Tensor]
    """h (L, 2, B, P) and c (L, 2, B, C) after the last word read, sentences in the order given."""


@dataclass
class Reading:
    """What both directions have read and said, in packed order (see `Packing`)."""

    tokens: Tensor
    """(K + 2, P) vectors of the batch's distinct words, then of `<S>` and `</S>`."""
    sequence: np.ndarray
    """(N + 2B,) row of `tokens` at every place of the concatenated sequences `<S> w1 .. wn </S>`."""
    packing: Packing
    outputs: list[Tensor]
    """(2, M, P) for each LSTM layer, residual included."""
    state: tuple[Tensor, Tensor]
    """As of `BiLMOutput`."""


@dataclass
class Piece:
    """Some steps of both directions, boundaries left out: m packed rows."""

    words: np.ndarray
    """(2, m) which of the batch's N words each direction has read at each row."""
    layers: list[Tensor]
    """Layers 0 to L of these words, (2, m, P) each: the halves that the directions have read."""


class BiLM(nn.Module):
    """The network of Peters et al. 2018, by the numerics of bilm-tf `model.py`.

    It holds no state: what it returns depends on its arguments alone. A new one is random, drawn from torch's
    global generator by bilm-tf's rules.

    Args:
        config: the shape. A model with a word table or an alphabet also needs `set_names`.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = token_encoder(config)
        self.lstm = nn.ModuleList(LSTMLayer(config) for _ in range(config.layers))

    @torch.no_grad()
    def ready(self, precision: Precision) -> BiLM:
        """The same network for prediction: the matrices of the LSTM, which are multiplied at every step, are converted
        and laid out once, and on a CPU words read lately are not encoded again. It cannot be trained, and later changes
        of the parameters may not show in it.

        Args:
            precision: of the LSTM's products. Sums, gates, states and the token encoder stay float32.

        Raises:
            ValueError: the device cannot do it.
        """
        other = copy.copy(self)
        # A word table is a table already, and a GPU would wait for the CPU to look up words.
        remember = self.device.type == "cpu" and not isinstance(self.encoder, WordEncoder)
        layers = cast("Iterable[LSTMLayer]", self.lstm)
        modules: dict[str, Any] = {
            "encoder": TokenCache(self.encoder) if remember else self.encoder,
            "lstm": nn.ModuleList(layer.ready(precision) for layer in layers),
        }
        other._modules = modules
        return other

    def forget(self) -> None:
        """Forget the words read before, where they are remembered (`ready`)."""
        if isinstance(self.encoder, TokenCache):
            self.encoder.forget()

    def set_names(self, vocabulary: Sequence[str], alphabet: str = "") -> None:
        """Say which words and which characters the rows of the tables are (see `TokenEncoder.set_names`)."""
        self.encoder.set_names(vocabulary, alphabet)

    def token_ids(self, words: Sequence[str]) -> Tensor:
        """What the token encoder reads of each of K words: (K, ...) integers, such as character ids."""
        return self.encoder.ids(words)

    def read(
        self,
        types: Tensor,
        words: np.ndarray,
        lengths: Lengths,
        *,
        state: tuple[Tensor, Tensor] | None = None,
        closing: bool = False,
        dropout: float = 0.0,
    ) -> Reading:
        """Run both directions over a batch of sentences.

        Args:
            types: token ids of the K distinct words (`token_ids`): each is encoded once.
            words: (N,) row of `types` for every word, sentence after sentence.
            lengths: words of each of the B sentences; 0 is allowed.
            state: h (L, 2, B, P) and c (L, 2, B, C) before the first boundary; null: zeros.
            closing: read the closing boundaries too (see `Packing`).
            dropout: share of each LSTM layer's input that is set to zero (bilm-tf `training.py`).
        """
        tokens = self.encoder(self._with_boundaries(types).to(self.device))
        packing = Packing.of(lengths, closing=closing)
        sequence = _sequences(words, lengths, len(types))
        # Not tokens[...], whose backward pass adds up in another order each time when there are several threads.
        x = nn.functional.embedding(self._index(sequence[packing.reads]), tokens)
        h, c = self._first_state(state, packing)
        outputs = self._climb(x, packing.rows, h, c, dropout)
        back = self._index(np.argsort(packing.order))
        final = (torch.stack(h)[:, :, back], torch.stack(c)[:, :, back])
        return Reading(tokens, sequence, packing, outputs, final)

    def forward(
        self,
        types: Tensor,
        words: np.ndarray,
        lengths: Lengths,
        state: tuple[Tensor, Tensor] | None = None,
        *,
        closing: bool = False,
    ) -> BiLMOutput:
        """The layers of every word of a batch. Arguments as of `read`."""
        reading = self.read(types, words, lengths, state=state, closing=closing)
        token = nn.functional.embedding(self._index(words), reading.tokens)
        forward, backward = (self._index(rows) for rows in reading.packing.words)
        layers = [torch.cat([token, token], 1)]
        layers += [torch.cat([y[0, forward], y[1, backward]], 1) for y in reading.outputs]
        return BiLMOutput(layers=torch.stack(layers), state=reading.state)

    @torch.no_grad()
    def pieces(
        self,
        types: Tensor,
        words: np.ndarray,
        lengths: Lengths,
        max_words: int,
        *,
        state: tuple[Tensor, Tensor] | None = None,
    ) -> Iterator[Piece]:
        """The layers of every word of a batch, a few steps at a time, each direction from its own end.

        Every piece starts with the states that the one before ended with, so a sentence of any length is read in the
        memory of a piece, and as exactly as in one. There is no graph: no gradient flows out of a state.

        Args:
            types, words, lengths, state: as of `read`, but each word is encoded once a piece.
            max_words: about how many words each direction reads in a piece; it reads one step at least.
        """
        ids = self._with_boundaries(types)
        packing = Packing.of(lengths)
        sequence = _sequences(words, lengths, len(types))
        place = _sequences(np.arange(len(words)), lengths, len(words))
        h, c = self._first_state(state, packing)
        start, skipped = 0, len(lengths)  # the first step reads the boundaries
        for rows in packing.cut(max_words):
            reads = packing.reads[:, start : start + sum(rows)]
            own, x_rows = np.unique(sequence[reads], return_inverse=True)
            tokens = self.encoder(ids[torch.from_numpy(own)].to(self.device))
            x = nn.functional.embedding(self._index(x_rows.reshape(reads.shape)), tokens)
            layers = [x, *self._climb(x, rows, h, c)]
            yield Piece(place[reads[:, skipped:]], [layer[:, skipped:] for layer in layers])
            start, skipped = start + reads.shape[1], 0

    @property
    def device(self) -> torch.device:
        """Where the parameters are. Token ids and word rows are passed from the CPU."""
        return next(self.parameters()).device

    def _index(self, rows: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self.device)

    def _with_boundaries(self, types: Tensor) -> Tensor:
        return torch.cat([types, self.token_ids(self.encoder.boundaries)])

    def _climb(
        self, x: Tensor, rows: list[int], h: list[Tensor], c: list[Tensor], dropout: float = 0.0
    ) -> list[Tensor]:
        """What the LSTM layers say of packed rows; the states `h` and `c`, one for each layer, move on."""
        outputs = []
        for level, layer in enumerate(self.lstm):
            x = nn.functional.dropout(x, dropout, training=dropout > 0)
            y, h[level], c[level] = layer(x, rows, h[level], c[level])
            x = x + y if self.config.skip and level else y
            outputs.append(x)
        return outputs

    def _first_state(
        self, state: tuple[Tensor, Tensor] | None, packing: Packing
    ) -> tuple[list[Tensor], list[Tensor]]:
        if state is not None:
            order = self._index(packing.order)
            return list(state[0][:, :, order].unbind()), list(state[1][:, :, order].unbind())
        count, levels = len(packing.order), range(self.config.layers)
        zeros = next(self.parameters()).new_zeros
        h, c = (zeros((2, count, n)) for n in (self.config.projection, self.config.dim))
        return [h for _ in levels], [c for _ in levels]


def _sequences(words: np.ndarray, lengths: Lengths, n_types: int) -> np.ndarray:
    """Rows of [types ; <S> ; </S>] for the concatenated sequences `<S> w1 .. wn </S>`."""
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    starts = np.concatenate([[0], ends])[:-1]
    places = np.stack([starts, ends], 1).ravel()
    return np.insert(
        np.asarray(words, dtype=np.int64), places, np.tile([n_types, n_types + 1], len(ends))
    )
