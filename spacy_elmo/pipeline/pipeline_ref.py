"""A weak reference from a component to the pipeline that contains it."""

from __future__ import annotations

import weakref
from typing import Any

from spacy.language import Language


class PipelineRef:
    """A weak reference from a component to the pipeline that contains it. The component needs this reference,
    because spaCy passes the pipeline only to the function that creates the component.

    In a copy of the whole pipeline, the reference points to the copied pipeline. In a copy of only the
    component, the reference points to the original pipeline. After unpickling, the reference is empty,
    because otherwise every worker process would get the whole pipeline with the component.
    """

    def __init__(self, nlp: Language | None = None) -> None:
        self._nlp = weakref.ref(nlp) if nlp is not None else None

    @property
    def nlp(self) -> Language | None:
        """The pipeline; None if the pipeline is unknown or no longer exists."""
        return self._nlp() if self._nlp is not None else None

    def __deepcopy__(self, memo: dict[int, Any]) -> PipelineRef:
        return PipelineRef(memo.get(id(self.nlp), self.nlp))

    def __reduce__(self) -> tuple[Any, ...]:
        return PipelineRef, ()
