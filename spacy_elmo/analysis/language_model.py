"""A biLM as what it was trained to be: a model of which word comes next, and which came before."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc, Span, Token
from torch import Tensor

from ..bilm.likelihood import (
    build_language_model,
    log_probabilities,
    opening_states,
    softmax_classes,
)
from ..bilm.weights import Weights
from ..bilm.words.char_ids import BOS, EOS, UNK
from ..pipeline.bundled import find_weights
from ..pipeline.options import BiLMOptions
from ..pipeline.reading.sequences import Sequences
from ..pipeline.reading.spans import SpanGetter, rule_spans

_CPU = torch.device("cpu")


class Substitute(NamedTuple):
    """A word for the place of another."""

    word: str
    log_probability: float
    """In nats, among all words of the vocabulary."""


@dataclass(frozen=True)
class TokenScores:
    """Log-probabilities of a Doc's tokens in nats."""

    forward: np.ndarray
    """(n_tokens,) float32, of each token given the tokens before it in its sentence; nan for whitespace."""
    backward: np.ndarray
    """(n_tokens,) float32, of each token given the tokens after it in its sentence; nan for whitespace."""
    unknown: np.ndarray
    """(n_tokens,) bool: the word is none of the vocabulary, and its figures are those of `<UNK>`, which stands for all
    such words together. They say how expected a rare word is here, not how expected this one is."""
    closing: np.ndarray
    """(2, n_sentences) float32, of the end of each sentence (`</S>`, forward) and of its start (`<S>`, backward)."""


class LanguageModel:
    """Scores of tokens, and their substitutes, from a weights file with a head.

    Args:
        weights: ours, with a head.
        get_spans: which spans of a Doc are read as sentences of their own; they must not overlap. The default is the
            rule by which `elmo` reads and `prepare` cuts.
        max_batch_tokens: words read at a time.

    Raises:
        ValueError: the weights have no head.
    """

    def __init__(
        self,
        weights: Weights,
        *,
        get_spans: SpanGetter = rule_spans,
        max_batch_tokens: int = BiLMOptions.max_batch_tokens,
        device: torch.device = _CPU,
    ) -> None:
        bilm, head = build_language_model(weights)
        self._bilm, self._head = bilm.to(device), head.to(device)
        self._vocabulary = weights.vocabulary
        self._rows = {word: row for row, word in enumerate(weights.vocabulary)}
        self._no_words = torch.tensor([self._rows[word] for word in (BOS, EOS, UNK)], device=device)
        self._get_spans = get_spans
        self._max_batch_tokens = max_batch_tokens

    @classmethod
    def from_file(cls, weights: str | Path) -> LanguageModel:
        """The language model of a bundled biLM, by its name, or of a weights file, by its path, such as the
        model-best.safetensors of a pretraining run.

        Raises:
            OSError: there is no such file, or it cannot be read.
            ValueError: it is no weights file of ours, or has no head.
        """
        return cls(Weights.load(find_weights(str(weights))))

    def score(self, doc: Doc) -> TokenScores:
        """The log-probability of every token of a Doc, from either side, under the full softmax.

        Raises:
            ValueError: the spans overlap.
        """
        sequences = self._sequences(doc)
        types = self._bilm.token_ids(sequences.words)
        classes = softmax_classes(sequences.words, self._rows)
        words = np.full((2, len(doc)), np.nan, dtype=np.float32)
        unknown = np.zeros(len(doc), dtype=bool)
        unknown[sequences.places] = classes[sequences.rows] == self._rows[UNK]
        closing = np.empty((2, len(sequences.lengths)), dtype=np.float32)
        starts = np.cumsum(sequences.lengths) - sequences.lengths
        for lengths, batch in sequences.batches(self._max_batch_tokens):
            found = log_probabilities(
                self._bilm, self._head, types, classes, sequences.rows[batch], lengths,
                max_words=self._max_batch_tokens,
            )  # fmt: skip
            words[:, sequences.places[batch]] = found.words
            # Batches are of like length, not in the order of the text.
            spans = np.searchsorted(starts, batch[np.cumsum(lengths) - lengths])
            closing[:, spans] = found.closing
        return TokenScores(words[0], words[1], unknown, closing)

    def substitutes(self, token: Token, n: int = 10) -> list[Substitute]:
        """The n words that fit best in the place of a token, best first; the token itself is not among them.

        As of `all_substitutes`.
        """
        return self.all_substitutes(token.doc[token.i : token.i + 1], n)[0]

    def all_substitutes(self, tokens: Doc | Span, n: int = 10) -> list[list[Substitute]]:
        """The n words that fit best in the place of each token; an empty list for whitespace.

        Both directions vote: p(w) is proportional to p(w | words before) p(w | words after), over all words of the
        vocabulary but `<S>`, `</S>` and `<UNK>`, and sums to 1 over them. Words that are frequent everywhere have two
        votes for that: dividing by p(w) would take one back, but a weights file holds no counts.

        Raises:
            ValueError: the spans overlap.
        """
        doc = tokens.doc
        start = tokens.start if isinstance(tokens, Span) else 0
        places = np.array([t.i for t in tokens if not t.is_space], dtype=np.int64)
        contexts = self._contexts(self._sequences(doc), places)
        found: list[list[Substitute]] = [[] for _ in tokens]
        # Two directions, their sum and its logarithm: four blocks of logits at a time.
        rows = max(1, self._head.rows_per_block // 4)
        for block in np.split(np.arange(len(places)), range(rows, len(places), rows)):
            own = [self._rows.get(doc[i].text, -1) for i in places[block].tolist()]
            best = self._best(contexts[:, torch.from_numpy(block)], own, n)
            for place, words in zip(places[block].tolist(), best, strict=True):
                found[place - start] = words
        return found

    def _sequences(self, doc: Doc) -> Sequences:
        sequences = Sequences.of([doc], self._get_spans)
        if sequences.overlap:
            raise ValueError(
                "get_spans gave spans that overlap, and a token has one score: choose spans that do not"
            )
        return sequences

    @torch.no_grad()
    def _contexts(self, sequences: Sequences, places: np.ndarray) -> Tensor:
        """(2, n, P) what the directions say of n places, each before it has read the word there."""
        owner = np.repeat(np.arange(len(sequences.lengths)), sequences.lengths)
        spans = np.unique(owner[np.isin(sequences.places, places)])
        read = np.isin(owner, spans)
        sequences = dataclasses.replace(
            sequences,
            lengths=sequences.lengths[spans],
            rows=sequences.rows[read],
            places=sequences.places[read],
        )
        types = self._bilm.token_ids(sequences.words)
        slots = np.full(sequences.tokens, -1)
        slots[places] = np.arange(len(places))
        contexts = opening_states(self._bilm)[:, None].repeat(1, len(places), 1)
        for lengths, batch in sequences.batches(self._max_batch_tokens):
            wanted = _neighbours(slots[sequences.places[batch]], lengths)
            pieces = self._bilm.forward_chunks(
                types, sequences.rows[batch], lengths, self._max_batch_tokens
            )
            for piece in pieces:
                for direction, hidden in enumerate(piece.layers[-1]):
                    slot = torch.from_numpy(wanted[direction, piece.words[direction]])
                    contexts[direction, slot[slot >= 0]] = hidden[slot >= 0]
        return contexts

    @torch.no_grad()
    def _best(self, contexts: Tensor, own: list[int], n: int) -> list[list[Substitute]]:
        """The best words for contexts (2, m, P), of which `own` (m,) are not wanted; -1: none."""
        scores = self._head.log_softmax(contexts[0]) + self._head.log_softmax(contexts[1])
        scores[:, self._no_words] = -torch.inf
        scores = scores.log_softmax(1)
        for row, word in enumerate(own):
            if word >= 0:
                scores[row, word] = -torch.inf
        top = scores.topk(min(n, scores.shape[1]), dim=1)
        return [
            [
                Substitute(self._vocabulary[word], value)
                for word, value in zip(words, values, strict=True)
                if value > -torch.inf
            ]
            for words, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]


def _neighbours(slots: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(2, N) the slot of the word that each direction meets after each of N words; -1 at the end of a sentence."""
    ends = np.cumsum(lengths)
    following, before = np.roll(slots, -1), np.roll(slots, 1)
    following[ends - 1] = -1
    before[ends - lengths] = -1
    return np.stack([following, before])
