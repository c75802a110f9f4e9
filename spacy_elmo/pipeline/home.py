"""The pipeline in which a component stands, as far as the component can know."""

from __future__ import annotations

import weakref
from typing import Any

from spacy.language import Language


class Home:
    """A weak reference to the pipeline that made a component, since spaCy tells a component no more.

    When the whole pipeline is copied, the copy refers to the copied one; a copy of the component alone still to the
    original. Pickled, it refers to none: a strong reference would drag the pipeline along into every worker.
    """

    def __init__(self, nlp: Language | None = None) -> None:
        self._nlp = weakref.ref(nlp) if nlp is not None else None

    @property
    def nlp(self) -> Language | None:
        """The pipeline; None: it is unknown, or gone."""
        return self._nlp() if self._nlp is not None else None

    def __deepcopy__(self, memo: dict[int, Any]) -> Home:
        return Home(memo.get(id(self.nlp), self.nlp))

    def __reduce__(self) -> tuple[Any, ...]:
        return Home, ()
