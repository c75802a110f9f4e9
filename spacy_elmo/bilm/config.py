"""The configuration of a biLM, which is also stored in the header of a weights file."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import BaseModel, Field, ValidationError, create_model

from .spelling import Spelling, UnicodeForm

Precision: TypeAlias = Literal["float32", "bfloat16"]
"""Data type in which the network multiplies matrices in prediction."""

N_MARKS = 6
"""Number of marks in ELMoForManyLangs' table of code points, such as the start of a word. They have the first rows."""

_HEADER_NAMES = {"n_words": "words", "n_symbols": "symbols"}
"""Names of fields in the header of a weights file, {name here: name in the header}. All other fields have the
same name in both."""

# No real model reaches these limits: the largest public models have 8,192 cells and 50 characters per word. Without
# limits, a damaged or hostile file of a few kilobytes could require unlimited memory or time.
_MAX_WIDTH = 1_000_000
_MAX_LAYERS = 1_000
_MAX_CLIP = 10_000.0

_Width: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=_MAX_WIDTH)]
_Rows: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
_Characters: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=1_000)]
_Clip: TypeAlias = Annotated[float, Field(strict=True, gt=0, le=_MAX_CLIP)]
_Bias: TypeAlias = Annotated[float, Field(strict=True, ge=-_MAX_CLIP, le=_MAX_CLIP)]
_Switch: TypeAlias = Annotated[bool, Field(strict=True)]


@dataclass(frozen=True)
class BiLMConfig:
    """Hyperparameters that determine the tensors and the computation of a biLM. The defaults are those of the original
    model (Peters et al. 2018, section 3.4).

    Three fields select the input of the token encoder (V, d and A are numbers other than 0):

        n_words   word_dim   n_symbols   input
        0         0          0           bytes as characters (bilm-tf)
        V         0          0           a table of token vectors (bilm-tf without `char_cnn`)
        V         d          A           a word vector, and code points as characters (ELMoForManyLangs)
        V         d          0           only a word vector (ELMoForManyLangs, `char_dim` 0)
        0         0          A           only code points as characters (ELMoForManyLangs, `word_dim` 0)

    Raises:
        ValueError: some values are impossible; the message lists these values.
    """

    dim: _Width = 4096
    """Cells C per LSTM layer and direction."""
    projection: _Width = 512
    """Width P of a token vector and of the output of each direction. A layer of the biLM has width 2P.

    If P equals `dim`, the LSTM has a projection matrix only if `square_projections` is true."""
    layers: Annotated[int, Field(strict=True, ge=1, le=_MAX_LAYERS)] = 2
    """LSTM layers L. The biLM has L + 1 layers; layer 0 is the token vector without context."""
    cell_clip: _Clip | None = 3.0
    """Bound of the cell states before their tanh. null: no bound."""
    proj_clip: _Clip | None = 3.0
    """Bound of the outputs after the projection. null: no bound.

    Without a projection, the outputs are never bounded."""
    skip: _Switch = True
    """Residual connection from each LSTM layer to the next.

    It adds the input of each LSTM layer above the first to its output."""
    forget_bias: _Bias = 1.0
    """Number that is added to the bias of the forget gate; the files of bilm-tf do not contain it."""
    n_words: _Rows = 0
    """Rows of the table of word vectors. 0: the input is characters. Pretraining supports only 0."""
    char_dim: Annotated[int, Field(strict=True, ge=0, le=_MAX_WIDTH)] = 16
    """Width of a character (byte) vector."""
    filters: Annotated[tuple[tuple[_Characters, _Width], ...], Field(max_length=_MAX_LAYERS)] = (
        (1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024),
    )  # fmt: skip
    """Convolutions: width in characters, number of filters.

    The outputs of the groups are concatenated in this order."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation after the maximum over time: "relu" or "tanh".

    Highway layers always use relu."""
    highways: Annotated[int, Field(strict=True, ge=0, le=_MAX_LAYERS)] = 2
    """Highway layers between the convolutions and the projection."""
    max_characters: _Characters = 50
    """Character positions per word, including two boundary marks; longer words are cut.

    A word is cut to its first bytes, as in bilm-tf (`data.py`), or to its first code points, as in ELMoForManyLangs
    (`elmo.py`). ELMoForManyLangs also looks up the word in the word table in its cut form."""
    word_dim: Annotated[int, Field(strict=True, ge=0, le=_MAX_WIDTH)] = 0
    """Width of an additional word vector (ELMoForManyLangs).

    The token encoder projects the word vector, concatenated with the character features (if the model has any), to
    width P. 0: there is no word table, or its rows are token vectors of width P, without a projection."""
    n_symbols: _Rows = 0
    """Rows of the table of code points (ELMoForManyLangs). 0: characters are bytes.

    There is one row for each character of the alphabet, and six for marks such as the start of a word."""
    square_projections: _Switch = False
    """Use a projection even if input and output have the same width, as AllenNLP and ELMoForManyLangs do.

    It is after the convolution filters and in the LSTM. bilm-tf has none."""
    unicode_form: UnicodeForm = ""
    """Unicode normal form to which the biLM converts words: "NFC", "NFD", "NFKC" or "NFKD"
    (docs/pretrain_language.md#spelling). Empty: no conversion."""
    replace: tuple[tuple[str, str], ...] = ()
    """Characters and their replacements, such as `{"v": "u", "j": "i"}`."""

    def __post_init__(self) -> None:
        values = dict(vars(self))
        if isinstance(self.replace, Mapping):
            values["replace"] = list(self.replace.items())
        try:
            checked = _field_types()(**values)
        except ValidationError as error:
            fields = {str(e["loc"][0]): e["msg"] for e in error.errors()}
            problems = [f"{name} = {values[name]!r:.60} ({fields[name]})" for name in fields]
        else:
            # JSON and config files contain lists, which are now tuples, so that equal configs compare equal.
            for name, value in checked:
                object.__setattr__(self, name, value)
            problems = self._contradictions()
        if problems:
            raise ValueError("Impossible biLM configuration: " + "; ".join(problems))

    def _contradictions(self) -> list[str]:
        """Return the fields that do not fit other fields."""
        problems = []
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
        # <S> is a character between two marks. Of <bos>, ELMoForManyLangs looks up all five.
        least = 7 if self.is_many_langs else 0 if self.n_words else 3
        if self.max_characters < least:
            problems.append(
                f"max_characters = {self.max_characters} (must be at least {least}, for the boundaries)"
            )
        if self.n_symbols or not self.n_words:
            widest = max((width for width, _ in self.filters), default=0)
            if not 0 < widest <= self.max_characters or self.n_filters > _MAX_WIDTH:
                problems.append(
                    f"filters = {self.filters!r:.60} (must be pairs of a width, up to max_characters ="
                    f" {self.max_characters}, and a number of filters, together up to {_MAX_WIDTH:,})"
                )
            if not self.char_dim:
                problems.append(
                    "char_dim = 0 (must be at least 1, because words are read as characters)"
                )
        try:
            Spelling(self.unicode_form, self.replace)
        except ValueError as error:
            problems.append(str(error))
        return problems

    @property
    def width(self) -> int:
        """Width of each layer of vectors: twice `projection`, because both directions are concatenated."""
        return 2 * self.projection

    @property
    def is_many_langs(self) -> bool:
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
        """Create a configuration from the result of `to_dict`."""
        known = [field.name for field in dataclasses.fields(cls)]
        if unknown := sorted(set(fields) - set(known)):
            raise ValueError(f"Unknown biLM fields {unknown}; known fields are {', '.join(known)}")
        return cls(**fields)

    def to_header(self) -> dict[str, Any]:
        """Return the fields as a dict of JSON types, under their names in the header of a weights file."""
        return {_HEADER_NAMES.get(name, name): value for name, value in self.to_dict().items()}

    @classmethod
    def from_header(cls, fields: Mapping[str, Any]) -> BiLMConfig:
        """Create a configuration from the header of a weights file. Missing fields get their defaults."""
        names = {header: name for name, header in _HEADER_NAMES.items()}
        return cls.from_dict({names.get(name, name): value for name, value in fields.items()})


@functools.cache
def _field_types() -> type[BaseModel]:
    """Return a pydantic model that checks and converts the fields of `BiLMConfig` one by one."""
    types = get_type_hints(BiLMConfig, include_extras=True)
    fields: dict[str, Any] = {name: (types[name], ...) for name in types}
    return create_model("BiLMFields", **fields)
