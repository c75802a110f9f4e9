"""A weak reference from a component to its pipeline."""

from __future__ import annotations

import weakref
from typing import Any

from spacy.language import Language


class PipelineRef:
    """A weak reference to the pipeline that made a component: spaCy passes it to the factory and never again.

    When the whole pipeline is copied, the copied reference points to the copied pipeline; in a copy of the component
    alone it points to the original one. Pickled, it points to none: a strong reference would take the pipeline along
    into every worker process.
    """

    def __init__(self, nlp: Language | None = None) -> None:
        self._nlp = weakref.ref(nlp) if nlp is not None else None

    @property
    def nlp(self) -> Language | None:
        """The pipeline; None if it is unknown or no longer exists."""
        return self._nlp() if self._nlp is not None else None

    def __deepcopy__(self, memo: dict[int, Any]) -> PipelineRef:
        return PipelineRef(memo.get(id(self.nlp), self.nlp))

    def __reduce__(self) -> tuple[Any, ...]:
        return PipelineRef, ()
