"""Class that returns the biLM layers of Docs. The layers come from the current training batch, from the Docs
or from a cache, or the biLM computes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from .config_only import ConfigOnly
from .encode.encoder import averages, layers_and_width, shim_of
from .factory_options import ElmoOptions
from .pipeline_ref import PipelineRef
from .store.cache import LayerCache
from .store.extensions import install_extensions, store_layers, stored_layers
from .store.hooks import set_hooks
from .store.mapped_arrays import mapped_copy
from .training_batch import NO_VERSION, TrainingBatch

_Place: TypeAlias = Callable[[Sequence[Doc]], Sequence[Any]]
"""Function that takes Docs and returns a list with the layers of each Doc. If the function has no layers for
a Doc, the list contains None for this Doc."""

_NO_ZEROS: tuple[Sequence[Doc], list[Floats3d]] = (), []


class ComputedLayers(list[Any]):
    """List with the layers of each Doc. The attribute `version` identifies the weights that computed the
    layers (see `BiLMShim.version`)."""

    def __init__(self, layers: Iterable[Any], version: str) -> None:
        super().__init__(layers)
        self.version = version


class LayerSource(ConfigOnly):
    """Object that returns the layers of Docs: stored, cached or newly computed. In training, the object also
    passes the gradient of the layers to the biLM.

    An `elmo` component shares its `LayerSource` with its listeners. An `ElmoTok2Vec` has its own. A copied or
    unpickled `LayerSource` starts without the current training batch and without cached layers. Several
    threads can read layers while one thread trains.

    Args:
        model: a `BiLM_v1`.
        options: the options of the component. This class uses only the options that `ElmoOptions` adds to
            the options of its base class `BiLMOptions`.
        name: name of the component. The layers are stored on Docs under this name. If the name is None,
            as in an `ElmoTok2Vec`, no layers are stored.
        pipeline: reference to the pipeline that contains the component; None: the pipeline is unknown.
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
        self._batch: TrainingBatch | None = None
        self._zeros = _NO_ZEROS
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        model = None if self.name is None else self.model  # an `ElmoTok2Vec` sets it again
        return {**self.__dict__, "model": model, "_batch": None, "_zeros": _NO_ZEROS}

    @property
    def frozen(self) -> bool:
        """True if the current training step does not change the biLM."""
        return shim_of(self.model).trainable is None

    # Initialization

    def zeros(self, docs: Sequence[Doc]) -> list[Floats3d]:
        """For each Doc, return zeros in the shape of its layers. Until `nlp.initialize` is finished, `read`
        returns the same zeros for these Docs.

        During `nlp.initialize`, the surrounding thinc layers predict on a sample of Docs to infer the shape
        of their input. The biLM cannot always compute layers at that time, because the option `get_spans` can
        need sentences, but no component has set sentences yet.

        `nlp.initialize` counts as finished when `read` gets other Docs, when training begins, or when spaCy
        links the listeners. spaCy does not link an `ElmoTok2Vec`. So for an `ElmoTok2Vec`, a new list of the
        same Docs also counts as other Docs. This method drops the current training batch without a backward
        pass, because `nlp.initialize` reads the weights again.
        """
        layers, width = layers_and_width(self.model)
        zeros = [self.model.ops.alloc3f(layers, len(doc), width) for doc in docs]
        self._batch, self._zeros = None, (docs, zeros)
        return zeros

    def link(self, name: str) -> None:
        """Set the name of the component, and end the use of the arrays from `zeros`. The component calls this
        method whenever spaCy links the listeners of the pipeline."""
        self.name, self._zeros = name, _NO_ZEROS

    # Prediction

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
        if not (keep or self._cache.in_use):
            return ComputedLayers(self.model.predict(docs), version)
        cached = self._cache.get_or_compute(self.model, docs, keep=keep)
        return ComputedLayers(map(mapped_copy, cached), version)

    def store(self, docs: Sequence[Doc], layers: Sequence[Any]) -> None:
        """Store the result of `compute` on the Docs. Then apply the options `hooks` and
        `set_extra_annotations`.

        If `layers` is not a result of `compute`, training ignores these layers, because it is unknown which
        weights computed the layers.
        """
        install_extensions()  # again here, because a worker process gets the component by unpickling
        version = getattr(layers, "version", None)
        for doc, array in zip(docs, layers, strict=True):
            store_layers(doc, str(self.name), array, version)
            if self._options.hooks:
                set_hooks(doc)
        if self._options.set_extra_annotations is not None:
            self._options.set_extra_annotations(list(docs), list(layers))

    def read(self, docs: Sequence[Doc], *, copies: bool = False) -> list[Floats3d]:
        """Return the layers of each Doc for a prediction. The caller must not change the arrays.

        Layers that are stored on a Doc are used. If a Doc has no layers (after `as_doc`, or if the `elmo`
        component is disabled), this method computes the layers, stores them on the Doc, and warns the first
        time.

        Args:
            copies: True if the Docs are copies that the component with the listener has made. Copies often
                have no layers, so this method warns only if the `elmo` component is disabled.
        """
        if self.name is None and docs is not self._zeros[0]:
            self._zeros = _NO_ZEROS
        return self._find(docs, copies, self._stored, self.compute)

    # Training

    def begin(self, docs: Sequence[Doc]) -> float:
        """Finish the previous training batch with `backward`, and begin a new batch. The layers of the Docs
        are computed when `train` or `read` first returns them.

        Returns:
            The result of `backward` for the previous batch.
        """
        loss = self.backward()
        self._batch, self._zeros = TrainingBatch(docs), _NO_ZEROS
        return loss

    def train(
        self, docs: Sequence[Doc], *, copies: bool = False
    ) -> tuple[list[Floats3d], Callable[[list[Floats3d]], Any] | None]:
        """Return the layers of Docs for a training step, and a function for the backward pass. The caller
        must not change the arrays.

        Layers that are stored on a Doc are used if the user has set them, or if the current weights have
        computed them and the weights need no gradient. For Docs that are not in the current training batch
        (in `rehearse`, or if the `elmo` component is excluded), the biLM is treated as frozen.

        Args:
            copies: True if the Docs are copies that the component with the listener has made. Each copy then
                gets the layers of the Doc with the same words in the training batch.

        Returns:
            The layers, and the function for the backward pass, which takes the float32 gradients of the
            layers. If no gradient is needed, the second result is None.
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

    # Places of layers

    def _find(
        self, docs: Sequence[Doc], copies: bool, stored: _Place, compute: _Place
    ) -> list[Any]:
        """Return the layers of each Doc. For each Doc, use the first that exists: its layers in the training
        batch, its layers from the function `stored`, its array from `zeros`, or new layers from the function
        `compute`."""
        batch = self._batch  # another thread can end the batch meanwhile
        if copies and batch is not None:
            docs = batch.originals(docs)
        on_demand = partial(self._on_demand, compute, copies)
        return _first(docs, self._of_batch, stored, self._of_zeros, on_demand)

    def _of_batch(self, docs: Sequence[Doc]) -> list[Any]:
        """Return the layers of each Doc in the current training batch, and None for each other Doc. The first
        call, and the first call after a change of the weights, compute the layers of the whole batch."""
        batch = self._batch
        if batch is None or not any(id(doc) in batch.docs for doc in docs):
            return [None] * len(docs)
        if batch.layers is not None and self._is_outdated(batch):
            batch = self._batch = TrainingBatch(list(batch.docs.values()))
        if batch.layers is None:
            batch.version, own = shim_of(self.model).version, list(batch.docs.values())
            if self.frozen:
                batch.fill(own, _first(own, self._stored_by_present_weights, self._cached))
            else:
                # Stored layers have no graph, so they are used here only if a user has set them.
                own = [doc for doc in own if self._stored([doc], NO_VERSION)[0] is None]
                batch.fill(own, *self.model.begin_update(own))
        return [batch.layers_of(doc) for doc in docs]

    def _stored(self, docs: Sequence[Doc], version: str | None = None) -> list[Any]:
        if self.name is None:
            return [None] * len(docs)
        ops = self.model.ops
        layers = [stored_layers(doc, self.name, version) for doc in docs]
        # The layers of a user or of a loaded Doc are NumPy arrays, also if the model is on a GPU.
        return [None if own is None else ops.asarray3f(own, dtype=own.dtype) for own in layers]

    def _stored_by_present_weights(self, docs: Sequence[Doc]) -> list[Any]:
        layers = self._stored(docs, shim_of(self.model).version)
        if found := [doc for doc, array in zip(docs, layers, strict=True) if array is not None]:
            # `compute` cannot know that it runs for annotating_components, so the Docs are marked here.
            self._cache.mark_training(self.model, found)
        return layers

    def _of_zeros(self, docs: Sequence[Doc]) -> list[Any]:
        zeros = {id(doc): array for doc, array in zip(*self._zeros, strict=True)}
        if any(id(doc) not in zeros for doc in docs):
            self._zeros = _NO_ZEROS  # other Docs than those of `initialize` show that it is over
        return [zeros.get(id(doc)) for doc in docs]

    def _cached(self, docs: Sequence[Doc]) -> list[Floats3d]:
        """Return the layers of training Docs from the cache. Layers that are not cached are computed and
        stored."""
        return self._cache.get_or_compute(self.model, docs, keep=True)

    def _on_demand(self, compute: _Place, copies: bool, docs: Sequence[Doc]) -> Sequence[Any]:
        """Compute the layers of Docs on which the `elmo` component did not run, and store them on the Docs.

        For an `ElmoTok2Vec`, no layers are stored. So only an `ElmoTok2Vec` may pass a function `compute`
        that returns arrays of the cache, which nobody may change.
        """
        computed = compute(docs)
        if self.name is None:
            return computed
        if not self._warned and (not copies or self.is_disabled()):
            self._warned = True
            warnings.warn(
                f"{self.name!r} did not run on some Docs, or their tokens were merged or split afterwards. A later"
                " component uses their layers, so they are computed on demand. For prediction, enable"
                f" {self.name!r}. For training with {self.name!r} in frozen_components: if it has frozen = true, remove"
                " it from frozen_components; otherwise add it to annotating_components",
                UserWarning,
                stacklevel=2,
            )
        self.store(docs, computed)
        return computed

    def is_disabled(self) -> bool:
        """Return True if the component is disabled in its pipeline; False if the pipeline is unknown."""
        nlp = self.pipeline.nlp
        return nlp is not None and any(
            getattr(pipe, "source", None) is self and name in nlp.disabled
            for name, pipe in nlp.components
        )


def _first(docs: Sequence[Doc], *places: _Place) -> list[Any]:
    """For each Doc, return the layers from the first function in `places` that has layers for the Doc."""
    layers: list[Any] = [None] * len(docs)
    for place in places:
        missing = [number for number, array in enumerate(layers) if array is None]
        found = place([docs[number] for number in missing]) if missing else ()
        for number, array in zip(missing, found, strict=True):
            layers[number] = array
    return layers
