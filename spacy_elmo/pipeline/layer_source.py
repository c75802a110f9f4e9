"""The source of layers for listeners. It finds the layers of a Doc in the training batch, on the Doc or in a cache, or
computes them, and it passes the gradients of all listeners to the biLM together."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model, Optimizer
from thinc.types import Floats3d

from .encode.encoder import averages, is_initializing, shim_of, zeros
from .encode.mapped_arrays import mapped_copy
from .factory_options import ElmoOptions
from .store.cache import LayerCache, keys_of
from .store.extensions import (
    USER_ONLY,
    install_extensions,
    numbers_of,
    starts_of,
    store_layers,
    stored_layers,
    stored_on,
)

_numbers = itertools.count(1)


class ComputedLayers(list[Any]):
    """The layers of each Doc, and the `version` of the weights that computed them (see `BiLMShim.version`)."""

    def __init__(self, layers: Iterable[Any], version: str) -> None:
        super().__init__(layers)
        self.version = version


@dataclass
class TrainingBatch:
    """The Docs of a training step, their layers, and the sum of the listeners' gradients of these layers.

    `LayerSource.backward` runs the backward pass of the biLM after all listeners have added their gradients. So no
    gradient is lost if a listener is disabled, excluded or without gold annotation.

    A Doc is recognized by a number that is stored on the Doc (see `StoredLayers.numbers`). Copies of the Doc,
    on which an `EntityLinker` trains, have the same number.
    """

    docs: dict[int, Doc]
    version: str = ""
    """Identifier of the weights that computed the layers (see `BiLMShim.version`); empty: not computed yet."""
    layers: dict[int, Floats3d] = field(default_factory=dict)
    starts: dict[int, np.ndarray] = field(default_factory=dict)
    """The character offsets of the tokens for which the layers were computed."""
    backprop: Callable[[list[Any]], Any] | None = None
    """Function that takes the gradient of the layers of each Doc; None: the biLM is not trained."""
    gradient: dict[int, Any] = field(default_factory=dict)

    def find(self, number: int, doc: Doc) -> Floats3d | None:
        """Return the layers of a Doc; None if there are none, or if the Doc was retokenized."""
        if number in self.layers and np.array_equal(self.starts[number], starts_of(doc)):
            return self.layers[number]
        return None


class LayerSource:
    """The part of an `elmo` component that its listeners use: it returns the layers of Docs, and passes the
    gradient of the layers to the biLM.

    A copied or unpickled `LayerSource` starts without the current training batch and without cached layers.
    Several threads can read layers while one thread trains.

    Args:
        model: a `BiLM_v1`.
        options: the options of the component.
        name: name of the component. The layers are stored on Docs under this name.
    """

    def __init__(
        self, model: Model[list[Doc], list[Floats3d]], options: ElmoOptions, name: str
    ) -> None:
        self.model = model
        self.name = name
        self._options = options
        self._cache = LayerCache(options.cache_mb)
        self._batch: TrainingBatch | None = None
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_batch": None}

    @property
    def id(self) -> int:
        """Number of this object. Copies have other numbers."""
        return shim_of(self.model).id

    @property
    def _version(self) -> str:
        return shim_of(self.model).version

    # Listeners

    def layers(
        self, docs: Sequence[Doc], is_train: bool, *, warn: bool = True
    ) -> tuple[list[Floats3d], Callable[[list[Floats3d]], None] | None]:
        """Return the layers of each Doc, which the caller must not change, and a function that adds a listener's
        float32 gradient of the layers to the gradient of the training batch; None if nothing is trained.

        The layers of a Doc are those of the current training batch, or those that are stored on the Doc. In training,
        stored layers are used if the user has set them, or if the current weights have computed them. If a Doc has
        no layers (after `as_doc`, in `rehearse`, or if the `elmo` component is disabled or excluded), they are
        computed as by a frozen biLM, and stored on the Doc, with a warning the first time.

        Args:
            warn: False: do not warn, because the caller makes Docs of its own, which have no layers.
        """
        batch = self._batch_of(docs)
        version = self._version if is_train else None
        layers: list[Any] = [self._find(doc, batch, version) for doc in docs]
        if missing := [row for row, array in enumerate(layers) if array is None]:
            computed = self._on_demand([docs[row] for row in missing], is_train, warn)
            for row, array in zip(missing, computed, strict=True):
                layers[row] = array
        if is_train and (self._options.frozen or batch is None):
            self._cache.in_use = True
        if not is_train or batch is None or batch.backprop is None:
            return layers, None
        numbers = {id(array): number for number, array in batch.layers.items()}
        total = batch.gradient

        def add_gradient(gradients: list[Floats3d]) -> None:
            for array, gradient in zip(layers, gradients, strict=True):
                if (number := numbers.get(id(array))) is not None:
                    total[number] = total.get(number, 0.0) + gradient

        return layers, add_gradient

    def _batch_of(self, docs: Sequence[Doc]) -> TrainingBatch | None:
        """Return the current training batch, if it contains one of the Docs. The first call, and the first call
        after a change of the weights, compute the layers of the whole batch."""
        batch = self._batch  # another thread can end the batch meanwhile
        if batch is None or not self._has_any(batch, docs):
            return None
        if self._is_outdated(batch):
            batch = self._batch = self._computed(batch.docs)
        return batch

    def _has_any(self, batch: TrainingBatch, docs: Sequence[Doc]) -> bool:
        return any(numbers_of(doc).get(self.id) in batch.docs for doc in docs)

    def _is_outdated(self, batch: TrainingBatch) -> bool:
        """Return True if the current weights have not computed the layers of a training batch. If the batch has a
        gradient, warn that it is lost, because the backward pass needs the old weights."""
        is_outdated = batch.version != self._version
        if is_outdated and batch.gradient:
            warnings.warn(
                f"The weights of {self.name!r} have changed since the last batch was computed, so its gradient is lost."
                f" First call nlp.get_pipe({self.name!r}).finish_update(optimizer), then change the weights",
                UserWarning,
                stacklevel=2,
            )
        return is_outdated

    def _computed(self, docs: dict[int, Doc]) -> TrainingBatch:
        version, frozen = self._version, self._options.frozen
        # Stored layers have no graph, so a biLM that is trained uses only those that a user has set.
        usable = version if frozen else USER_ONLY
        new = {n: doc for n, doc in docs.items() if stored_layers(doc, self.name, usable) is None}
        layers, backprop = (
            (self._cached(list(new.values()), keep=True), None)
            if frozen
            else self.model.begin_update(list(new.values()))
        )
        starts = {number: starts_of(doc) for number, doc in new.items()}
        return TrainingBatch(docs, version, dict(zip(new, layers, strict=True)), starts, backprop)

    def _find(self, doc: Doc, batch: TrainingBatch | None, version: str | None) -> Any:
        layers = None if batch is None else batch.find(numbers_of(doc).get(self.id, 0), doc)
        if layers is None:
            layers = stored_layers(doc, self.name, version)
            if layers is not None:
                # The layers of a user or of a loaded Doc are NumPy arrays, also if the model is on a GPU.
                layers = self.model.ops.asarray3f(layers, dtype=layers.dtype)
        return layers

    def _on_demand(self, docs: list[Doc], is_train: bool, warn: bool) -> Sequence[Any]:
        if is_initializing():
            # Initialization needs only the shape. The biLM cannot always compute layers at that time: the option
            # `get_spans` can need sentences, but no component has set sentences yet.
            return zeros(self.model, docs)
        if warn and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.name!r} did not run on some Docs, or their tokens were merged or split afterwards. A later"
                " component uses their layers, so they are computed on demand. For prediction, enable"
                f" {self.name!r}. For training, a component in frozen_components must be in annotating_components, too",
                UserWarning,
                stacklevel=2,
            )
        computed = self.compute(docs, keep=is_train)
        self.store(docs, computed)
        return computed

    # The component

    def compute(self, docs: Sequence[Doc], *, keep: bool = False) -> ComputedLayers:
        """Compute the layers of each Doc, (layers, n_tokens, width), or get them from the cache. With the option
        `store = "average"`, compute the average of the layers, (n_tokens, width). The caller may change the arrays.

        Args:
            keep: True for training Docs: cache their layers. Other Docs are only cached after training has begun,
                because they may be dev Docs, and only if space is left.
        """
        # Read the version first: if another thread changes the weights meanwhile, the layers have the old version.
        docs, version, batch = list(docs), self._version, self._batch
        if self._options.store == "average":
            return ComputedLayers(averages(self.model, docs), version)
        # With annotating_components, the Docs of the batch are also predicted.
        keep = keep or (self._options.frozen and batch is not None and self._has_any(batch, docs))
        if not (keep or self._cache.in_use):
            return ComputedLayers(self.model.predict(docs), version)
        return ComputedLayers(map(mapped_copy, self._cached(docs, keep=keep)), version)

    def _cached(self, docs: Sequence[Doc], *, keep: bool) -> list[Floats3d]:
        """Return the layers of Docs from the cache, and compute layers that are not cached. The caller must not
        change the arrays, because the next epoch uses the same arrays."""
        if not self._options.cache_mb:
            return self.model.predict(list(docs))
        keys, version = keys_of(docs, self.model.attrs["options"].get_spans), self._version
        layers = self._cache.find(keys, version)
        missing = [row for row, array in enumerate(layers) if array is None]
        computed = self.model.predict([docs[row] for row in missing])
        if version == self._version:  # False if another thread has changed the weights meanwhile
            self._cache.add([keys[row] for row in missing], computed, version, evict=keep)
        for row, array in zip(missing, computed, strict=True):
            layers[row] = array
        return layers

    def store(self, docs: Sequence[Doc], layers: Sequence[Any]) -> None:
        """Store the result of `compute` on the Docs. Training ignores other layers, because it is unknown which
        weights computed them."""
        install_extensions()  # again here, because a worker process gets the component by unpickling
        version = getattr(layers, "version", None)
        for doc, array in zip(docs, layers, strict=True):
            store_layers(doc, self.name, array, version)
            stored_on(doc).numbers.setdefault(self.id, 0)

    def begin(self, docs: Sequence[Doc]) -> float:
        """Finish the previous training batch with `backward`, whose result is returned, and begin a new batch.
        The layers of the Docs are computed when `layers` first returns them."""
        loss = self.backward()
        numbered = {next(_numbers): doc for doc in docs}
        for number, doc in numbered.items():
            stored_on(doc).numbers[self.id] = number
        self._batch = TrainingBatch(numbered)
        return loss

    def backward(self) -> float:
        """If the layers of the current training batch have been computed, run the backward pass with the sum
        of the listeners' gradients, and end the batch. Return the sum of the squared elements of the gradient, which
        spaCy shows as the loss of the `elmo` component; 0 if no backward pass has run."""
        batch = self._batch
        if batch is None or not batch.version:
            return 0.0
        self._batch = None  # first, because a failed backward pass cannot run again
        if batch.backprop is None or not batch.gradient or self._is_outdated(batch):
            return 0.0
        gradients: list[Any] = [
            batch.gradient[number]
            if number in batch.gradient
            else self.model.ops.alloc3f(*array.shape)
            for number, array in batch.layers.items()
        ]
        batch.backprop(gradients)
        return float(sum((gradient**2).sum() for gradient in gradients))

    def finish_update(self, optimizer: Optimizer) -> float:
        """Run `backward`, whose result is returned, and an optimizer step."""
        loss = self.backward()
        self.model.finish_update(optimizer)
        return loss
