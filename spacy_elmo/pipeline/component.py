"""The `elmo` component: Docs get the layers of a biLM, and listeners in later components read them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d, Floats3d

from .batch import Batch
from .bundled import DEFAULT_WEIGHTS
from .cache import LayerCache
from .encoder import MAX_BATCH_TOKENS, configure, layers_and_width, shim_of
from .extensions import install_extensions, store_layers, stored_layers
from .forks import guard_forks
from .listened_to import ListenedTo
from .listener import state_of
from .tok2vec import ReplaceListenerConfig, replace_listener

_OPTIONS = {
    "weights": DEFAULT_WEIGHTS,
    "frozen": True,
    "trainable": "all",
    "max_batch_tokens": MAX_BATCH_TOKENS,
    "get_spans": None,
}


@Language.factory(
    "elmo",
    assigns=[
        f"{thing}._.{name}"
        for thing in ("doc", "span", "token")
        for name in ("elmo", "elmo_layers")
    ],
    default_config={
        **_OPTIONS,
        "cache_mb": 1000,
        "model": {"@architectures": "spacy-elmo.BiLM.v1"},
    },
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats3d]],
    weights: str | None,
    frozen: bool,
    trainable: str,
    max_batch_tokens: int,
    get_spans: Callable | None,
    cache_mb: float,
) -> Elmo:
    """Make the component. Reads no file: the weights are loaded at their first use.

    Args:
        model: a `spacy-elmo.BiLM.v1`.
        weights: name of a bundled biLM, or path of a weights file; null: random, drawn by `nlp.initialize`.
        frozen: leave the biLM as it is.
        trainable: what is trained otherwise: "all", "lstm" (without the token encoder) or "top" (the last LSTM layer).
        max_batch_tokens: words that the biLM reads at once. No vector depends on it.
        get_spans: what it reads as sequences of their own; null: sentences, by a rule that reads no annotation.
        cache_mb: memory for the layers of training Docs, which a frozen biLM then computes in the first epoch alone.
    """
    configure(
        model,
        weights=weights,
        frozen=frozen,
        trainable=trainable,
        max_batch_tokens=max_batch_tokens,
        get_spans=get_spans,
        lang=nlp.lang,
    )
    elmo = Elmo(nlp.vocab, model, name, cache_mb=cache_mb)
    _MAKERS[elmo] = weakref.ref(nlp)
    return elmo


# The pipeline that made each component. No attribute, because references cannot be pickled.
_MAKERS: weakref.WeakKeyDictionary[Elmo, weakref.ref[Language]] = weakref.WeakKeyDictionary()


class Elmo(ListenedTo, TrainablePipe):
    """Write the layers of a biLM on Docs, and train the biLM with the gradients of those who listen.

    Args:
        vocab: the pipeline's.
        model: a configured `spacy-elmo.BiLM.v1` (`encoder.configure`).
        name: of the component in the pipeline.
        cache_mb: size of the `LayerCache`.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats3d]],
        name: str = "elmo",
        *,
        cache_mb: float = 0,
    ) -> None:
        super().__init__(vocab, model, name)
        self._batch: Batch | None = None
        self._losses: dict[str, float] = {}
        self._cache = LayerCache(cache_mb)
        model.attrs["replace_listener"] = replace_listener
        model.attrs["replace_listener_cfg"] = ReplaceListenerConfig(name)
        self.listener_map = {}
        install_extensions()
        guard_forks()

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.adopt_listeners()

    @property
    def frozen(self) -> bool:
        """Whether training leaves the biLM as it is."""
        return shim_of(self.model).trainable is None

    def layers_and_width(self) -> tuple[int, int]:
        """L + 1 and the width of the layers. Loads the weights if need be."""
        return layers_and_width(self.model)

    # Prediction

    def __call__(self, doc: Doc) -> Doc:
        install_extensions()
        return super().__call__(doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Write the layers on a stream of Docs. No vector depends on `batch_size`."""
        install_extensions()
        yield from super().pipe(stream, batch_size=batch_size)

    def predict(self, docs: Iterable[Doc]) -> list[Floats3d]:
        """(layers, n_tokens, width) of each Doc."""
        return self.model.predict(list(docs))

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Floats3d]) -> None:
        """Keep layers on their Docs."""
        for doc, layers in zip(docs, scores, strict=True):
            store_layers(doc, self.name, layers)

    def stored_layers(self, doc: Doc) -> Floats3d | None:
        """The layers that this component has written on a Doc, if they still fit."""
        return stored_layers(doc, self.name)

    def supply(self, docs: list[Doc]) -> list[Floats3d]:
        """Compute the layers of Docs that have come to a listener without any, and keep them there."""
        self.warn_once(
            "supply",
            f"{self.name!r} did not run on Docs that a later component reads, so their vectors are computed on"
            " demand. In prediction, enable it; if it is among the frozen_components, take it out where it has"
            " frozen = true, which suffices, and add it to annotating_components where it has not",
        )
        # Copies, because what stands on a Doc is the user's to change.
        layers = (
            [found.copy() for found in self._frozen_layers(docs)]
            if self.frozen
            else self.predict(docs)
        )
        self.set_annotations(docs, layers)
        return layers

    # Training

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Read the weights file, again if it has been read before; without one, draw random weights.

        Raises:
            OSError, ValueError: the weights cannot be had.
        """
        self.model.initialize()
        self._end_batch()

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Offer the Docs of a batch to the listeners. Nothing is computed before one of them asks.

        The backward pass runs at the next `update` or in `finish_update`, when all gradients are there. So
        `nlp.update(examples, sgd=sgd)`, which calls `finish_update` before the listeners ran, trains the
        biLM one batch late; `spacy train`, and loops with `sgd=False` that call `finish_update` themselves, do not.
        `drop` has no effect: a biLM is fine-tuned without dropout.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        self._flush()
        self._batch = self.new_batch([example.predicted for example in examples], train=True)
        self._losses = losses
        for listener in self.listeners:
            state = state_of(listener)
            state.batch, state.sample = self._batch, None
        if sgd is not None and sgd is not False:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Run the backward pass and let the optimizer take its step. A batch that nobody has read yet is kept."""
        if self._batch is not None and self._batch.read:
            self._flush()
            self._end_batch()
        if not self.frozen:
            self._cache.clear()  # in case the component was frozen before
            self.model.finish_update(sgd)

    def new_batch(self, docs: list[Doc], *, train: bool = False) -> Batch:
        """A batch for the listeners, with a backward pass if the biLM is trained."""
        if train and not self.frozen:
            return Batch(docs, self.model.begin_update)
        return Batch(docs, lambda docs: (self._frozen_layers(docs), None))

    def _frozen_layers(self, docs: list[Doc]) -> list[Floats3d]:
        """Those of an epoch before; the others are computed. Layers that are on the Docs already may be of other
        weights: those before `initialize`, or those of whoever saved the Docs."""
        if not self._cache.megabytes:
            return self.predict(docs)
        bilm, get_spans = shim_of(self.model).bilm, self.model.attrs["options"].get_spans
        keys = self._cache.keys(docs, get_spans)
        layers: list[Any] = [self._cache.get(key, bilm) for key in keys]
        missing = [place for place, found in enumerate(layers) if found is None]
        computed = self.predict([docs[place] for place in missing])
        for place, found in zip(missing, computed, strict=True):
            layers[place] = found
            self._cache.put(keys[place], found)
        return layers

    def _flush(self) -> None:
        if self._batch is not None:
            loss = self._batch.backprop()
            self._losses[self.name] = self._losses.get(self.name, 0.0) + loss
            self._batch = None

    def _end_batch(self) -> None:
        self._batch = None
        for listener in self.listeners:
            state = state_of(listener)
            state.batch = state.sample = None

    def linked(self) -> None:
        """Keep the options as they stand in the config, for `replace_listeners`. When spaCy first links the pipeline
        the config is there; it was not yet when the component was made."""
        replace = self.model.attrs["replace_listener_cfg"]
        replace.upstream, replace.any_upstream = self.name, False
        nlp = self._maker()
        if nlp is not None and not replace.options:
            config = nlp.get_pipe_config(self.name)
            replace.options = {name: config.get(name, value) for name, value in _OPTIONS.items()}

    def add_listener(self, listener: Model[list[Doc], list[Floats2d]], component_name: str) -> None:
        """Take in a listener, and remember for `replace_listeners` whether one listens to "*"."""
        super().add_listener(listener, component_name)
        if state_of(listener).upstream_name == "*":
            self.model.attrs["replace_listener_cfg"].any_upstream = True

    def is_disabled(self) -> bool:
        """Whether it stands in the pipeline that made it, disabled."""
        nlp = self._maker()
        return nlp is not None and any(
            pipe is self and name in nlp.disabled for name, pipe in nlp.components
        )

    def _maker(self) -> Language | None:
        return _MAKERS[self]() if self in _MAKERS else None
