"""The options of the `elmo` component, with the type, default and meaning of each option.

`BiLMOptions` contains the options of every biLM, in the `elmo` component or in a layer `ElmoTok2Vec`. The
code that uses these options is in `encode/shim.py` (weights, training, precision, start) and
`encode/encoder.py` (spans, data type). `ElmoOptions` adds the options that only the component has.
The code that uses them is in `layer_source.py`. The options of a scalar mix are in `listen/scalar_mix.py`.

CONTRIBUTING.md lists the other files that you must change for a new option.

spaCy imports this module whenever spaCy starts, so this module imports nothing that takes time.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from spacy.tokens import Doc, Span

from ..bilm.config import Precision
from ..weight_names import AUTO
from .not_saved import NotSaved

StoredDType: TypeAlias = Literal["float32", "float16"]
Start: TypeAlias = Literal["zero", "warm"]
Store: TypeAlias = Literal["layers", "average"]
SpanGetter: TypeAlias = Callable[[list[Doc]], Iterable[Iterable[Span]]]
"""Function that takes Docs and returns the spans of each Doc. The span getters of spacy-transformers have the
same type, so you can use them."""


@dataclass(frozen=True)
class BiLMOptions(NotSaved):
    """Options of a biLM, in the `elmo` component or in a layer `ElmoTok2Vec`. These options are not saved
    with the model, because saved options would override the config."""

    weights: str | None = AUTO
    """Name of a bundled or installed biLM, or path of a weights file. "auto" selects the biLM of the pipeline's
    language: `en_base_v2` for English, otherwise an installed package (docs/languages.md). The name of this biLM is
    written to the config. null: random weights of the original size, which `nlp.initialize` draws."""
    frozen: bool = True
    """Do not train the biLM (docs/train.md#freeze-or-fine-tune)."""
    lr_scale: float = 1.0
    """Factor of the learning rate for a biLM that is not frozen."""
    get_spans: SpanGetter | None = None
    """Function that splits a Doc into the sequences of the biLM. null: sentences by a rule that uses no annotation, so
    they are the same in training and prediction."""
    dtype: StoredDType = "float32"
    """Data type of the layers on Docs and in the cache. "float16" halves their memory. Listeners and `_.elmo` use
    float32 in both cases."""
    start: Start = "zero"
    """State of the LSTMs at the start of each sequence. "warm": the mean state that was estimated for a converted model
    (docs/convert.md#start-state)."""
    precision: Precision = "float32"
    """Data type of the matrix products in prediction, and of a frozen biLM in training: "float32" or "bfloat16". Only
    float32 is exact. bfloat16 is slower on a CPU that has no instructions for it (docs/speed.md)."""


@dataclass(frozen=True)
class ElmoOptions(BiLMOptions):
    """Options of the `elmo` component: the options of the biLM, and options for the storage of layers."""

    store: Store = "layers"
    """What is stored on a Doc: "layers" or "average". "average" stores only `_.elmo`, so no component can listen. To
    store nothing after the last component, use a `doc_cleaner` (docs/faq.md#does-nlppipetexts-n_process2-work)."""
    cache_mb: float = 1000
    """Megabytes for the layers that a frozen biLM keeps between epochs: those of the training Docs and, if space is
    left, of the development set."""


def default_options(options: type) -> dict[str, Any]:
    """Return a dict from the name of each field of `options`, a dataclass, to the default of the field."""
    return {field.name: field.default for field in dataclasses.fields(options)}
