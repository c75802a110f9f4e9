"""Class that returns the biLM layers of Docs. The layers come from the current training batch, from the Docs
or from a cache, or the biLM computes them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from .encode.encoder import averages, is_initializing, shim_of, zeros
from .factory_options import ElmoOptions
from .store.cache import LayerCache
from .store.extensions import (
    install_extensions,
    sources_of,
    store_layers,
    stored_layers,
    stored_on,
)
from .store.mapped_arrays import mapped_copy
from .training_batch import NO_VERSION, TrainingBatch

_numbers = itertools.count(1)


class ComputedLayers(list[Any]):
    """List with the layers of each Doc. The attribute `version` identifies the weights that computed the
    layers (see `BiLMShim.version`)."""

    def __init__(self, layers: Iterable[Any], version: str) -> None:
        super().__init__(layers)
        self.version = version


class LayerSource:
    """The part of an `elmo` component that its listeners use: it returns the layers of Docs, and passes the
    gradient of the layers to the biLM.

    A copied or unpickled `LayerSource` starts without the current training batch and without cached layers.
    Several threads can read layers while one thread trains.

    Args:
        model: a `BiLM_v1`.
        options: the options of the component. This class uses only the options that `ElmoOptions` adds to
            the options of its base class `BiLMOptions`.
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
    def frozen(self) -> bool:
        """True if training does not change the biLM."""
        return shim_of(self.model).trainable is None

    # Listeners

    def layers(
        self, docs: Sequence[Doc], is_train: bool, *, warn: bool = True
    ) -> tuple[list[Floats3d], Callable[[list[Floats3d]], Any] | None]:
        """Return the layers of each Doc, and a function for the backward pass. The caller must not change the
        arrays.

        For each Doc, these are its layers in the current training batch, or the layers that are stored on the
        Doc. In training, stored layers are used if the user has set them, or if the current weights have
        computed them. If a Doc has no layers (after `as_doc`, in `rehearse`, or if the `elmo` component is
        disabled or excluded), they are computed as by a frozen biLM, and stored on the Doc, with a warning the
        first time.

        While thinc initializes a model, Docs without layers get zeros, because initialization needs only the
        shape. The biLM cannot always compute layers at that time: the option `get_spans` can need sentences,
        but no component has set sentences yet.

        Args:
            warn: False: do not warn, because the caller makes Docs of its own, which have no layers.

        Returns:
            The layers, and the function for the backward pass, which takes the float32 gradients of the
            layers. If no gradient is needed, the second result is None.
        """
        batch = self._batch_of(docs)
        version = shim_of(self.model).version if is_train else None
        layers: list[Any] = [self._find(doc, batch, version) for doc in docs]
        if missing := [row for row, array in enumerate(layers) if array is None]:
            computed = self._on_demand([docs[row] for row in missing], is_train, warn)
            for row, array in zip(missing, computed, strict=True):
                layers[row] = array
        if is_train and (self.frozen or batch is None):
            self._cache.in_use = True
        if not is_train or batch is None or batch.backprop is None:
            return layers, None
        return layers, partial(batch.add_gradient, layers)

    def _find(self, doc: Doc, batch: TrainingBatch | None, version: str | None) -> Any:
        layers = None if batch is None else batch.layers_of(self._number(doc), doc)
        if layers is None:
            layers = stored_layers(doc, self.name, version)
            if layers is not None:
                # The layers of a user or of a loaded Doc are NumPy arrays, also if the model is on a GPU.
                layers = self.model.ops.asarray3f(layers, dtype=layers.dtype)
        return layers

    def _number(self, doc: Doc) -> int:
        return sources_of(doc).get(self.id, 0)

    def _in_batch(self, docs: Sequence[Doc], batch: TrainingBatch | None) -> bool:
        return batch is not None and any(self._number(doc) in batch.docs for doc in docs)

    def _batch_of(self, docs: Sequence[Doc]) -> TrainingBatch | None:
        """Return the current training batch, with layers, if it contains one of the Docs. The first call, and
        the first call after a change of the weights, compute the layers of the whole batch."""
        batch = self._batch  # another thread can end the batch meanwhile
        if batch is None or not self._in_batch(docs, batch):
            return None
        if batch.layers is not None and self._is_outdated(batch):
            batch = self._batch = TrainingBatch(batch.docs)
        if batch.layers is None:
            batch.version = shim_of(self.model).version
            # Stored layers have no graph, so a biLM that is trained uses only those that a user has set.
            usable = batch.version if self.frozen else NO_VERSION
            new = {
                n: d for n, d in batch.docs.items() if stored_layers(d, self.name, usable) is None
            }
            if self.frozen:
                docs = list(new.values())
                batch.fill(new, self._cache.get_or_compute(self.model, docs, keep=True))
            else:
                batch.fill(new, *self.model.begin_update(list(new.values())))
        return batch

    def _on_demand(self, docs: list[Doc], is_train: bool, warn: bool) -> Sequence[Any]:
        if is_initializing():
            return zeros(self.model, docs)
        if warn and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.name!r} did not run on some Docs, or their tokens were merged or split afterwards. A later"
                " component uses their layers, so they are computed on demand. For prediction, enable"
                f" {self.name!r}. For training with {self.name!r} in frozen_components: if it has frozen = true, remove"
                " it from frozen_components; otherwise add it to annotating_components",
                UserWarning,
                stacklevel=2,
            )
        computed = self.compute(docs, keep=is_train)
        self.store(docs, computed)
        return computed

    # The component

    def compute(self, docs: Sequence[Doc], *, keep: bool = False) -> ComputedLayers:
        """Compute the layers of each Doc, (layers, n_tokens, width), or get them from the cache.

        With the option `store = "average"`, compute the average of the layers, (n_tokens, width). Layers that
        are stored on a Doc are ignored. The caller may change the returned arrays.

        Args:
            keep: True for training Docs: cache their layers at once. False for all other Docs: cache the layers
                of a Doc when it is predicted for the second time after training has begun. So the layers of
                dev Docs, which are predicted in every evaluation, are computed only twice.
        """
        # Read the version first: if another thread changes the weights meanwhile, the layers have the old version.
        docs, version = list(docs), shim_of(self.model).version
        if self._options.store == "average":
            return ComputedLayers(averages(self.model, docs), version)
        # With annotating_components, the Docs of the batch are also predicted.
        keep = keep or (self.frozen and self._in_batch(docs, self._batch))
        if not (keep or self._cache.in_use):
            return ComputedLayers(self.model.predict(docs), version)
        cached = self._cache.get_or_compute(self.model, docs, keep=keep)
        return ComputedLayers(map(mapped_copy, cached), version)

    def store(self, docs: Sequence[Doc], layers: Sequence[Any]) -> None:
        """Store the result of `compute` on the Docs.

        If `layers` is not a result of `compute`, training ignores these layers, because it is unknown which
        weights computed the layers.
        """
        install_extensions()  # again here, because a worker process gets the component by unpickling
        version = getattr(layers, "version", None)
        for doc, array in zip(docs, layers, strict=True):
            store_layers(doc, self.name, array, version)
            stored_on(doc).sources.setdefault(self.id, 0)

    def begin(self, docs: Sequence[Doc]) -> float:
        """Finish the previous training batch with `backward`, and begin a new batch. The layers of the Docs
        are computed when `layers` first returns them.

        Returns:
            The result of `backward` for the previous batch.
        """
        loss = self.backward()
        numbered = {next(_numbers): doc for doc in {id(doc): doc for doc in docs}.values()}
        for number, doc in numbered.items():
            stored_on(doc).sources[self.id] = number
        self._batch = TrainingBatch(numbered)
        return loss

    def drop_batch(self) -> None:
        """End the current training batch without a backward pass, because its weights are replaced."""
        self._batch = None

    def backward(self) -> float:
        """If the layers of the current training batch have been computed, run the backward pass with the sum
        of the listeners' gradients, and end the batch.

        Returns:
            The sum of the squared elements of the gradient; 0 if no backward pass has run. spaCy shows this
            number as the loss of the `elmo` component.
        """
        batch = self._batch
        if batch is None or batch.layers is None:
            return 0.0
        self._batch = None  # first, because a failed backward pass cannot run again
        return 0.0 if self._is_outdated(batch) else batch.backward()

    def _is_outdated(self, batch: TrainingBatch) -> bool:
        """Return True if the weights have changed since the layers of a training batch were computed. If the
        batch has a gradient, warn that it is lost, because the backward pass needs the old weights."""
        if batch.version == shim_of(self.model).version:
            return False
        if batch.gradient:
            message = (
                f"The weights of {self.name!r} have changed since the last batch was computed, so its gradient is lost."
                f" First call nlp.get_pipe({self.name!r}).finish_update(optimizer), then change the weights"
            )
            warnings.warn(message, UserWarning, stacklevel=2)
        return True
