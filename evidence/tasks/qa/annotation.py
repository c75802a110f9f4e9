"""Question, context and answer on a Doc.

The Doc has the question, a line break and the context; see `pairs`. `doc.spans["answer"]` contains the answer, a span
of the context. `.spacy` files keep it.
"""

from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

ANSWER = "answer"


def answer(doc: Doc) -> Span | None:
    """Return the answer of a Doc; None if it has none."""
    return next(iter(doc.spans.get(ANSWER, [])), None)


def set_answer(doc: Doc, start: int, end: int) -> None:
    """Set the answer of a Doc to the tokens from `start` to `end` (not included)."""
    doc.spans[ANSWER] = SpanGroup(doc, name=ANSWER, spans=[Span(doc, start, end)])


def aligned_answer(example: Example) -> Span | None:
    """Return the labelled answer in tokens of the predicted Doc; None if it matches no tokens there."""
    labelled = answer(example.reference)
    if labelled is None:
        return None
    return next(iter(example.get_aligned_spans_y2x([labelled])), None)
