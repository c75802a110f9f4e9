"""The options of the `elmo` component, with the name, type, default and meaning of each option.

`BiLMOptions` contains the options of every biLM, in the `elmo` component or in a layer `ElmoTok2Vec`. These
options are used in `encode/shim.py` (weights, training, precision, start) and `encode/encoder.py` (spans,
batches, data type). `ElmoOptions` adds the options that only the component has, which are used in
`layer_source.py`. The options of a scalar mix are in `listen/scalar_mix.py`.

If you add an option that changes no vector, let `corpora.pipelines.fingerprint` ignore the option. Otherwise,
existing vector files and indexes no longer match their pipeline. CONTRIBUTING.md lists the other files that
you must change for a new option.

spaCy imports this module whenever spaCy starts, so this module imports nothing that takes time.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from spacy.tokens import Doc, Span
from thinc.types import Floats3d

from ..bilm.matmul_precision import PRECISIONS, Precision
from ..catalogue.weight_names import AUTO
from .config_only import ConfigOnly

Trainable: TypeAlias = Literal["all", "lstm", "top"]
StoredDType: TypeAlias = Literal["float32", "float16"]
Start: TypeAlias = Literal["zero", "warm"]
Store: TypeAlias = Literal["layers", "average"]
SpanGetter: TypeAlias = Callable[[list[Doc]], Iterable[Iterable[Span]]]
"""Function from Docs to the spans of each Doc. You can use the span getters of spacy-transformers, which have
this type."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class BiLMOptions(ConfigOnly):
    """Options of a biLM, in the `elmo` component or in a layer `ElmoTok2Vec`. These options are not saved
    with the model, because saved options would override the config.

    Raises:
        ValueError: some values are impossible; the message names all of them.
    """

    weights: str | None = AUTO
    """Name of a bundled or installed biLM, or path of a weights file. "auto": the default biLM of the
    pipeline's language; its name is then written into the pipeline's config. null: random weights, which
    `nlp.initialize` draws."""
    frozen: bool = True
    """True: training does not change the biLM. This is the default, because the scalar mix of the layers
    learns most of what a task needs, and because the layers of training Docs are then computed only once, in
    the first epoch."""
    trainable: Trainable = "all"
    """Parameters that are trained if the biLM is not frozen: "all", "lstm" (without the token encoder) or "top" (the
    last LSTM layer)."""
    unfreeze_at: int = 0
    """Number of the first optimizer step that trains the biLM, counted from 0. Earlier steps are as fast as
    with a frozen biLM. Every training run counts from 0, even if the run starts from a saved pipeline."""
    learn_rate_factor: float | list[float] = 1.0
    """Factor by which the optimizer's learning rate is multiplied for the biLM: one number, or one number for
    each layer, from the token encoder to the last LSTM layer. By default, the biLM has the same learning rate
    as all components. Pretrained weights often need a lower rate, and lower layers need a lower rate than
    higher layers. For example, [0.04, 0.15, 0.4] divides the rate by 2.6 from each layer to the next lower
    layer, as Howard and Ruder (2018) do."""
    max_batch_tokens: int = 4096
    """Largest number of words that the biLM processes at once, to limit the memory. Vectors do not depend on
    this number, because longer spans are processed in chunks. While the biLM is being trained, it processes
    all words of a batch at once."""
    get_spans: SpanGetter | None = None
    """Function that returns the spans of each Doc. The biLM processes each span as a separate sequence. null:
    the spans are sentences by a rule that uses no annotation, so training and prediction use the same
    sequences."""
    dtype: StoredDType = "float32"
    """Data type of the stored layers; "float16" needs half the memory. Listeners use the rounded values in
    training and prediction, and compute in float32. `_.elmo` is always float32."""
    start: Start = "zero"
    """LSTM state at the start of every sequence: "zero", as in `pretrain`, or "warm", a mean state that
    `spacy elmo convert --warm` has stored in the weights file. "warm" suits a biLM that kept its state from
    batch to batch during its pretraining."""
    precision: Precision = "float32"
    """Data type of the matrix products while the biLM is not being trained: "float32", "bfloat16", on a CPU also
    "int8", on a GPU also "float16". A frozen biLM uses this type in training too. docs/speed.md compares the
    types. The prepacked weights need memory in addition to the original weights."""

    def __post_init__(self) -> None:
        problems = [
            f"{name} = {getattr(self, name)!r}: expected one of {', '.join(choices)}"
            for name, choices in (("trainable", get_args(Trainable)), ("precision", PRECISIONS))
            if getattr(self, name) not in choices
        ]
        factor = self.learn_rate_factor
        if any(value < 0 for value in (factor if isinstance(factor, list) else [factor])):
            problems.append(f"learn_rate_factor = {factor}: no factor may be below 0")
        if self.max_batch_tokens < 1:
            problems.append(f"max_batch_tokens = {self.max_batch_tokens}: it must be at least 1")
        if self.unfreeze_at < 0:
            problems.append(f"unfreeze_at = {self.unfreeze_at}: it must be a step, 0 or more")
        if self.frozen and self.unfreeze_at > 0:
            problems.append(
                f"frozen = true and unfreeze_at = {self.unfreeze_at}: a frozen biLM is never trained. Set frozen ="
                " false to train it from that step on, or unfreeze_at = 0"
            )
        if problems:
            raise ValueError("Impossible options of elmo: " + "; ".join(problems))


@dataclass(frozen=True)
class ElmoOptions(BiLMOptions):
    """Options of the `elmo` component: the options of its biLM, and options for the storage of layers."""

    store: Store = "layers"
    """Vectors that the component stores on Docs: "layers" (all layers), or "average" (only their average,
    `_.elmo`). With "average", no component can listen to this component."""
    cache_mb: float = 1000
    """Size in megabytes of a cache of layers. With it, a frozen biLM computes the layers of training Docs
    only in the first epoch. If space is left, the cache also stores the layers of dev Docs, so that the biLM
    computes these layers only in the first two evaluations."""
    cache_dir: str | None = None
    """Folder that also stores the layers of the cache, for Docs that do not fit into `cache_mb` and for other runs with
    the same weights. The folder grows with every new Doc and is never emptied. Several processes can share
    the folder."""
    hooks: bool = False
    """Whether `doc.vector`, `span.similarity(...)` and similar attributes use the ELMo vectors; see `set_hooks`."""
    set_extra_annotations: Callable[[list[Doc], list[Floats3d]], None] | None = None
    """Function that is called with a list of Docs and a list of their layers, after the layers are stored."""


def default_options(options: type) -> dict[str, Any]:
    """Return the default of each field of an options dataclass, as a block of a config."""
    return {field.name: field.default for field in dataclasses.fields(options)}


def flatten_options(function: _Function) -> _Function:
    """Return a function that takes each field of an options dataclass as a keyword argument.

    These keyword arguments take the place of the parameter that has the dataclass as its type.

    spaCy and confection read a function's signature to validate and complete a config. The new signature
    contains the type and default of each field, so registered functions need not repeat the fields.
    """
    parameters: list[inspect.Parameter] = []
    classes: dict[str, type] = {}
    for parameter in inspect.signature(function).parameters.values():
        if not dataclasses.is_dataclass(parameter.annotation):
            parameters.append(parameter)
            continue
        options: Any = parameter.annotation
        classes[parameter.name] = options
        types = get_type_hints(options)
        parameters += [
            inspect.Parameter(name, parameter.KEYWORD_ONLY, default=default, annotation=types[name])
            for name, default in default_options(options).items()
        ]
    signature = inspect.Signature(parameters)

    @functools.wraps(function)
    def flattened(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        for name, options in classes.items():
            names = arguments.keys() & default_options(options).keys()
            arguments[name] = options(**{option: arguments.pop(option) for option in names})
        return function(**arguments)

    flat: Any = flattened
    flat.__signature__ = signature
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat
