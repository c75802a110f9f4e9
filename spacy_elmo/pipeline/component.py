"""The `elmo` component: it stores the layers of a biLM on Docs, and listeners in later components use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d, Floats3d

from ..catalogue.weight_names import AUTO
from .encode.encoder import averages, layers_and_width, shim_of
from .forks import guard_forks
from .listen.batch import ListenerBatch
from .listen.listener import state_of
from .listen.tok2vec import ReplaceListenerConfig, replace_listener
from .listen.upstream import Upstream
from .options import BiLMOptions, ElmoOptions, default_options
from .pipeline_meta import credit_and_check_language
from .pipeline_ref import PipelineRef
from .store.cache import LayerCache
from .store.extensions import install_extensions, store_layers, stored_layers
from .store.hooks import set_hooks
from .store.mapped_arrays import mapped_copy

_DEFAULTS = ElmoOptions()


class ComputedLayers(list[Any]):
    """The layers of some Docs, and the version of the weights that computed them (`BiLMShim.version`)."""

    def __init__(self, layers: Iterable[Any], version: str) -> None:
        super().__init__(layers)
        self.version = version


def _could_listen(nlp: Language, name: str) -> bool:
    """Return True if a component's model has a `tok2vec` block in the config, with nothing of this package in it."""
    model = nlp.get_pipe_config(name).get("model")
    return isinstance(model, dict) and "tok2vec" in model and "spacy-elmo." not in str(model)


class Elmo(Upstream, TrainablePipe):
    """The component: it stores the layers of a biLM on Docs, and trains the biLM with the gradients of its listeners.

    Args:
        vocab: the pipeline's vocabulary.
        model: a `spacy-elmo.BiLM.v1` with the same options (`encoder.configure`).
        name: name of the component in the pipeline.
        options: the options of the config, an `ElmoOptions` (`options.py`).
        pipeline: the pipeline, if it is known.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats3d]],
        name: str = "elmo",
        *,
        options: ElmoOptions = _DEFAULTS,
        pipeline: PipelineRef | None = None,
    ) -> None:
        super().__init__(vocab, model, name)
        self._batch: ListenerBatch | None = None
        self._losses: dict[str, float] = {}
        self._options = options
        self._pipeline = pipeline or PipelineRef()
        self._cache = LayerCache(options.cache_mb, options.cache_dir)
        model.attrs["replace_listener"] = replace_listener
        model.attrs["replace_listener_cfg"] = ReplaceListenerConfig(name)
        self.listener_map = {}
        install_extensions()
        guard_forks()

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.relink_listeners()

    @property
    def frozen(self) -> bool:
        """True if the present step leaves the biLM unchanged."""
        return shim_of(self.model).trainable is None

    def layers_and_width(self) -> tuple[int, int]:
        """Return the number of layers, L + 1, and their width. Loads the weights if necessary."""
        return layers_and_width(self.model)

    # Prediction

    def __call__(self, doc: Doc) -> Doc:
        install_extensions()
        return super().__call__(doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Store the layers on a stream of Docs. No vector depends on `batch_size`."""
        install_extensions()
        yield from super().pipe(stream, batch_size=batch_size)

    def predict(self, docs: Iterable[Doc]) -> ComputedLayers:
        """Compute the layers of each Doc, (layers, n_tokens, width); with `store = "average"` their average,
        (n_tokens, width). After training has begun, cached layers are used, and layers are cached from the second
        time on that a Doc is predicted: so the Docs of the dev part are computed twice, and not in every evaluation."""
        # The version is read first: if another thread changes the weights meanwhile, the layers have an old one.
        docs, version = list(docs), self._version()
        if self._options.store == "average":
            return ComputedLayers(averages(self.model, docs), version)
        if not self._cache.in_use:
            return ComputedLayers(self.model.predict(docs), version)
        cached = self._cache.get_or_compute(self.model, docs, keep=False)
        return ComputedLayers(map(mapped_copy, cached), version)

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Any]) -> None:
        """Store the result of `predict` on its Docs, with hooks and extra annotations if the options say so.

        Layers from elsewhere have no version, so training computes its own.
        """
        docs, version = list(docs), getattr(scores, "version", None)
        for doc, layers in zip(docs, scores, strict=True):
            store_layers(doc, self.name, layers, version)
            if self._options.hooks:
                set_hooks(doc)
        if self._options.set_extra_annotations is not None:
            self._options.set_extra_annotations(docs, list(scores))

    def stored_layers(self, doc: Doc, *, train: bool = False) -> Floats3d | None:
        """Return the layers that this component, or a user, has stored on a Doc, if they match its tokens.

        Args:
            train: only layers that this component has computed with the present weights, or that a user has set.
        """
        return stored_layers(doc, self.name, shim_of(self.model).version if train else None)

    def compute_missing(self, docs: list[Doc], *, train: bool, warn: bool = True) -> list[Floats3d]:
        """Compute the layers of Docs that a listener requires and that have none, and store them there.

        Args:
            train: the Docs are training data, so the layers are cached.
            warn: If False, warn only when this component is disabled. A warning is given once.
        """
        if warn or self.is_disabled():
            self.warn_once(
                "on demand",
                f"{self.name!r} did not run on Docs whose layers a later component uses, so they are computed on"
                " demand. When predicting, enable it. When training with it in frozen_components: if frozen = true,"
                " take it out of frozen_components, which suffices; otherwise add it to annotating_components",
            )
        version = self._version()
        # Copies, because a user may change the arrays on a Doc.
        layers = (
            ComputedLayers(map(mapped_copy, self._cached(docs)), version)
            if train
            else self.predict(docs)
        )
        self.set_annotations(docs, layers)
        return layers

    def _version(self) -> str:
        shim = shim_of(self.model)
        shim.ensure_loaded()  # which is a change of version
        return shim.version

    def mark_training(self, docs: list[Doc]) -> None:
        """Mark Docs as training data, so that the cache keeps their layers between epochs.

        Listeners do so for Docs with stored layers, because `pipe` cannot know that it runs for annotating_components.
        """
        self._cache.mark_training(self.model, docs)

    # Training

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Read the weights file, again if it has been read before; without one, draw random weights.

        Raises:
            OSError, ValueError: the weights cannot be loaded.
        """
        self.model.initialize()
        self._end_batch()
        if nlp is not None and not self.listeners:
            self._warn_of_no_listener(nlp)

    def _warn_of_no_listener(self, nlp: Language) -> None:
        if others := [name for name in nlp.pipe_names if _could_listen(nlp, name)]:
            self.warn_once(
                "no listener",
                f"No component listens to {self.name!r}, so its vectors change nothing in {' and '.join(others)}. In"
                f" the config, [components.{others[0]}.model.tok2vec] must be a spacy-elmo.ElmoListener.v1, alone or"
                f" inside spacy-elmo.ElmoEnhanced.v1; `python -m spacy elmo init-config --pipeline {','.join(others)}`"
                " writes such a config",
            )

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Pass the Docs of a batch to the listeners. Nothing is computed before one of them requires the layers.

        The backward pass runs at the next `update` or in `finish_update`, after all gradients were added. So
        `nlp.update(examples, sgd=sgd)`, which calls `finish_update` before the listeners run, trains the biLM one
        batch late; `spacy train`, and loops with `sgd=False` that call `finish_update` themselves, do not.
        `drop` has no effect: a biLM is fine-tuned without dropout.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        self._run_backward()
        self._batch = self.new_batch([example.predicted for example in examples])
        self._losses = losses
        for listener in self.listeners:
            state = state_of(listener)
            state.batch, state.zeros = self._batch, None
        if sgd is not None and sgd is not False:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Run the backward pass and let the optimizer take a step. A batch that no listener has used yet is kept."""
        if self._batch is not None and self._batch.was_read:
            self._run_backward()
            self._end_batch()
        self.model.finish_update(sgd)

    def new_batch(self, docs: list[Doc]) -> ListenerBatch:
        """Make a batch for the listeners, with a backward pass if the biLM is trained."""
        if not self.frozen:
            return ListenerBatch(docs, self.model.begin_update)
        return ListenerBatch(docs, lambda docs: (self._cached(docs), None))

    def _cached(self, docs: list[Doc]) -> list[Floats3d]:
        """Return the layers of training Docs from the cache, which computes and stores those it does not contain.
        Layers stored on the Docs are not used: they may be those of other weights."""
        return self._cache.get_or_compute(self.model, docs, keep=True)

    def _run_backward(self) -> None:
        if self._batch is not None:
            loss = self._batch.backprop()
            self._losses[self.name] = self._losses.get(self.name, 0.0) + loss
            self._batch = None

    def _end_batch(self) -> None:
        self._batch = None
        for listener in self.listeners:
            state = state_of(listener)
            state.batch = state.zeros = None

    def resolve_config(self) -> None:
        """Complete the config, and copy the options from it for `replace_listeners`. spaCy adds the config to the
        pipeline before it first links the component, but after the component is made."""
        replace = self.model.attrs["replace_listener_cfg"]
        replace.upstream, replace.any_upstream = self.name, False
        nlp = self._pipeline.nlp
        if nlp is not None and self.name in nlp.component_names and not replace.options:
            config = nlp.get_pipe_config(self.name)
            if config.get("weights") == AUTO:
                # A saved config names what it was trained with, whatever is installed where it is loaded.
                config["weights"] = self._options.weights
            if self._options.weights is not None:
                credit_and_check_language(nlp, self._options.weights)
            defaults = default_options(BiLMOptions)
            replace.options = {name: config.get(name, value) for name, value in defaults.items()}

    def add_listener(self, listener: Model[list[Doc], list[Floats2d]], component_name: str) -> None:
        """Link a listener, and note for `replace_listeners` if it listens to "*".

        Raises:
            ValueError: this component stores no layers for it to mix.
        """
        if self._options.store == "average":
            raise ValueError(
                f'{component_name!r} listens to {self.name!r}, which has store = "average" and so stores no layers'
                ' for it to mix. Set store = "layers"; to free their memory, put a doc_cleaner after the last'
                ' component with a listener: nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo_layers": None}})'
            )
        super().add_listener(listener, component_name)
        if state_of(listener).upstream_name == "*":
            self.model.attrs["replace_listener_cfg"].any_upstream = True

    def is_disabled(self) -> bool:
        """Return True if it is a disabled component of its pipeline, which is unknown after sourcing or unpickling."""
        nlp = self._pipeline.nlp
        return nlp is not None and any(
            pipe is self and name in nlp.disabled for name, pipe in nlp.components
        )
