"""Use of a biLM as a language model: log-probabilities of tokens, and words that could replace a token."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab
from torch import Tensor

from ..bilm.head import log_softmax
from ..bilm.likelihood import (
    build_language_model,
    log_probabilities,
    opening_outputs,
    softmax_classes,
)
from ..bilm.model import MAX_WORDS, plain_inference
from ..bilm.spelling import BOS, EOS, UNK
from ..bilm.weights import Weights
from ..pipeline.encode.spans import Sequences, SpanGetter, rule_spans
from ..pretraining.config import Prepare
from ..pretraining.tokenize import PassageTokenizer
from ..text.passages import Passage
from ..weight_names import find_weights

Context: TypeAlias = Literal["before", "after", "both"]
"""Context that a prediction uses: the words of the sentence before the token, the words after it, or both."""

_CPU = torch.device("cpu")
_DIRECTIONS: dict[Context, list[int]] = {"before": [0], "after": [1], "both": [0, 1]}


class Substitute(NamedTuple):
    """A word that could replace a token."""

    word: str
    log_probability: float
    """Log-probability of the word in nats, normalized over all words of the vocabulary."""


@dataclass(frozen=True)
class TokenScores:
    """Log-probabilities of a Doc's tokens in nats."""

    forward: np.ndarray
    """Log-probability of each token given the tokens before it in its sentence, (n_tokens,) float32; nan for
    whitespace."""
    backward: np.ndarray
    """Log-probability of each token given the tokens after it in its sentence, (n_tokens,) float32; nan for
    whitespace."""
    unknown: np.ndarray
    """True for tokens outside the vocabulary, (n_tokens,) bool. The log-probability of such a token is the
    log-probability of `<UNK>`, the class of all unknown words. This value says how probable any unknown word
    is, not how probable this word is."""
    closing: np.ndarray
    """Log-probability of the end of each sentence (`</S>`, forward) and of its start (`<S>`, backward),
    (2, n_sentences) float32."""


class LanguageModel:
    """Language model that scores the tokens of Docs and finds substitutes for them.

    Args:
        weights: weights with a softmax layer (head).
        get_spans: function that returns the sentences of Docs, as Spans that do not overlap. Default: the
            rule that `elmo` and `prepare` use.
    """

    def __init__(self, weights: Weights, *, get_spans: SpanGetter = rule_spans) -> None:
        bilm, head = build_language_model(weights)
        with plain_inference(_CPU):
            self._bilm = bilm.prepare_for_inference("float32")
            self._head = head.prepare_for_inference()
            self._opening = opening_outputs(self._bilm)
        self._vocabulary = weights.vocabulary
        self._rows = {word: row for row, word in enumerate(weights.vocabulary)}
        self._special_rows = torch.tensor([self._rows[word] for word in (BOS, EOS, UNK)])
        self._get_spans = get_spans

    @classmethod
    def from_file(cls, weights: str | Path) -> LanguageModel:
        """Load a language model from a weights file.

        Args:
            weights: path of a weights file, or name of a bundled or installed biLM.
        """
        return cls(Weights.load(find_weights(str(weights))))

    def score(self, doc: Doc) -> TokenScores:
        """Compute the log-probabilities of a Doc's tokens in both directions, with the full softmax."""
        sequences = self._sequences(doc)
        with plain_inference(_CPU):
            types = self._bilm.encode_words(sequences.types)
            classes = softmax_classes(sequences.types, self._rows, self._bilm.spelling)
            words = np.full((2, len(doc)), np.nan, dtype=np.float32)
            closing = np.empty((2, len(sequences.lengths)), dtype=np.float32)
            starts = np.cumsum(sequences.lengths) - sequences.lengths
            for lengths, batch in sequences.batches(MAX_WORDS):
                scores = log_probabilities(
                    self._bilm, self._head, types, classes, sequences.type_of_word[batch], lengths,
                    max_words=MAX_WORDS,
                )  # fmt: skip
                words[:, sequences.tokens[batch]] = scores.words
                # Batches are sorted by length, not in the order of the text.
                spans = np.searchsorted(starts, batch[np.cumsum(lengths) - lengths])
                closing[:, spans] = scores.closing
        unknown = np.zeros(len(doc), dtype=bool)
        unknown[sequences.tokens] = classes[sequences.type_of_word] == self._rows[UNK]
        return TokenScores(words[0], words[1], unknown, closing)

    def substitutes(self, token: Token, n: int = 10, context: Context = "both") -> list[Substitute]:
        """Return the n most probable words to replace a token, best first. See `all_substitutes`."""
        return self.all_substitutes(token.doc[token.i : token.i + 1], n, context)[0]

    def all_substitutes(
        self, tokens: Doc | Span, n: int = 10, context: Context = "both"
    ) -> list[list[Substitute]]:
        """Return the n most probable words to replace each token, best first. Whitespace tokens have no
        substitutes.

        The token's own word is left out. With `context` "before", the forward LSTM predicts, with "after" the
        backward LSTM. With "both", the probability of a word w is proportional to p(w | words before) p(w |
        words after). The product counts the unigram frequency of w twice. A division by p(w) would correct
        this, but a weights file has no word counts. The probabilities of all words except `<S>`, `</S>` and
        `<UNK>` sum to 1.
        """
        doc = tokens.doc
        start = tokens.start if isinstance(tokens, Span) else 0
        places = np.array([t.i for t in tokens if not t.is_space], dtype=np.int64)
        sequences = self._sequences(doc)
        substitutes: list[list[Substitute]] = [[] for _ in tokens]
        # Memory holds four blocks of logits: of the two directions, of their sum and of its log-softmax.
        rows = max(1, self._head.rows_per_block // 4)
        with plain_inference(_CPU):
            contexts = self._contexts(sequences, places)[_DIRECTIONS[context]]
            for first in range(0, len(places), rows):
                block = places[first : first + rows].tolist()
                words = self._bilm.spelling([doc[i].text for i in block])
                own = [self._rows.get(word, -1) for word in words]
                best = self._best(contexts[:, first : first + rows], own, n)
                for place, found in zip(block, best, strict=True):
                    substitutes[place - start] = found
        return substitutes

    def _sequences(self, doc: Doc) -> Sequences:
        sequences = Sequences.of([doc], self._get_spans)
        if sequences.overlap:
            raise ValueError(
                "The Spans of get_spans overlap, but each token must be in only one. Use a get_spans without overlaps"
            )
        return sequences

    def _contexts(self, sequences: Sequences, places: np.ndarray) -> Tensor:
        """For each of n positions in the Doc, return the output of each direction's top LSTM layer just before the
        direction processes the token, (2, n, projection)."""
        # Only the sentences of these tokens are processed.
        span_of_token = np.repeat(np.arange(len(sequences.lengths)), sequences.lengths)
        spans = np.unique(span_of_token[np.isin(sequences.tokens, places)])
        is_needed = np.isin(span_of_token, spans)
        sequences = dataclasses.replace(
            sequences,
            lengths=sequences.lengths[spans],
            type_of_word=sequences.type_of_word[is_needed],
            tokens=sequences.tokens[is_needed],
        )
        types = self._bilm.encode_words(sequences.types)
        slots = np.full(sequences.n_tokens, -1)
        slots[places] = np.arange(len(places))
        contexts = self._opening[:, None].repeat(1, len(places), 1)
        for lengths, batch in sequences.batches(MAX_WORDS):
            targets = _next_slots(slots[sequences.tokens[batch]], lengths)
            chunks = self._bilm.forward_chunks(
                types, sequences.type_of_word[batch], lengths, MAX_WORDS
            )
            for chunk in chunks:
                for direction, hidden in enumerate(torch.from_dlpack(chunk.layers[-1])):
                    slot = torch.from_numpy(targets[direction, chunk.places[direction]])
                    contexts[direction, slot[slot >= 0]] = hidden[slot >= 0]
        return contexts

    def _best(self, contexts: Tensor, excluded: list[int], n: int) -> list[list[Substitute]]:
        """Return the n most probable words in each of m contexts, (directions, m, projection), without the word of
        each that `excluded` tells by its index in the vocabulary; -1: no word."""
        scores = sum(map(self._head.log_softmax, contexts[1:]), self._head.log_softmax(contexts[0]))
        scores[:, self._special_rows] = -torch.inf
        scores = log_softmax(scores)
        for row, word in enumerate(excluded):
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


def docs_of(passages: Iterable[Passage], settings: Prepare) -> Iterator[Doc]:
    """Yield a Doc for each passage that has words, with the tokens and sentences of pretraining."""
    tokenize, vocab = PassageTokenizer(settings), Vocab()
    for passage in passages:
        text = tokenize([passage])
        if len(text.words):
            starts = np.zeros(len(text.words), dtype=bool)
            starts[np.cumsum(text.lengths) - text.lengths] = True
            words = [text.types[word] for word in text.words.tolist()]
            yield Doc(vocab, words=words, sent_starts=starts.tolist())


def _next_slots(slots: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the slots of the next and of the previous word of each of N words in its sentence, (2, N). The slot of a
    word is its index in the result of `_contexts`; -1: there is no such word, or the word needs no context."""
    ends = np.cumsum(lengths)
    following, before = np.roll(slots, -1), np.roll(slots, 1)
    following[ends - 1] = -1
    before[ends - lengths] = -1
    return np.stack([following, before])
