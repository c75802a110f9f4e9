"""Token encoders, which convert a word to integers (character ids or a table row), and the integers to a
vector."""

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
from .character_cnn import CharacterCNN
from .dense import Dense

_OOV = "<oov>"


class TokenEncoder(Protocol):
    """Interface of token encoders, which compute layer 0 of the biLM, the context-free vectors of words."""

    boundaries: tuple[str, str]
    """The words that mark the start and the end of a sentence. Other docstrings call these words `<S>` and
    `</S>`."""

    @property
    def alphabet(self) -> str:
        """The characters in the table of code points, in the order of their rows. The first rows of the
        table are marks, which are not in the alphabet. The alphabet is empty if there is no such table."""

    def set_vocabulary(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Set the words of the word table and the characters of the table of code points, in the order of
        their rows.

        Raises:
            ValueError: a special token, such as `<S>`, is missing.
            ValueError: the number of words or characters differs from the number of rows of the table.
        """

    def ids(self, words: Sequence[str]) -> Tensor:
        """Return the input of the encoder for K words: (K, ...) integers, such as character ids."""

    def __call__(self, ids: Tensor, /) -> Tensor:
        """Compute the vectors of distinct words: (K, ...) -> (K, projection)."""


def token_encoder(config: BiLMConfig) -> TokenEncoder:
    """Create the token encoder that the configuration describes."""
    if config.has_lexicon:
        return LexiconEncoder(config)
    return WordEncoder(config) if config.n_words else CharEncoder(config)


class CharEncoder(CharacterCNN):
    """The token encoder of bilm-tf for characters: a character CNN over the bytes of a word, and a projection."""

    boundaries = (BOS, EOS)
    alphabet = ""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__(config, characters=N_CHARACTERS, padding=PADDING)
        # bilm-tf has no projection if the sizes are equal.
        has_projection = config.n_filters != config.projection or config.square_projections
        self.projection = Dense(config.n_filters, config.projection) if has_projection else None

    def set_vocabulary(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Do nothing: this encoder has no word table, and bytes need no alphabet."""

    def ids(self, words: Sequence[str]) -> Tensor:
        """Return the character ids of K words, (K, max_characters)."""
        return torch.from_numpy(char_ids(words, self.config.max_characters))

    def forward(self, ids: Tensor) -> Tensor:
        """Compute the vectors of distinct words: (K, max_characters) integers -> (K, projection)."""
        x = super().forward(ids)
        if self.projection is not None:
            x = self.projection(x)
        # Under autocast the products have a lower precision, but the result must have the type of the parameters.
        return x.to(self.characters.dtype)


class WordEncoder(nn.Module):
    """A token encoder that looks up word vectors in a table. bilm-tf models need this encoder if they have
    no `char_cnn`, or if their token embeddings were dumped to a file."""

    boundaries = (BOS, EOS)
    alphabet = ""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.empty(config.n_words, config.projection))
        self._row_of: dict[str, int] = {}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the table by Glorot's rule, which is the default of TensorFlow and bilm-tf."""
        nn.init.xavier_uniform_(self.words)

    def set_vocabulary(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Set the words of the table, in the order of its rows. `<S>`, `</S>` and `<UNK>` must be among the
        words."""
        self._row_of = _rows(vocabulary, len(self.words), (*self.boundaries, UNK))

    def ids(self, words: Sequence[str]) -> Tensor:
        """Return the table rows of K words, (K,). Unknown words get the row of `<UNK>`."""
        unknown = self._row_of[UNK]
        return torch.tensor([self._row_of.get(word, unknown) for word in words], dtype=torch.int64)

    def forward(self, ids: Tensor) -> Tensor:
        """Look up the vectors of distinct words: (K,) integers -> (K, projection)."""
        return nn.functional.embedding(ids, self.words)


class LexiconEncoder(nn.Module):
    """The token encoder of ELMoForManyLangs (`ConvTokenEmbedder`).

    The encoder concatenates the word vector and the features of a character CNN over code points, and
    projects the result. A model can lack either the word vectors or the features. A word is cut to
    `max_characters - 2` code points before the word is looked up.
    """

    boundaries = BOUNDARIES

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.words = self.cnn = None
        if config.n_words:
            self.words = nn.Parameter(torch.empty(config.n_words, config.word_dim))
        if config.n_symbols:
            self.cnn = CharacterCNN(config, characters=config.n_symbols, padding=ALPHABET_PADDING)
        features = config.n_filters if config.n_symbols else 0
        self.projection = Dense(config.word_dim + features, config.projection)
        self._row_of: dict[str, int] = {}
        self._alphabet = Alphabet("")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize word vectors as ELMoForManyLangs does: uniform, then scaled to length 1 (`embedding_layer.py`)."""
        if self.words is not None:
            nn.init.uniform_(self.words, -1.0, 1.0)
            with torch.no_grad():
                self.words.copy_(nn.functional.normalize(self.words))

    @property
    def alphabet(self) -> str:
        """The characters of the table of code points; see `TokenEncoder.alphabet`."""
        return self._alphabet.characters

    def set_vocabulary(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Set the words and characters of the tables, in the order of their rows. `<bos>`, `<eos>` and `<oov>` must be
        among the words."""
        marks = N_MARKS if self.cnn is not None else 0
        if marks + len(alphabet) != self.config.n_symbols:
            raise ValueError(
                f"The alphabet has {len(alphabet)} characters and {marks} marks, {marks + len(alphabet)} together, but"
                f" the character table has {self.config.n_symbols} rows"
            )
        self._alphabet = Alphabet(alphabet)
        if self.words is not None:
            self._row_of = _rows(vocabulary, len(self.words), (*self.boundaries, _OOV))

    def ids(self, words: Sequence[str]) -> Tensor:
        """Return the row of each word and the rows of its characters, (K, 1 + max_characters).

        If the model has no word vectors, the row of the word is missing: (K, max_characters). If the model
        has no characters, the rows of characters are missing: (K, 1).
        """
        size = self.config.max_characters
        columns = []
        if self.words is not None:
            unknown = self._row_of[_OOV]
            rows = [self._row_of.get(word[: size - 2], unknown) for word in words]
            columns.append(np.array(rows, dtype=np.int32).reshape(-1, 1))
        if self.cnn is not None:
            columns.append(self._alphabet.ids(words, size))
        return torch.from_numpy(np.concatenate(columns, 1))

    def forward(self, ids: Tensor) -> Tensor:
        """Compute the vectors of distinct words: (K, 1 + max_characters) integers -> (K, projection)."""
        features = []
        if self.words is not None:
            features.append(nn.functional.embedding(ids[:, 0], self.words))
        if self.cnn is not None:
            features.append(self.cnn(ids[:, -self.config.max_characters :]))
        return self.projection(torch.cat(features, 1)).to(self.projection.bias.dtype)


def _rows(names: Sequence[str], count: int, required: Sequence[str]) -> dict[str, int]:
    """Check the words of a word table, and return a dict from each word to its row."""
    rows = {name: row for row, name in enumerate(names)}
    if missing := [name for name in required if name not in rows]:
        raise ValueError(f"The vocabulary of a biLM with word input has no {', '.join(missing)}")
    if len(names) != count:
        raise ValueError(f"The vocabulary has {len(names)} words, but the table has {count} rows")
    return rows
