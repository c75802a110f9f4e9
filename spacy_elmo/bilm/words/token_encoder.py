"""Context-free token vectors: what a word is read as, and how that becomes a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ..config import BiLMConfig
from .alphabet import BOUNDARIES, N_MARKS, Alphabet
from .alphabet import PADDING as ALPHABET_PADDING
from .char_ids import BOS, EOS, N_CHARACTERS, PADDING, UNK, char_ids
from .character_cnn import Affine, CharacterCNN

_OOV = "<oov>"


class TokenEncoder(Protocol):
    """What a biLM asks of the module that reads its words."""

    boundaries: tuple[str, str]
    """The words that are read at the start and at the end of a sentence, wherever `<S>` and `</S>` are spoken of."""

    @property
    def alphabet(self) -> str:
        """The characters of the rows after the marks; empty where characters are bytes, or none are read."""

    def set_names(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Say which words and which characters the rows of the tables are, where there are such tables.

        Raises:
            ValueError: a special word is missing, or the number of names is not that of the rows.
        """

    def ids(self, words: Sequence[str]) -> Tensor:
        """What is read of each of K words: (K, ...) integers."""

    def __call__(self, ids: Tensor, /) -> Tensor:
        """Vectors of distinct words: (K, ...) -> (K, projection)."""


def token_encoder(config: BiLMConfig) -> TokenEncoder:
    """The kind that the configuration describes."""
    if config.has_lexicon:
        return LexiconEncoder(config)
    return WordEncoder(config) if config.words else CharEncoder(config)


class CharEncoder(CharacterCNN):
    """Features of the bytes of a word -> projection: bilm-tf's character input."""

    boundaries = (BOS, EOS)
    alphabet = ""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__(config, characters=N_CHARACTERS, padding=PADDING)
        # bilm-tf creates no projection where the sizes already agree.
        wanted = config.n_filters != config.projection or config.square_projections
        self.projection = Affine(config.n_filters, config.projection) if wanted else None

    def set_names(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Bytes need no names; a vocabulary is that of a head."""

    def ids(self, words: Sequence[str]) -> Tensor:
        """(K, max_characters) character ids."""
        return torch.from_numpy(char_ids(words, self.config.max_characters))

    def forward(self, ids: Tensor) -> Tensor:
        """(K, max_characters) integers -> (K, projection)."""
        x = super().forward(ids)
        if self.projection is not None:
            x = self.projection(x)
        # Under autocast the products are of lower precision, but what leaves the encoder is not.
        return x.to(self.characters.dtype)


class WordEncoder(nn.Module):
    """A table of token vectors: the input of a bilm-tf model without `char_cnn`, and of its token caches."""

    boundaries = (BOS, EOS)
    alphabet = ""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.empty(config.words, config.projection))
        self._rows: dict[str, int] = {}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """TensorFlow's default (Glorot), as bilm-tf leaves it."""
        nn.init.xavier_uniform_(self.words)

    def set_names(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Name the rows of the table, `<S>`, `</S>` and `<UNK>` among them."""
        self._rows = _rows(vocabulary, len(self.words), (*self.boundaries, UNK))

    def ids(self, words: Sequence[str]) -> Tensor:
        """(K,) rows of the table; words without one are `<UNK>`."""
        unknown = self._rows[UNK]
        return torch.tensor([self._rows.get(word, unknown) for word in words], dtype=torch.int64)

    def forward(self, ids: Tensor) -> Tensor:
        """(K,) integers -> (K, projection)."""
        return nn.functional.embedding(ids, self.words)


class LexiconEncoder(nn.Module):
    """[word vector ; features of the code points] -> projection: ELMoForManyLangs' `ConvTokenEmbedder`.

    Either part may be absent. A word is cut to the positions that there are, and then looked up.
    """

    boundaries = BOUNDARIES

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.words = self.cnn = None
        if config.words:
            self.words = nn.Parameter(torch.empty(config.words, config.word_dim))
        if config.symbols:
            self.cnn = CharacterCNN(config, characters=config.symbols, padding=ALPHABET_PADDING)
        features = config.n_filters if config.symbols else 0
        self.projection = Affine(config.word_dim + features, config.projection)
        self._rows: dict[str, int] = {}
        self._alphabet = Alphabet("")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The start of its word vectors: uniform, then of length 1 (`embedding_layer.py`)."""
        if self.words is not None:
            nn.init.uniform_(self.words, -1.0, 1.0)
            with torch.no_grad():
                self.words.copy_(nn.functional.normalize(self.words))

    @property
    def alphabet(self) -> str:
        """The characters of the rows after the marks."""
        return self._alphabet.characters

    def set_names(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Name the rows of the tables, `<bos>`, `<eos>` and `<oov>` among those of the words."""
        marks = N_MARKS if self.cnn is not None else 0
        if marks + len(alphabet) != self.config.symbols:
            raise ValueError(
                f"{len(alphabet)} characters and {marks} marks for a table of {self.config.symbols} rows"
            )
        self._alphabet = Alphabet(alphabet)
        if self.words is not None:
            self._rows = _rows(vocabulary, len(self.words), (*self.boundaries, _OOV))

    def ids(self, words: Sequence[str]) -> Tensor:
        """(K, 1 + max_characters): the row of the word, then those of its characters; what is not read is left out."""
        size = self.config.max_characters
        columns = []
        if self.words is not None:
            unknown = self._rows[_OOV]
            rows = [self._rows.get(word[: size - 2], unknown) for word in words]
            columns.append(np.array(rows, dtype=np.int32).reshape(-1, 1))
        if self.cnn is not None:
            columns.append(self._alphabet.ids(words, size))
        return torch.from_numpy(np.concatenate(columns, 1))

    def forward(self, ids: Tensor) -> Tensor:
        """(K, 1 + max_characters) integers -> (K, projection)."""
        parts = []
        if self.words is not None:
            parts.append(nn.functional.embedding(ids[:, 0], self.words))
        if self.cnn is not None:
            parts.append(self.cnn(ids[:, -self.config.max_characters :]))
        return self.projection(torch.cat(parts, 1)).to(self.projection.weight.dtype)


def _rows(names: Sequence[str], count: int, needed: Sequence[str]) -> dict[str, int]:
    """The row of each word of a table."""
    rows = {name: row for row, name in enumerate(names)}
    if missing := [name for name in needed if name not in rows]:
        raise ValueError(f"The vocabulary of a biLM with word input lacks {', '.join(missing)}")
    if len(names) != count:
        raise ValueError(f"{len(names)} words for a table of {count} rows")
    return rows
