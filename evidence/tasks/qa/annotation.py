"""Where question, context and answer stand on a Doc.

The Doc is the question, a line break, the context, as of `pairs`. `doc.spans["answer"]` holds the answer, a span of the
context; it survives `.spacy` files.
"""

from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

ANSWER = "answer"


def answer(doc: Doc) -> Span | None:
    """The answer of a Doc, None where it has none."""
    return next(iter(doc.spans.get(ANSWER, [])), None)


def set_answer(doc: Doc, start: int, end: int) -> None:
    """Put the tokens from `start` up to, not including, `end` on a Doc as its answer, in place of one that it has."""
    doc.spans[ANSWER] = SpanGroup(doc, name=ANSWER, spans=[Span(doc, start, end)])


def aligned_answer(example: Example) -> Span | None:
    """The labelled answer, in tokens of the Doc that the pipeline reads; None where it fits no tokens there."""
    given = answer(example.reference)
    if given is None:
        return None
    return next(iter(example.get_aligned_spans_y2x([given])), None)
