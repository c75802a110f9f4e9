"""Question, context and answer on a Doc.

The Doc is the question, a line break, the context, see `pairs`. `doc.spans["answer"]` contains the answer, a span of
the context. It survives `.spacy` files.
"""

from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

ANSWER = "answer"


def answer(doc: Doc) -> Span | None:
    """Return the answer of a Doc; None if it has none."""
    return next(iter(doc.spans.get(ANSWER, [])), None)


def set_answer(doc: Doc, start: int, end: int) -> None:
    """Write the tokens from `start` up to, not including, `end` to a Doc as its answer, in place of an earlier one."""
    doc.spans[ANSWER] = SpanGroup(doc, name=ANSWER, spans=[Span(doc, start, end)])


def aligned_answer(example: Example) -> Span | None:
    """Return the labelled answer in tokens of the predicted Doc; None if it fits no tokens there."""
    labelled = answer(example.reference)
    if labelled is None:
        return None
    return next(iter(example.get_aligned_spans_y2x([labelled])), None)
