"""The layers of Docs, wherever they are: in the batch of an update, on the Docs, in the cache, or still to compute."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import Model, get_array_module
from thinc.types import Floats3d

from .config_only import ConfigOnly
from .encode.encoder import averages, layers_and_width, shim_of
from .factory_options import ElmoOptions
from .pipeline_ref import PipelineRef
from .store.cache import LayerCache
from .store.extensions import install_extensions, store_layers, stored_layers
from .store.hooks import set_hooks
from .store.mapped_arrays import mapped_copy

_Place: TypeAlias = Callable[[Sequence[Doc]], Sequence[Any]]
"""Docs -> their layers, or None for those that it does not have."""

_NO_ZEROS: tuple[Sequence[Doc], list[Floats3d]] = (), []
_NO_VERSION = ""  # of no weights, so that only layers that a user has set pass


class ComputedLayers(list[Any]):
    """The layers of some Docs, and the version of the weights that computed them (`BiLMShim.version`)."""

    def __init__(self, layers: Iterable[Any], version: str) -> None:
        super().__init__(layers)
        self.version = version


class LayerSource(ConfigOnly):
    """The one source of the layers of a biLM, and the way of their gradient back to it.

    An elmo component shares one with its listeners; an `ElmoTok2Vec` has its own. A copy or a pickle has neither a
    batch nor cached layers. Several threads may read while one trains.

    Args:
        model: a `BiLM_v1`.
        options: those that `ElmoOptions` adds take effect here.
        name: name of the component, under which its layers are stored on Docs; None (`ElmoTok2Vec`): none are stored.
        pipeline: the pipeline of the component, if it is known.
    """

    def __init__(
        self,
        model: Model[list[Doc], list[Floats3d]],
        options: ElmoOptions,
        name: str | None = None,
        pipeline: PipelineRef | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.pipeline = pipeline or PipelineRef()
        self._options = options
        self._cache = LayerCache(options.cache_mb, options.cache_dir)
        self._batch: _Batch | None = None
        self._zeros = _NO_ZEROS
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        model = None if self.name is None else self.model  # the layer that has it sets it
        return {**self.__dict__, "model": model, "_batch": None, "_zeros": _NO_ZEROS}

    @property
    def frozen(self) -> bool:
        """True if the present step leaves the biLM unchanged."""
        return shim_of(self.model).trainable is None

    # Initialization

    def zeros(self, docs: Sequence[Doc]) -> list[Floats3d]:
        """Return zeros in the shape of the layers, as `read` does for these Docs until other Docs are read, training
        begins, or spaCy links the pipeline, which it does at the end of `initialize`. Nobody links an `ElmoTok2Vec`, so
        its `read` also ends them at another list of the same Docs.

        There, the surrounding thinc layers predict on a sample to infer the shape of their input. Real layers cannot
        always be computed: no component has run on the Docs, so they have no sentences for `get_spans`.
        """
        layers, width = layers_and_width(self.model)
        zeros = [self.model.ops.alloc3f(layers, len(doc), width) for doc in docs]
        self._batch, self._zeros = None, (docs, zeros)
        return zeros

    def link(self, name: str) -> None:
        """Take the name of the component, whenever spaCy links the pipeline."""
        self.name, self._zeros = name, _NO_ZEROS

    # Prediction

    def compute(self, docs: Sequence[Doc], *, keep: bool = False) -> ComputedLayers:
        """Return the layers of each Doc, (layers, n_tokens, width), whatever is stored on it; with `store = "average"`
        their average, (n_tokens, width). The arrays are the caller's.

        The layers of training Docs (`keep`) are cached at once. After training has begun, those of other Docs are from
        the second time on: so the Docs of the dev part are computed twice, and not in every evaluation.
        """
        # The version is read first: if another thread changes the weights meanwhile, the layers have an old one.
        docs, version = list(docs), shim_of(self.model).version
        if self._options.store == "average":
            return ComputedLayers(averages(self.model, docs), version)
        if not (keep or self._cache.in_use):
            return ComputedLayers(self.model.predict(docs), version)
        cached = self._cache.get_or_compute(self.model, docs, keep=keep)
        return ComputedLayers(map(mapped_copy, cached), version)

    def store(self, docs: Sequence[Doc], layers: Sequence[Any]) -> None:
        """Store the result of `compute` on its Docs, with hooks and extra annotations if the options say so.

        Layers from elsewhere have no version, so training computes its own.
        """
        install_extensions()  # here, because a worker gets its component by unpickling
        version = getattr(layers, "version", None)
        for doc, array in zip(docs, layers, strict=True):
            store_layers(doc, str(self.name), array, version)
            if self._options.hooks:
                set_hooks(doc)
        if self._options.set_extra_annotations is not None:
            self._options.set_extra_annotations(list(docs), list(layers))

    def read(self, docs: Sequence[Doc], *, copies: bool = False) -> list[Floats3d]:
        """Return the layers of each Doc for a prediction, in arrays that the caller must not change.

        Layers stored on a Doc are used as they are. If there are none (after `as_doc`, or if the component is
        disabled), they are computed and stored there, with one warning.

        Args:
            copies: the consumer has made the Docs itself, so there is no reason to warn.
        """
        if self.name is None and docs is not self._zeros[0]:
            self._zeros = _NO_ZEROS
        return self._find(docs, copies, self._stored, self.compute)

    # Training

    def begin(self, docs: Sequence[Doc]) -> float:
        """Begin a batch: its Docs get a gradient if the biLM is trained. Nothing is computed before they are read.

        Returns:
            the loss of the batch before (see `backward`).
        """
        loss = self.backward()
        self._batch, self._zeros = _Batch(docs), _NO_ZEROS
        return loss

    def train(
        self, docs: Sequence[Doc], *, copies: bool = False
    ) -> tuple[list[Floats3d], Callable[[list[Floats3d]], Any] | None]:
        """Return the layers of Docs for a training step, in arrays that the caller must not change.

        Layers stored on a Doc are used if the user has set them, or if the present weights have computed them and need
        no gradient. Docs that are not in the batch (of `rehearse`, or if the component is excluded) get layers as if
        the biLM were frozen.

        Args:
            copies: the consumer has made the Docs itself. Those with the words of a Doc in the batch get its layers.

        Returns:
            The layers; and a function that adds the gradients with respect to them, float32, or None if none is needed.
        """
        self._zeros = _NO_ZEROS
        if self.name is None and not self.frozen:
            return self.model.begin_update(list(docs))
        compute = self._cached if self.name is None else partial(self.compute, keep=True)
        layers = self._find(docs, copies, self._stored_by_present_weights, compute)
        batch = self._batch
        if batch is None or batch.backprop is None:
            return layers, None
        return layers, partial(batch.add_gradient, layers)

    def backward(self) -> float:
        """Run the backward pass of the batch with the sum of the gradients, and end the batch. A batch that nobody has
        read yet goes on.

        Returns:
            the sum of squares of the gradient: spaCy's loss of elmo.
        """
        batch = self._batch
        if batch is None or batch.layers is None:
            return 0.0
        self._batch = None  # first, because a backward pass that fails cannot run again
        return 0.0 if self._is_outdated(batch) else batch.backward()

    def _is_outdated(self, batch: _Batch) -> bool:
        """Return True if the weights have changed since a batch was computed, with a warning if it has a gradient:
        the backward pass needs the old weights, which are gone."""
        if batch.version == shim_of(self.model).version:
            return False
        if batch.gradient:
            warnings.warn(
                f"The weights of {self.name!r} have changed since the last batch was computed, so its gradient is lost."
                " Before you change them, let the biLM take its step: nlp.update(examples, sgd=False), then"
                f" nlp.get_pipe({self.name!r}).finish_update(optimizer)",
                UserWarning,
                stacklevel=2,
            )
        return True

    # Where layers are

    def _find(
        self, docs: Sequence[Doc], copies: bool, stored: _Place, compute: _Place
    ) -> list[Any]:
        """Look for the layers of Docs in the batch, on the Docs and among the zeros, in this order, or compute them."""
        if copies and self._batch is not None:
            docs = self._batch.originals(docs)
        on_demand = partial(self._on_demand, compute, copies)
        return _first(docs, self._of_batch, stored, self._of_zeros, on_demand)

    def _of_batch(self, docs: Sequence[Doc]) -> list[Any]:
        """Return the layers of Docs in the batch, which are computed when its first Doc is asked for, and again if the
        weights have changed since."""
        batch = self._batch
        if batch is None or not any(id(doc) in batch.docs for doc in docs):
            return [None] * len(docs)
        if batch.layers is not None and self._is_outdated(batch):
            batch = self._batch = _Batch(list(batch.docs.values()))
        if batch.layers is None:
            batch.version, own = shim_of(self.model).version, list(batch.docs.values())
            if self.frozen:
                batch.fill(own, _first(own, self._stored_by_present_weights, self._cached))
            else:
                # Layers on a Doc have no graph, so only a user can want them here.
                own = [doc for doc in own if self._stored([doc], _NO_VERSION)[0] is None]
                batch.fill(own, *self.model.begin_update(own))
        return [batch.layers_of(doc) for doc in docs]

    def _stored(self, docs: Sequence[Doc], version: str | None = None) -> list[Any]:
        if self.name is None:
            return [None] * len(docs)
        return [stored_layers(doc, self.name, version) for doc in docs]

    def _stored_by_present_weights(self, docs: Sequence[Doc]) -> list[Any]:
        layers = self._stored(docs, shim_of(self.model).version)
        if found := [doc for doc, array in zip(docs, layers, strict=True) if array is not None]:
            # `compute` cannot know that it runs for annotating_components, so the cache is told now.
            self._cache.mark_training(self.model, found)
        return layers

    def _of_zeros(self, docs: Sequence[Doc]) -> list[Any]:
        zeros = {id(doc): array for doc, array in zip(*self._zeros, strict=True)}
        if any(id(doc) not in zeros for doc in docs):
            self._zeros = _NO_ZEROS  # other Docs than those of `initialize` mean that it is over
        return [zeros.get(id(doc)) for doc in docs]

    def _cached(self, docs: Sequence[Doc]) -> list[Floats3d]:
        """Return the layers of training Docs from the cache, which computes and stores those it does not contain."""
        return self._cache.get_or_compute(self.model, docs, keep=True)

    def _on_demand(self, compute: _Place, copies: bool, docs: Sequence[Doc]) -> Sequence[Any]:
        """Compute the layers of Docs on which the component did not run, and store these arrays on the Docs, so they
        must not be those of the cache."""
        computed = compute(docs)
        if self.name is None:
            return computed
        if not self._warned and (not copies or self.is_disabled()):
            self._warned = True
            warnings.warn(
                f"{self.name!r} did not run on Docs whose layers a later component uses, so they are computed on"
                " demand. When predicting, enable it. When training with it in frozen_components: if frozen = true,"
                " take it out of frozen_components, which suffices; otherwise add it to annotating_components",
                UserWarning,
                stacklevel=2,
            )
        self.store(docs, computed)
        return computed

    def is_disabled(self) -> bool:
        """Return True if its component is disabled in its pipeline, which is unknown after sourcing or unpickling."""
        nlp = self.pipeline.nlp
        return nlp is not None and any(
            getattr(pipe, "source", None) is self and name in nlp.disabled
            for name, pipe in nlp.components
        )


class _Batch:
    """The Docs of an update, their layers, and one buffer into which every listener adds its gradient.

    No listener counts as the last one, and none runs the backward pass: `LayerSource.backward` does, after all
    listeners have added their gradients. So no gradient is lost if one is disabled, excluded or without gold.

    A Doc is recognized by its identity, which is safe because the batch keeps a reference to it: a hash of its words
    would not distinguish another batch of the same words, and the id alone may be given to a new object.
    """

    def __init__(self, docs: Sequence[Doc]) -> None:
        self.docs = {id(doc): doc for doc in docs}
        self.version = _NO_VERSION
        """The version of the weights that have computed its layers (`BiLMShim.version`)."""
        self.layers: dict[int, Floats3d] | None = None
        self.backprop: Callable[[list[Any]], Any] | None = None
        self.gradient: dict[int, Any] = {}

    def originals(self, copies: Sequence[Doc]) -> list[Doc]:
        """Return the Docs of this batch that have the same words as copies; the copies themselves if there are none."""
        by_words = {_words(doc): doc for doc in self.docs.values()}
        return [by_words.get(_words(doc), doc) for doc in copies]

    def fill(self, docs: Sequence[Doc], layers: Sequence[Floats3d], backprop: Any = None) -> None:
        """Set the layers of Docs, and the backward pass if there is one."""
        self.layers = {id(doc): array for doc, array in zip(docs, layers, strict=True)}
        self.backprop = backprop

    def layers_of(self, doc: Doc) -> Floats3d | None:
        """Return the layers of a Doc; None for one that has none, or whose tokens have changed."""
        layers = (self.layers or {}).get(id(doc))
        return layers if layers is not None and layers.shape[1] == len(doc) else None

    def add_gradient(self, layers: Sequence[Floats3d], gradients: Sequence[Floats3d]) -> None:
        """Add a listener's gradients with respect to layers, except to those that are not from this batch."""
        own = {id(array): array for array in (self.layers or {}).values()}
        for array, gradient in zip(layers, gradients, strict=True):
            if id(array) in own:
                if not self.gradient:
                    xp = get_array_module(gradient)
                    self.gradient = {n: xp.zeros(a.shape, dtype="float32") for n, a in own.items()}
                self.gradient[id(array)] += gradient

    def backward(self) -> float:
        """Run the backward pass, if any listener has added a gradient. Return the sum of its squares."""
        gradient = list(self.gradient.values())
        if self.backprop is None or not gradient:
            return 0.0
        self.backprop(gradient)
        return float(sum((array**2).sum() for array in gradient))


def _first(docs: Sequence[Doc], *places: _Place) -> list[Any]:
    """Return the layers of each Doc from the first place that has them."""
    layers: list[Any] = [None] * len(docs)
    for place in places:
        missing = [number for number, array in enumerate(layers) if array is None]
        found = place([docs[number] for number in missing]) if missing else ()
        for number, array in zip(missing, found, strict=True):
            layers[number] = array
    return layers


def _words(doc: Doc) -> bytes:
    return doc.to_array(ORTH).tobytes()
