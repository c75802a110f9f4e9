"""The configuration of a biLM, which is also stored in the header of a weights file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..limits import MAX_CHARACTERS, MAX_CLIP, MAX_LAYERS, MAX_ROWS, MAX_WIDTH
from .words.alphabet import N_MARKS
from .words.spelling import Spelling, UnicodeForm

ACTIVATIONS = ("relu", "tanh")

Precision: TypeAlias = Literal["float32", "bfloat16"]
"""Data type in which the network multiplies matrices in prediction."""

_HEADER_NAMES = {"n_words": "words", "n_symbols": "symbols"}
"""Names of fields in the header of a weights file, {name here: name in the header}. All other fields have the
same name in both."""
_LIMITS: dict[str, float] = {
    "dim": MAX_WIDTH, "projection": MAX_WIDTH, "char_dim": MAX_WIDTH, "word_dim": MAX_WIDTH, "filters": MAX_WIDTH,
    "layers": MAX_LAYERS, "highways": MAX_LAYERS, "groups of filters": MAX_LAYERS,
    "n_words": MAX_ROWS, "n_symbols": MAX_ROWS, "max_characters": MAX_CHARACTERS,
    "cell_clip": MAX_CLIP, "proj_clip": MAX_CLIP, "forget_bias": MAX_CLIP,
}  # fmt: skip


@dataclass(frozen=True)
class BiLMConfig:
    """Hyperparameters that determine the tensors and the computation of a biLM.

    The defaults are the values of bilm-tf's published 1B Word model (Peters et al. 2018, section 3.4). Three fields
    select the input of the token encoder (V, d and A are numbers other than 0):

        n_words   word_dim   n_symbols   input
        0         0          0           bytes as characters (bilm-tf)
        V         0          0           a table of token vectors (bilm-tf without `char_cnn`)
        V         d          A           a word vector, and code points as characters (ELMoForManyLangs)
        V         d          0           only a word vector (ELMoForManyLangs, `char_dim` 0)
        0         0          A           only code points as characters (ELMoForManyLangs, `word_dim` 0)

    Raises:
        ValueError: some values are impossible; the message lists these values.
    """

    dim: int = 4096
    """Number of cells of each LSTM layer in each direction, C."""
    projection: int = 512
    """Width P of a token vector and of the output of each direction. A layer of the biLM has width 2P. If P
    equals `dim`, the LSTM has a projection matrix only if `square_projections` is true."""
    layers: int = 2
    """Number of LSTM layers, L. The output has L + 1 layers, because layer 0 is the context-free token
    vector."""
    cell_clip: float | None = 3.0
    """Limit of the magnitude of cell states, applied before the tanh of the cell states; null: no limit."""
    proj_clip: float | None = 3.0
    """Limit of the magnitude of the outputs of the LSTM, applied after the projection; null: no limit.
    Without a projection, the outputs are never limited."""
    skip: bool = True
    """Residual connections: true adds the input of each LSTM layer above the first to its output."""
    forget_bias: float = 1.0
    """Constant that is added to the bias of the forget gate at run time. The constant is 1.0 for weights from
    bilm-tf, because the bias in bilm-tf's files does not include this constant."""
    n_words: int = 0
    """Number of rows of the table of word vectors, one row for each word of the vocabulary; 0: no table."""
    char_dim: int = 16
    """Width of a character vector."""
    filters: tuple[tuple[int, int], ...] = (
        (1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024),
    )  # fmt: skip
    """Groups of convolution filters: the width of the filters in characters and the number of filters of each
    group. The outputs of the groups are concatenated in this order."""
    activation: str = "relu"
    """Activation of the convolutions, after the maximum over time: "relu" or "tanh". Highway layers always use relu."""
    highways: int = 2
    """Number of highway layers between the convolutions and the projection."""
    max_characters: int = 50
    """Number of character positions of a word, including the marks for the start and end of the word. A
    longer word is cut to its first bytes, as in bilm-tf (`data.py`), or to its first code points, as in
    ELMoForManyLangs (`elmo.py`). ELMoForManyLangs also looks up the word in the word table in its cut
    form."""
    word_dim: int = 0
    """Width of a word vector. The token encoder projects the word vector, concatenated with the character
    features (if the model has any), to width P. 0: there is no word table, or its rows are token vectors of
    width P, without a projection."""
    n_symbols: int = 0
    """Number of rows of the table of code points: one row for each character of the alphabet, and six rows
    for marks such as the start of a word. 0: characters are bytes."""
    square_projections: bool = False
    """Projections with equal input and output widths, after the convolution filters and in the LSTM. AllenNLP
    and ELMoForManyLangs have them (true), bilm-tf does not (false)."""
    unicode_form: UnicodeForm = ""
    """Unicode normal form ("NFC", "NFD", "NFKC" or "NFKD") to which words are converted; empty: no conversion. See
    `Spelling`."""
    replace: tuple[tuple[str, str], ...] = ()
    """Characters and their replacements, such as `{"v": "u", "j": "i"}` for Latin."""

    def __post_init__(self) -> None:
        # JSON and config files contain lists. Convert them to tuples, so that equal configs compare equal.
        if _is_pairs(self.filters):
            object.__setattr__(self, "filters", tuple((width, n) for width, n in self.filters))
        replace = [*self.replace.items()] if isinstance(self.replace, Mapping) else self.replace
        if _is_pairs(replace):
            object.__setattr__(self, "replace", tuple((old, new) for old, new in replace))
        problems = [
            f"{name} = {getattr(self, name)!r:.60} (must be a whole number, at least 1)"
            for name in ("dim", "projection", "layers")
            if not _is_whole(getattr(self, name), 1)
        ]
        problems += [
            f"{name} = {clip!r:.60} (must be a positive number, or null for no limit)"
            for name, clip in (("cell_clip", self.cell_clip), ("proj_clip", self.proj_clip))
            if clip is not None and not (_is_number(clip) and clip > 0)
        ]
        problems += [
            f"{name} = {getattr(self, name)!r:.60} (must be true or false)"
            for name in ("skip", "square_projections")
            if not isinstance(getattr(self, name), bool)
        ]
        if not _is_number(self.forget_bias):
            problems.append(f"forget_bias = {self.forget_bias!r:.60} (must be a number)")
        problems += self._table_problems() or self._input_problems()
        problems += self._spelling_problems()
        problems = problems or self._limit_problems()
        if problems:
            raise ValueError("Impossible biLM configuration: " + "; ".join(problems))

    def _limit_problems(self) -> list[str]:
        sizes = {name: getattr(self, name) for name in _LIMITS if hasattr(self, name)}
        if self.n_symbols or not self.n_words:
            sizes |= {"groups of filters": len(self.filters), "filters": self.n_filters}
        return [
            f"{name} = {value!r:.30} (the limit is {_LIMITS[name]:,})"
            for name, value in sizes.items()
            if isinstance(value, int | float) and abs(value) > _LIMITS[name]
        ]

    def _table_problems(self) -> list[str]:
        problems = [
            f"{name} = {getattr(self, name)!r:.60} (must be {meaning})"
            for name, meaning in (
                ("n_words", "0 for no word table, or its number of rows"),
                ("word_dim", "0, or the width of a word vector"),
                ("n_symbols", "0 for bytes, or the number of rows of the character table"),
            )
            if not _is_whole(getattr(self, name), 0)
        ]
        if problems:
            return problems
        if self.word_dim and not self.n_words:
            problems.append(f"word_dim = {self.word_dim} (must be 0, because n_words = 0)")
        if self.n_words and self.n_symbols and not self.word_dim:
            problems.append(
                "word_dim = 0 (must be at least 1, because n_words and n_symbols are not 0)"
            )
        if 0 < self.n_symbols < N_MARKS:
            problems.append(
                f"n_symbols = {self.n_symbols} (must be 0, or at least {N_MARKS}, the number of marks)"
            )
        return problems

    def _spelling_problems(self) -> list[str]:
        if not isinstance(self.unicode_form, str):
            return [f"unicode_form = {self.unicode_form!r:.60} (must be text)"]
        if not _is_pairs(self.replace) or not all(
            isinstance(text, str) for pair in self.replace for text in pair
        ):
            return [
                f"replace = {self.replace!r:.60} (must be pairs of a character and its replacement)"
            ]
        try:
            Spelling(self.unicode_form, self.replace)
        except ValueError as error:
            return [str(error)]
        return []

    def _input_problems(self) -> list[str]:
        problems = self._character_problems() if self.n_symbols or not self.n_words else []
        if self.has_lexicon:
            minimum, why = 7, "<bos> between two boundary marks"
        elif not self.n_words:
            minimum, why = 3, "two are boundary marks"
        else:
            return problems
        if not _is_whole(self.max_characters, minimum):
            problems.append(
                f"max_characters = {self.max_characters!r:.60}"
                f" (must be a whole number, at least {minimum}: {why})"
            )
        return problems

    def _character_problems(self) -> list[str]:
        problems = []
        if self.activation not in ACTIVATIONS:
            problems.append(
                f"activation = {self.activation!r:.60} (must be one of {', '.join(ACTIVATIONS)})"
            )
        if not _is_whole(self.char_dim, 1):
            problems.append(
                f"char_dim = {self.char_dim!r:.60} (must be a whole number, at least 1)"
            )
        if not _is_whole(self.highways, 0):
            problems.append(f"highways = {self.highways!r:.60} (must be a whole number, 0 or more)")
        if not _is_pairs(self.filters) or not self.filters:
            problems.append(
                f"filters = {self.filters!r:.60} (must be at least one pair of a width and a number)"
            )
            return problems
        widest = self.max_characters if _is_whole(self.max_characters, 1) else math.inf
        problems += [
            f"filters: ({width!r:.60}, {number!r:.60}) (the width must be a whole number from 1 to {widest}, the number"
            " a whole number, at least 1)"
            for width, number in self.filters
            if not (_is_whole(width, 1) and width <= widest and _is_whole(number, 1))
        ]
        return problems

    @property
    def width(self) -> int:
        """Width of each layer of vectors: twice `projection`, because both directions are concatenated."""
        return 2 * self.projection

    @property
    def has_lexicon(self) -> bool:
        """True if the network has the token encoder of ELMoForManyLangs. This encoder reads a word vector,
        code points, or both."""
        return bool(self.word_dim or self.n_symbols)

    @property
    def spelling(self) -> Spelling:
        """Rule that changes the spelling of words before they are encoded, or looked up in the vocabulary."""
        return Spelling(self.unicode_form, self.replace)

    @property
    def n_filters(self) -> int:
        """Number of all convolution filters, which is the width of their concatenated outputs."""
        return sum(number for _, number in self.filters)

    def differences(self, other: BiLMConfig) -> list[tuple[str, Any, Any]]:
        """Return the fields in which two configurations differ, as (name, value in `self`, value in `other`)."""
        others = vars(other)
        return [(n, value, others[n]) for n, value in vars(self).items() if value != others[n]]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict that can be written as JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> BiLMConfig:
        """Create a configuration from the result of `to_dict`.

        Raises:
            ValueError: a field is unknown, because of a typo or because a newer version wrote the file.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        if unknown := sorted(set(fields) - set(known)):
            raise ValueError(f"Unknown biLM fields {unknown}; known fields are {', '.join(known)}")
        return cls(**fields)

    def to_header(self) -> dict[str, Any]:
        """Return the fields as a dict of JSON types, under their names in the header of a weights file."""
        return {_HEADER_NAMES.get(name, name): value for name, value in self.to_dict().items()}

    @classmethod
    def from_header(cls, fields: Mapping[str, Any]) -> BiLMConfig:
        """Create a configuration from the header of a weights file. Missing fields get their defaults.

        Raises:
            ValueError: a field is unknown.
        """
        names = {header: name for name, header in _HEADER_NAMES.items()}
        return cls.from_dict({names.get(name, name): value for name, value in fields.items()})


def _is_whole(value: object, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum


def _is_number(value: object) -> bool:
    if isinstance(value, int):  # math.isfinite raises an error for very large ones
        return not isinstance(value, bool)
    return isinstance(value, float) and math.isfinite(value)


def _is_pairs(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in value
    )
