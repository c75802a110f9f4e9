"""The `elmo` component: Docs get the layers of a biLM, and listeners in later components read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d, Floats3d

from .forks import guard_forks
from .home import Home
from .keeping.cache import LayerCache
from .keeping.extensions import install_extensions, store_layers, stored_layers
from .keeping.hooks import set_hooks
from .keeping.mapped_arrays import mapped_copy
from .listening.batch import ListenerBatch
from .listening.listener import state_of
from .listening.tok2vec import ReplaceListenerConfig, replace_listener
from .listening.upstream import Upstream
from .options import READING, Store
from .reading.encoder import averages, layers_and_width, shim_of

ExtraAnnotations: TypeAlias = Callable[[list[Doc], list[Floats3d]], None]


class Elmo(Upstream, TrainablePipe):
    """Write the layers of a biLM on Docs, and train the biLM with the gradients of those who listen.

    Args:
        vocab: the pipeline's.
        model: a configured `spacy-elmo.BiLM.v1` (`encoder.configure`).
        name: of the component in the pipeline.
        store: see `factory.make_elmo`.
        home: the pipeline, if it is known.
        cache: for the layers of training Docs; by default it keeps none.
        hooks, set_extra_annotations: see `factory.make_elmo`.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats3d]],
        name: str = "elmo",
        *,
        store: Store = "layers",
        home: Home | None = None,
        cache: LayerCache | None = None,
        hooks: bool = False,
        set_extra_annotations: ExtraAnnotations | None = None,
    ) -> None:
        super().__init__(vocab, model, name)
        self._batch: ListenerBatch | None = None
        self._losses: dict[str, float] = {}
        self._store = store
        self._home = home or Home()
        self._cache = LayerCache(0) if cache is None else cache
        self._hooks = hooks
        self._set_extra_annotations = set_extra_annotations
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
        """Whether the present step leaves the biLM as it is."""
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

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """(layers, n_tokens, width) of each Doc. Those that training keeps are taken from there; those of other
        Docs are not kept. With `store = "average"`: (n_tokens, width), their average."""
        docs = list(docs)
        if self._store == "average":
            return averages(self.model, docs)
        if not self._cache.in_use:
            return self.model.predict(docs)
        return [mapped_copy(layers) for layers in self._cache.read(self.model, docs, keep=False)]

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Any]) -> None:
        """Keep what `predict` gave on its Docs, and do what else the options ask for."""
        docs = list(docs)
        for doc, layers in zip(docs, scores, strict=True):
            store_layers(doc, self.name, layers)
            if self._hooks:
                set_hooks(doc)
        if self._set_extra_annotations is not None:
            self._set_extra_annotations(docs, list(scores))

    def stored_layers(self, doc: Doc) -> Floats3d | None:
        """The layers that this component has written on a Doc, if they still fit."""
        return stored_layers(doc, self.name)

    def compute_missing(
        self, docs: list[Doc], *, train: bool, expected: bool = False
    ) -> list[Floats3d]:
        """Compute the layers of Docs that have come to a listener without any, and keep them there. A warning says so
        if this could not be expected."""
        if not expected or self.is_disabled():
            self.warn_once(
                "supply",
                f"{self.name!r} did not run on Docs that a later component reads, so their vectors are computed on"
                " demand. In prediction, enable it; if it is among the frozen_components, take it out where it has"
                " frozen = true, which suffices, and add it to annotating_components where it has not",
            )
        # Copies, because what stands on a Doc is the user's to change.
        layers = [mapped_copy(found) for found in self._kept(docs)] if train else self.predict(docs)
        self.set_annotations(docs, layers)
        return layers

    def mark_training(self, docs: list[Doc]) -> None:
        """Say that Docs that have come to a listener with layers are in training: with elmo among the
        frozen_components and the annotating_components, as nothing else tells."""
        self._cache.mark_training(self.model, docs)

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
        self._batch = self.new_batch([example.predicted for example in examples])
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
        self.model.finish_update(sgd)

    def new_batch(self, docs: list[Doc]) -> ListenerBatch:
        """A batch for the listeners, with a backward pass if the biLM is trained."""
        if not self.frozen:
            return ListenerBatch(docs, self.model.begin_update)
        return ListenerBatch(docs, lambda docs: (self._kept(docs), None))

    def _kept(self, docs: list[Doc]) -> list[Floats3d]:
        """Those of an epoch before; the others are computed, and kept. Layers that are on the Docs already may be of
        other weights: those before `initialize`, or those of whoever saved the Docs."""
        return self._cache.read(self.model, docs, keep=True)

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
        nlp = self._home.nlp
        if nlp is not None and self.name in nlp.component_names and not replace.options:
            config = nlp.get_pipe_config(self.name)
            replace.options = {name: config.get(name, value) for name, value in READING.items()}

    def add_listener(self, listener: Model[list[Doc], list[Floats2d]], component_name: str) -> None:
        """Take in a listener, and remember for `replace_listeners` whether one listens to "*".

        Raises:
            ValueError: no layers are kept that it could mix.
        """
        if self._store == "average":
            raise ValueError(
                f'{component_name!r} listens to {self.name!r}, which has store = "average" and so keeps no layers'
                ' for it to mix. Set store = "layers"; to free their memory, put a doc_cleaner after the last'
                ' component that listens: nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo_layers": None}})'
            )
        super().add_listener(listener, component_name)
        if state_of(listener).upstream_name == "*":
            self.model.attrs["replace_listener_cfg"].any_upstream = True

    def is_disabled(self) -> bool:
        """Whether it stands in its pipeline, disabled. A component that was sourced or unpickled does not know."""
        nlp = self._home.nlp
        return nlp is not None and any(
            pipe is self and name in nlp.disabled for name, pipe in nlp.components
        )
