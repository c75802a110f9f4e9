"""The `elmo` component. It stores the layers of a biLM on Docs, and trains the biLM with the gradients of
later components."""

from __future__ import annotations

import functools
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.language import Language
from spacy.pipeline import EntityLinker, TrainablePipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d, Floats3d

from ..bilm.kernels.native import one_thread_after_fork
from ..bilm.spelling import Spelling
from .encode import shim
from .encode.encoder import configure, shim_of
from .factory_options import BiLMOptions, ElmoOptions, default_options
from .layer_source import ComputedLayers, LayerSource
from .listen.listener import is_listener, state_of
from .listen.tok2vec import ReplaceListenerConfig, replace_listener
from .pipeline_meta import credit_weights
from .store import cache
from .store.extensions import install_extensions


def _could_listen(nlp: Language, name: str) -> bool:
    """Return True if the config of the component `name` has a `tok2vec` block, but its `model` block uses no
    architecture of this package."""
    model = nlp.get_pipe_config(name).get("model")
    return isinstance(model, dict) and "tok2vec" in model and "spacy-elmo." not in str(model)


class PipelineRef:
    """A weak reference from a component to the pipeline that contains it, which spaCy passes only to the function
    that creates the component.

    In a copy of the whole pipeline, the reference points to the copied pipeline. After unpickling, it is empty,
    because otherwise every worker process would get the whole pipeline with the component.
    """

    def __init__(self, nlp: Language | None = None) -> None:
        self._nlp = weakref.ref(nlp) if nlp is not None else lambda: None

    @property
    def nlp(self) -> Language | None:
        """The pipeline; None if the pipeline is unknown or no longer exists."""
        return self._nlp()

    def __deepcopy__(self, memo: dict[int, Any]) -> PipelineRef:
        return PipelineRef(memo.get(id(self.nlp), self.nlp))

    def __reduce__(self) -> tuple[Any, ...]:
        return PipelineRef, ()


class Elmo(TrainablePipe):
    """The `elmo` component. It stores the layers of a biLM on Docs, and trains the biLM with the gradients of
    its listeners (layers inside later components that use the biLM's vectors).

    The attribute `source` does this work. This class adds the methods that spaCy expects of a component.

    Args:
        vocab: the pipeline's vocabulary.
        model: a `spacy-elmo.BiLM.v1`.
        name: name of the component in the pipeline.
        options: the options of the component, which `factory_options.py` describes.
        pipeline: reference to the pipeline that contains the component.
        is_auto: True if the config has `weights = "auto"`, for which `options` has the name of a biLM.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats3d]],
        name: str,
        *,
        options: ElmoOptions,
        pipeline: PipelineRef,
        is_auto: bool,
    ) -> None:
        super().__init__(vocab, model, name)
        configure(model, options)
        self.source = LayerSource(model, options, name)
        self._options = options
        self._pipeline = pipeline
        self._is_auto = is_auto
        self._is_in_config = False
        self._losses: dict[str, float] = {}
        model.attrs["replace_listener"] = replace_listener
        model.attrs["replace_listener_cfg"] = ReplaceListenerConfig(name)
        self.listener_map = {}
        install_extensions()
        _guard_forks()
        one_thread_after_fork()

    @property
    def spelling(self) -> Spelling:
        """The spelling of the biLM, which converts words before the biLM reads them. Loads the weights if need be."""
        return shim_of(self.model).config.spelling

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> ComputedLayers:
        """Compute the layers of each Doc."""
        return self.source.compute(list(docs))

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Any]) -> None:
        """Store `scores`, the layers that `predict` has returned, on the Docs."""
        self.source.store(list(docs), scores)

    # Training

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Read the weights file, even if it was read before. If the option `weights` is null, draw random
        weights. `get_examples` is not used."""
        self.model.initialize()
        self.source = LayerSource(self.model, self._options, self.name)
        names = [] if nlp is None or self.listeners else nlp.pipe_names
        # Components before this one cannot use its vectors.
        later = names[names.index(self.name) + 1 :] if self.name in names else names
        if nlp and (others := [name for name in later if _could_listen(nlp, name)]):
            warnings.warn(
                f"No component listens to {self.name!r}, so {' and '.join(others)} will not use its vectors. In the"
                f" config, set [components.{others[0]}.model.tok2vec] to spacy-elmo.ElmoListener.v1, or to"
                f" spacy-elmo.ElmoEnhanced.v1 with a listener in it. `python -m spacy elmo init-config --pipeline"
                f" {','.join(others)}` writes such a config",
                UserWarning,
                stacklevel=2,
            )

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Begin a training step with the predicted Docs of some examples. The layers of these Docs are
        computed when a listener first uses them.

        The backward pass runs at the next `update` or in `finish_update`, after all listeners have added
        their gradients. `nlp.update(examples, sgd=sgd)` calls `finish_update` before the listeners run, so
        `nlp.update` trains the biLM one batch late. This delay does not occur in `spacy train`, or in loops
        that pass `sgd=False` and call `finish_update` themselves. `drop` has no effect, because a biLM is
        fine-tuned without dropout.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        self._add_loss(self.source.begin([example.predicted for example in examples]))
        self._losses = losses
        if not self._options.frozen:
            self._warn_of_idle_listeners()
        if sgd is not None and sgd is not False:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Run the backward pass and an optimizer step for the current batch of Docs. If no listener has used
        the batch yet, keep it for the next call."""
        self._add_loss(self.source.finish_update(sgd))

    def _warn_of_idle_listeners(self) -> None:
        idle = []
        for name, (listener, *_) in self.listener_map.items():
            state = state_of(listener)
            state.idle_steps += 1
            # Not after one step: not every batch has annotation for each component.
            if state.idle_steps == 10:
                idle.append(repr(name))
        if idle:
            warnings.warn(
                f"{self.name!r} is trained, but {', '.join(idle)} not, so their predictions get worse. Freeze"
                f" {self.name!r} too: `python -m spacy elmo init-config --onto` writes such a config",
                UserWarning,
                stacklevel=2,
            )

    def _add_loss(self, loss: float) -> None:
        if loss:
            self._losses[self.name] = self._losses.get(self.name, 0.0) + loss

    # Listeners: the methods of spaCy's protocol `ListenedToComponent`

    @property
    def listener_map(self) -> dict[str, list[Model]]:
        """Mapping from the names of later components to lists of their listeners. spaCy sets an empty mapping when
        the components of the pipeline have changed, before it links their listeners."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, listeners: dict[str, list[Model]]) -> None:
        self._listener_map = listeners
        self._later_elmos: list[str] = []
        self.enter_pipeline()

    def enter_pipeline(self) -> None:
        """Take over the name of the component. The first time, replace `weights = "auto"` in the pipeline's config
        by the name of the weights, add the weights to the pipeline's meta, and copy the biLM's options for
        `replace_listeners`.

        `__init__` cannot do this, because spaCy adds the component's config to the pipeline after `__init__`.
        """
        self.source.name = self.name
        replace = self.model.attrs["replace_listener_cfg"]
        replace.upstream = self.name
        nlp = self._pipeline.nlp
        if nlp is not None and self.name in nlp.component_names and not self._is_in_config:
            self._is_in_config = True
            config = nlp.get_pipe_config(self.name)
            if self._is_auto:
                # A saved config names the weights of the training, because "auto" may mean others on another machine.
                config["weights"] = self._options.weights
            if self._options.weights is not None:
                credit_weights(nlp, self._options.weights)
            # Not from the config, whose values can be variables of another config (${...}). But the function of
            # `get_spans` has its block there.
            names = default_options(BiLMOptions)
            replace.options = {name: getattr(self._options, name) for name in names}
            replace.options["get_spans"] = config.get("get_spans")

    @property
    def listeners(self) -> list[Model]:
        """The listeners that are linked to this component."""
        return [listener for listeners in self.listener_map.values() for listener in listeners]

    @property
    def listening_components(self) -> list[str]:
        """The names of the components with a listener that is linked to this component."""
        return list(self.listener_map)

    def add_listener(self, listener: Model[list[Doc], list[Floats2d]], component_name: str) -> None:
        """Link a listener to this component. `component_name` is the component that contains the listener."""
        if self._options.store == "average":
            raise ValueError(
                f'{component_name!r} listens to {self.name!r}, but {self.name!r} has store = "average", so it stores'
                ' no layers to mix. Set store = "layers". To free the memory of the layers, add a doc_cleaner after'
                ' the last listener: nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo_layers": None}})'
            )
        listeners = self.listener_map.get(component_name, [])
        if not any(listener is known for known in listeners):
            self.listener_map[component_name] = [*listeners, listener]
        state_of(listener).link(self)

    def remove_listener(
        self, listener: Model[list[Doc], list[Floats2d]], component_name: str
    ) -> bool:
        """Unlink a listener of the component `component_name`. Return True if the listener was linked."""
        listeners = self.listener_map.get(component_name, [])
        # A new list, because `nlp.replace_listeners` iterates over the old one while it calls this.
        rest = [known for known in listeners if known is not listener]
        if len(rest) == len(listeners):
            return False
        if rest:
            self.listener_map[component_name] = rest
        else:
            del self.listener_map[component_name]
        state_of(listener).unlink(self)
        return True

    def find_listeners(self, component: Any) -> None:
        """Link the listeners of a component that comes later in the pipeline.

        spaCy calls this method once for each later component, in pipeline order.

        Raises:
            ValueError: there are two `elmo` components before a listener with `upstream = "*"`.
        """
        if isinstance(component, Elmo):
            self._later_elmos.append(component.name)
        if not isinstance(getattr(component, "model", None), Model):
            return
        for node in component.model.walk():
            if not is_listener(node):
                continue
            state = state_of(node)
            if state.upstream_name not in ("*", self.name):
                continue
            if state.upstream_name == "*" and self._later_elmos:
                raise ValueError(
                    f'{component.name!r} listens to any elmo (upstream = "*"), but there are several: {self.name!r} and'
                    f" {self._later_elmos[-1]!r}. Set upstream to the name of one in the ElmoListener of"
                    f" {component.name!r}"
                )
            self.add_listener(node, component.name)
            if isinstance(component, EntityLinker):
                state.in_entity_linker = True
                state.needs_width = not component.model.get_ref("tok2vec").has_dim("nO")


@functools.cache
def _guard_forks() -> None:
    """Renew our locks in processes that are forked from now on, which would wait for a lock that another thread of
    the parent has held."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    shim.renew_locks()
    cache.renew_lock()
