"""What makes a component one that listeners can listen to, in the form that spaCy looks for."""

from __future__ import annotations

import warnings
from typing import Any

from spacy.pipeline import EntityLinker
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from .listener import is_listener, state_of


class Upstream:
    """A component that knows its listeners (spaCy's protocol `ListenedToComponent`)."""

    name: str

    def linked(self) -> None:
        """Called when spaCy links the pipeline anew."""

    def is_disabled(self) -> bool:
        """Whether it stands in its pipeline, disabled, as far as it knows."""
        return False

    @property
    def listener_map(self) -> dict[str, list[Model]]:
        """The listeners in each component. spaCy empties it before it links a pipeline."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, listeners: dict[str, list[Model]]) -> None:
        self._listener_map = listeners
        self._nearer: list[str] = []
        self.linked()

    @property
    def listeners(self) -> list[Model]:
        """All layers that listen."""
        return [listener for own in self.listener_map.values() for listener in own]

    @property
    def listening_components(self) -> list[str]:
        """The components that have one."""
        return list(self.listener_map)

    def add_listener(self, listener: Model[list[Doc], list[Floats2d]], component_name: str) -> None:
        """Take in a listener."""
        own = self.listener_map.get(component_name, [])
        if not any(listener is known for known in own):
            self.listener_map[component_name] = [*own, listener]
        state_of(listener).link(self)

    def remove_listener(
        self, listener: Model[list[Doc], list[Floats2d]], component_name: str
    ) -> bool:
        """Dismiss a listener. Whether it was there."""
        own = self.listener_map.get(component_name, [])
        # A new list, because `nlp.replace_listeners` walks over the old one while it calls this.
        rest = [known for known in own if known is not listener]
        if len(rest) == len(own):
            return False
        if rest:
            self.listener_map[component_name] = rest
        else:
            del self.listener_map[component_name]
        state_of(listener).link(None)
        return True

    def find_listeners(self, component: Any) -> None:
        """Take in the listeners of a component that stands later in the pipeline.

        spaCy asks in the order of the pipeline, so another elmo that was met before is nearer to
        the component: a listener to "*" is left to it. spaCy passes over one that is disabled, which keeps its own.
        """
        if isinstance(component, Upstream):
            self._nearer.append(component.name)
        if not isinstance(getattr(component, "model", None), Model):
            return
        for node in component.model.walk():
            if not is_listener(node):
                continue
            wanted, linked_to = state_of(node).upstream_name, state_of(node).linked_to
            if wanted not in ("*", self.name):
                if linked_to is self:
                    self.warn_once(
                        f"{wanted} {self.name} {component.name}",
                        f"{component.name!r} listens to {wanted!r}, which is called {self.name!r} now, so"
                        f" {self.name!r} no longer learns from it, and the saved pipeline will not work. Name the"
                        f" component {wanted!r} again: nlp.rename_pipe({self.name!r}, {wanted!r})",
                    )
                continue
            if wanted == "*" and _keeps(linked_to, node):
                continue
            if wanted == "*" and self._nearer:
                self.warn_once(
                    f"* {component.name}",
                    f'{component.name!r} listens to any elmo (upstream = "*"), and there are several:'
                    f" {self.name!r} and {self._nearer[-1]!r}. It gets the nearest, {self._nearer[-1]!r};"
                    " name the one you mean",
                )
            else:
                self.add_listener(node, component.name)
                state_of(node).own_docs = isinstance(component, EntityLinker)

    def adopt_listeners(self) -> None:
        """Link the listeners of a component that is a copy, or was unpickled: with it, or with its whole pipeline,
        they were copied too. A shallow copy shares them with the original, whose they stay."""
        for listener in self.listeners:
            state = state_of(listener)
            if not any(listener is known for known in getattr(state.linked_to, "listeners", ())):
                state.link(self)

    def warn_once(self, about: str, message: str) -> None:
        """Warn, if it is the first time that this component warns about this."""
        warned = self.__dict__.setdefault("_warned", set())
        if about not in warned:
            warned.add(about)
            warnings.warn(message, UserWarning, stacklevel=3)


def _keeps(component: Any, listener: Model) -> bool:
    """Whether a component that is disabled has a listener. One that was removed from the pipeline has none."""
    return (
        isinstance(component, Upstream)
        and component.is_disabled()
        and any(listener is known for known in component.listeners)
    )
