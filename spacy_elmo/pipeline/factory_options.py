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
    """Name of a bundled or installed biLM, or path of a weights file. "auto": the default biLM for the
    pipeline's language; the name of this biLM is written into the pipeline's config. null: random weights
    of the original size, which `nlp.initialize` draws."""
    frozen: bool = True
    """True: training does not change the biLM. This is the default, because the weighted sum of the layers
    already gives most of the gain for a task, and because the layers of training Docs are then computed only
    once, in the first epoch."""
    lr_scale: float = 1.0
    """Factor of the learning rate for the weights of a biLM that is not frozen. A factor of 0.1 changes a biLM that
    was trained on much text only a little (docs/train.md)."""
    get_spans: SpanGetter | None = None
    """Function that returns the spans of each Doc. The biLM processes each span as a separate sequence. null:
    the spans are sentences. A rule finds these sentences without annotation, so training and prediction use
    the same sequences."""
    dtype: StoredDType = "float32"
    """Data type of the layers on Docs and in the cache; "float16" needs half the memory. Listeners get the
    rounded values in training and prediction, and compute in float32. `_.elmo` is always float32."""
    start: Start = "zero"
    """Start state of the LSTMs in every sequence: "zero", as in `pretrain`, or "warm", a mean state that
    `spacy elmo convert --warm` has stored in the weights file. "warm" suits a biLM whose LSTM state was kept
    from one batch to the next during pretraining."""
    precision: Precision = "float32"
    """Data type of the matrix products while the biLM is not being trained: "float32" or "bfloat16". A
    frozen biLM also uses this type while other components are trained. docs/speed.md compares both types. A
    copy of the weights for fast products needs extra memory."""


@dataclass(frozen=True)
class ElmoOptions(BiLMOptions):
    """Options of the `elmo` component: the options of the biLM, and options for the storage of layers."""

    store: Store = "layers"
    """Vectors that the component stores on Docs: "layers" (all layers of the biLM), or "average" (only the
    average of the layers, `_.elmo`). With "average", no other component can use the layers in a listener."""
    cache_mb: float = 1000
    """Size in megabytes of a cache of layers. With a cache, a frozen biLM computes the layers of training Docs
    only in the first epoch and, if space is left, those of dev Docs only in the first evaluation."""


def default_options(options: type) -> dict[str, Any]:
    """Return a dict from the name of each field of `options`, a dataclass, to the default of the field."""
    return {field.name: field.default for field in dataclasses.fields(options)}
