"""The part of a component that links listeners to it, in the form that spaCy's pipeline expects."""

from __future__ import annotations

import warnings
from typing import Any

from spacy.pipeline import EntityLinker
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..layer_source import LayerSource
from .listener import is_listener, state_of


class Upstream:
    """Base class of a component that listeners are linked to (spaCy's protocol `ListenedToComponent`)."""

    name: str
    source: LayerSource

    def resolve_config(self) -> None:
        """Update what depends on the pipeline. Called whenever spaCy links the pipeline."""

    @property
    def listener_map(self) -> dict[str, list[Model]]:
        """The listeners by the name of their component. spaCy empties it before it links a pipeline."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, listeners: dict[str, list[Model]]) -> None:
        self._listener_map = listeners
        self._nearer: list[str] = []
        self.source.link(self.name)
        self.resolve_config()

    @property
    def listeners(self) -> list[Model]:
        """The listeners of all components."""
        return [listener for listeners in self.listener_map.values() for listener in listeners]

    @property
    def listening_components(self) -> list[str]:
        """The names of the components that have a listener."""
        return list(self.listener_map)

    def add_listener(self, listener: Model[list[Doc], list[Floats2d]], component_name: str) -> None:
        """Link a listener to this component."""
        listeners = self.listener_map.get(component_name, [])
        if not any(listener is known for known in listeners):
            self.listener_map[component_name] = [*listeners, listener]
        state_of(listener).link(self)

    def remove_listener(
        self, listener: Model[list[Doc], list[Floats2d]], component_name: str
    ) -> bool:
        """Unlink a listener. Return True if it was linked."""
        listeners = self.listener_map.get(component_name, [])
        # A new list, because `nlp.replace_listeners` iterates over the old one while it calls this.
        rest = [known for known in listeners if known is not listener]
        if len(rest) == len(listeners):
            return False
        if rest:
            self.listener_map[component_name] = rest
        else:
            del self.listener_map[component_name]
        state_of(listener).link(None)
        return True

    def find_listeners(self, component: Any) -> None:
        """Link the listeners of a component that comes later in the pipeline.

        spaCy calls this in the order of the pipeline, so another elmo that was passed before is nearer to the component
        and gets a listener to "*". spaCy skips a disabled elmo, which keeps its listeners.
        """
        if isinstance(component, Upstream):
            self._nearer.append(component.name)
        if not isinstance(getattr(component, "model", None), Model):
            return
        for node in component.model.walk():
            if not is_listener(node):
                continue
            name, linked_to = state_of(node).upstream_name, state_of(node).linked_to
            if name not in ("*", self.name):
                if linked_to is self:
                    self.warn_once(
                        f"{name} {self.name} {component.name}",
                        f"{component.name!r} listens to {name!r}, which is called {self.name!r} now, so"
                        f" {self.name!r} no longer learns from it, and the saved pipeline will not work. Name the"
                        f" component {name!r} again: nlp.rename_pipe({self.name!r}, {name!r})",
                    )
                continue
            if name == "*" and _is_kept_by(linked_to, node):
                continue
            if name == "*" and self._nearer:
                self.warn_once(
                    f"* {component.name}",
                    f'{component.name!r} listens to any elmo (upstream = "*"), and there are several:'
                    f" {self.name!r} and {self._nearer[-1]!r}. It gets the nearest, {self._nearer[-1]!r};"
                    " name the one you mean",
                )
            else:
                self.add_listener(node, component.name)
                state_of(node).docs_are_copies = isinstance(component, EntityLinker)

    def relink_listeners(self) -> None:
        """Link the listeners again after this component was copied or unpickled together with them.

        A shallow copy shares the listeners with the original, to which they stay linked.
        """
        for listener in self.listeners:
            state = state_of(listener)
            if not any(listener is known for known in getattr(state.linked_to, "listeners", ())):
                state.link(self)

    def warn_once(self, key: str, message: str) -> None:
        """Give a warning unless this component has given one with the same key before."""
        warned = self.__dict__.setdefault("_warned", set())
        if key not in warned:
            warned.add(key)
            warnings.warn(message, UserWarning, stacklevel=3)


def _is_kept_by(component: Any, listener: Model) -> bool:
    """Return True if a listener is linked to a disabled component, which was not removed from the pipeline."""
    return (
        isinstance(component, Upstream)
        and component.source.is_disabled()
        and any(listener is known for known in component.listeners)
    )
