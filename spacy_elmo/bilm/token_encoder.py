"""Token encoders. They convert a word to integers (character ids, or an index into a vocabulary), and these
integers to a vector. A cache keeps the vectors of frequent words, so that they are not encoded in every batch."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .character_cnn import CharacterCNN, Dense, prepack
from .config import N_MARKS, BiLMConfig, Precision
from .spelling import BOS, EOS, MANY_LANGS_BOUNDARIES, UNK

# The first 256 ids of bilm-tf are the bytes themselves. In bilm-tf's serving graph all ids are larger by one, because
# row 0 pads sentences. Here sentences are packed, so this row is not needed.
_SENTENCE_START, _SENTENCE_END, _WORD_START, _WORD_END, BYTE_PADDING = range(256, 261)
N_BYTE_IDS = 261
"""Number of character ids of bilm-tf: 256 bytes and 5 marks."""
_OOV = "<oov>"
# A very long text has too many types for the memory of one call.
_WORDS_PER_BLOCK = 4096
# 32,768 types cover 97 % of English words in running text; with vectors of width 128 a full cache takes 21 MB.
_CAPACITY = 1 << 15


class TokenEncoder(nn.Module, ABC):
    """Base class of token encoders, which compute layer 0 of the biLM, the context-free vectors of words. Calling
    the module computes the vectors of words, (words, projection), from the result of the method `ids`, which may be on
    the CPU, even if the module is on a GPU."""

    boundaries: tuple[str, str] = (BOS, EOS)
    """The words that mark the start and the end of a sentence, such as `<S>` and `</S>`."""

    @property
    def alphabet(self) -> str:
        """The characters that have a vector, in the order of their ids. The alphabet is empty if the encoder
        reads bytes or no characters."""
        return ""

    def set_vocabulary(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Set the words and the characters of the embedding matrices, in the order of the rows. An encoder that
        has no such matrix ignores them."""

    @abstractmethod
    def ids(self, words: Sequence[str]) -> Tensor:
        """Return the token ids of each word: integers, (words, ids per word) or, with one id per word,
        (words,)."""

    def vectors(self, words: Sequence[str]) -> Tensor:
        """Return word vectors, (words, projection)."""
        if len(words) <= _WORDS_PER_BLOCK:
            return self(self.ids(words))
        starts = range(0, len(words), _WORDS_PER_BLOCK)
        parts = [words[start : start + _WORDS_PER_BLOCK] for start in starts]
        return torch.cat([self.vectors(part) for part in parts])

    def prepare_for_inference(self, precision: Precision) -> nn.Module:
        """Return a token encoder for prediction only, on a CPU, with prepacked matrices and a cache of vectors."""
        return TokenCache(prepack(self, getattr(torch, precision)))


def token_encoder(config: BiLMConfig) -> TokenEncoder:
    """Create the token encoder that the configuration describes."""
    if config.is_many_langs:
        return ManyLangsEncoder(config)
    return WordEncoder(config) if config.n_words else CharEncoder(config)


class CharEncoder(CharacterCNN, TokenEncoder):
    """The token encoder of bilm-tf for characters: a character CNN over a word's bytes, and a projection."""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__(config, characters=N_BYTE_IDS, padding=BYTE_PADDING)
        # bilm-tf has no projection if the sizes are equal.
        has_projection = config.n_filters != config.projection or config.square_projections
        self.projection = Dense(config.n_filters, config.projection) if has_projection else None

    def ids(self, words: Sequence[str]) -> Tensor:
        """Return the character ids of each word, (words, max_characters)."""
        return torch.from_numpy(char_ids(words, self.config.max_characters))

    def forward(self, ids: Tensor) -> Tensor:
        """Compute word vectors from character ids: (words, max_characters) -> (words, projection)."""
        x = super().forward(ids)
        # Under autocast the products have a lower precision, but the result must have the type of the parameters.
        return x.to(self.characters.dtype)


class WordEncoder(TokenEncoder):
    """A token encoder that looks up word vectors in an embedding matrix. It is for bilm-tf models
    without a character CNN, and for bilm-tf models with word vectors that were dumped to a file."""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.empty(config.n_words, config.projection))
        self._row_of: dict[str, int] = {}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the word vectors by Glorot's rule, which is the default of TensorFlow and bilm-tf."""
        nn.init.xavier_uniform_(self.words)

    def set_vocabulary(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Set the words of the embedding matrix, in the order of its rows. `<S>`, `</S>` and `<UNK>` must be
        among the words. `alphabet` is ignored."""
        self._row_of = _rows(vocabulary, len(self.words), (*self.boundaries, UNK))

    def ids(self, words: Sequence[str]) -> Tensor:
        """Return the row of each word in the embedding matrix, (words,). Unknown words get the row of
        `<UNK>`."""
        unknown = self._row_of[UNK]
        rows = [self._row_of.get(word, unknown) for word in words]
        return torch.tensor(rows, dtype=torch.int64, device="cpu")

    def prepare_for_inference(self, precision: Precision) -> nn.Module:
        """Return this encoder, because a look-up needs no cache."""
        return self

    def forward(self, ids: Tensor) -> Tensor:
        """Look up rows of the embedding matrix: (words,) integers -> (words, projection)."""
        return nn.functional.embedding(ids.to(self.words.device), self.words)


class ManyLangsEncoder(TokenEncoder):
    """The token encoder of ELMoForManyLangs (`ConvTokenEmbedder`).

    The encoder concatenates a word vector from an embedding matrix and the features of a character CNN over
    code points, and projects the result. A model can lack either the word vectors or the character CNN. A
    word is cut to `max_characters - 2` code points before its vector is looked up.
    """

    boundaries = MANY_LANGS_BOUNDARIES

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.words = self.cnn = None
        if config.n_words:
            self.words = nn.Parameter(torch.empty(config.n_words, config.word_dim))
        if config.n_symbols:
            self.cnn = CharacterCNN(config, characters=config.n_symbols, padding=Alphabet.PADDING)
        features = config.n_filters if config.n_symbols else 0
        self.projection = Dense(config.word_dim + features, config.projection)
        self._row_of: dict[str, int] = {}
        self._alphabet = Alphabet("")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize word vectors as ELMoForManyLangs does: uniform, then scaled to length 1."""
        if self.words is not None:
            nn.init.uniform_(self.words, -1.0, 1.0)
            with torch.no_grad():
                self.words.copy_(nn.functional.normalize(self.words))

    @property
    def alphabet(self) -> str:
        return self._alphabet.characters

    def set_vocabulary(self, vocabulary: Sequence[str], alphabet: str) -> None:
        """Set the words and the characters of the embedding matrices, in the order of the rows. `<bos>`,
        `<eos>` and `<oov>` must be among the words."""
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
        """Return the row of each word in the embedding matrix, followed by the character ids of the word:
        (words, 1 + max_characters).

        If the model has no word vectors, the result is (words, max_characters). If the model has no character
        CNN, the result is (words, 1).
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
        """Compute word vectors, (words, projection), from the result of the method `ids`."""
        features, ids = [], ids.to(self.projection.bias.device)
        if self.words is not None:
            features.append(nn.functional.embedding(ids[:, 0], self.words))
        if self.cnn is not None:
            features.append(self.cnn(ids[:, -self.config.max_characters :]))
        return self.projection(torch.cat(features, 1)).to(self.projection.bias.dtype)


def char_ids(words: Sequence[str], max_characters: int) -> np.ndarray:
    """Return the bytes of each word, (words, max_characters) int16, by the rule of bilm-tf
    (`data.py:UnicodeCharsVocabulary`).

    The ids of a word are a mark for its start, its bytes in UTF-8, a mark for its end, and padding. A word is
    cut to its first `max_characters - 2` bytes, as in bilm-tf, even if the cut splits a character. `<S>` and
    `</S>` are each encoded as one special character. An unpaired surrogate, which UTF-8 cannot encode,
    becomes `?`.
    """
    max_bytes = max_characters - 2
    raw = [word.encode("utf8", "replace")[:max_bytes] for word in words]
    lengths = np.fromiter(map(len, raw), dtype=np.int64, count=len(raw))
    ids = np.full((len(raw), max_characters), BYTE_PADDING, dtype=np.int16)
    positions = np.arange(max_bytes)
    ids[:, 1:-1][positions < lengths[:, None]] = np.frombuffer(b"".join(raw), dtype=np.uint8)
    ids[:, 0] = _WORD_START
    ids[np.arange(len(raw)), lengths + 1] = _WORD_END
    for boundary, character in ((BOS, _SENTENCE_START), (EOS, _SENTENCE_END)):
        rows = [row for row, word in enumerate(words) if word == boundary]
        ids[rows] = BYTE_PADDING
        ids[rows, :3] = (_WORD_START, character, _WORD_END)
    return ids


class Alphabet:
    """Mapping from characters (Unicode code points) to character ids, which are row indices of the matrix of
    character vectors, by the rule of ELMoForManyLangs (`elmo.py:read_list`, `frontend.py`). All characters
    outside the alphabet have the same id.

    Args:
        characters: the characters in the order of their ids. The first character has the id `N_MARKS`. The
            smaller ids are for marks, such as the start of a word.
    """

    # The converter maps the symbols of ELMoForManyLangs' files to these ids.
    SENTENCE_START, SENTENCE_END, UNKNOWN, PADDING, WORD_START, WORD_END = range(N_MARKS)

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self._rows = {character: row for row, character in enumerate(characters, N_MARKS)}
        marks = self.SENTENCE_START, self.SENTENCE_END
        self._boundaries = {
            word: [mark] for word, mark in zip(MANY_LANGS_BOUNDARIES, marks, strict=True)
        }

    def ids(self, words: Sequence[str], max_characters: int) -> np.ndarray:
        """Return the character ids of each word, (words, max_characters) int32.

        The ids of a word are a mark for its start, its characters, a mark for its end, and padding. A word is
        cut to its first `max_characters - 2` characters. `<bos>` and `<eos>` are each encoded as one special
        character.
        """
        ids = np.full((len(words), max_characters), self.PADDING, dtype=np.int32)
        for row, word in zip(ids, words, strict=True):
            word = word[: max_characters - 2]
            inner = self._boundaries.get(word) or [self._rows.get(c, self.UNKNOWN) for c in word]
            row[: len(inner) + 2] = [self.WORD_START, *inner, self.WORD_END]
        return ids


def _rows(names: Sequence[str], count: int, required: Sequence[str]) -> dict[str, int]:
    """Return a dict from each word to its row in the embedding matrix. Raise an error if a required word is
    missing, or if the number of words is not `count`."""
    rows = {name: row for row, name in enumerate(names)}
    if missing := [name for name in required if name not in rows]:
        raise ValueError(f"The vocabulary of a biLM with word input has no {', '.join(missing)}")
    if len(names) != count:
        raise ValueError(f"The vocabulary has {len(names)} words, but the table has {count} rows")
    return rows


class TokenCache(nn.Module):
    """A token encoder with a cache of word vectors, for prediction on the CPU. If the parameters of the
    encoder change, create a new cache.

    The cache has no lock, because a forked process could inherit a lock that is never released. Threads can
    still share the cache, because each vector is stored before its key is added, and is never changed. A full
    cache is replaced by an empty one.

    Args:
        encoder: the token encoder for words that are not in the cache.
        capacity: largest number of words in the cache.
    """

    def __init__(self, encoder: CharEncoder | ManyLangsEncoder, capacity: int = _CAPACITY) -> None:
        super().__init__()
        self.encoder = encoder
        self.boundaries = encoder.boundaries
        self._capacity = capacity
        # Later characters change no id, and very long words would take memory.
        self._longest = encoder.config.max_characters + 2
        self._store: _Store | None = None

    def clear(self) -> None:
        """Remove all words from the cache."""
        self._store = None

    def vectors(self, words: Sequence[str]) -> np.ndarray:
        """Return word vectors, (words, projection), from the cache or from the encoder."""
        keys, store = [word[: self._longest] for word in words], self._store
        if store is None:
            vectors = self._encode(keys)
            store = self._store = _Store(self._capacity, vectors)
            store.add(keys, vectors)
            return vectors
        rows = store.find(keys)
        vectors = store.vectors[rows]
        if missing := [index for index, row in enumerate(rows) if row < 0]:
            new = [keys[index] for index in missing]
            encoded = vectors[missing] = self._encode(new)
            if len(store) + len(new) > self._capacity:
                store = self._store = _Store(self._capacity, vectors)
                store.add(keys, vectors)
            else:
                store.add(new, encoded)
        return vectors

    @torch.no_grad()
    def _encode(self, words: Sequence[str]) -> np.ndarray:
        return self.encoder.vectors(words).numpy()


class _Store:
    """A matrix of word vectors, with a dict from each word to a row. Vectors are never changed or
    removed.

    Args:
        capacity: number of rows of the matrix.
        like: array with the same number of columns and the same data type.
    """

    def __init__(self, capacity: int, like: np.ndarray) -> None:
        self.vectors = np.empty((capacity, like.shape[1]), dtype=like.dtype)
        self._rows: dict[str, int] = {}
        self._free = iter(range(capacity))
        self._filled = 0

    def __len__(self) -> int:
        """Return the number of rows that contain a word vector. Two threads may have added the same word."""
        return self._filled

    def find(self, keys: Sequence[str]) -> list[int]:
        """Return the row of each key. The row of an unknown key is -1."""
        row_of = self._rows.get
        return [row_of(key, -1) for key in keys]

    def add(self, keys: Sequence[str], vectors: np.ndarray) -> None:
        """Add the vectors of new keys until the matrix is full. `vectors` has one row for each key."""
        new = {key: index for index, key in enumerate(keys) if key not in self._rows}
        rows = list(itertools.islice(self._free, len(new)))
        self._filled += len(rows)
        self.vectors[rows] = vectors[list(new.values())[: len(rows)]]
        self._rows.update(zip(new, rows, strict=False))
