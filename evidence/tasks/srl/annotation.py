"""Predicates and their arguments on a Doc, and the reader that passes the predicates to the pipeline.

`doc.spans["predicates"]` contains a span of one token for each predicate; its label is the frame.
`doc.spans["arguments"]` contains the arguments of all predicates; the label of a span is the role, and its id is the
index of the predicate. `.spacy` files keep both.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Corpus, Example

PREDICATES = "predicates"
ARGUMENTS = "arguments"


class Argument(NamedTuple):
    """The tokens from `start` to `end` (not included), and their role."""

    start: int
    end: int
    label: str


def predicates(doc: Doc) -> list[int]:
    """Return the indices of the predicates; an empty list if the Doc has no such group."""
    return [span.start for span in doc.spans.get(PREDICATES, [])]


def set_predicates(doc: Doc, frames: Mapping[int, str]) -> None:
    """Mark tokens as predicates.

    Args:
        doc: the Doc of the tokens.
        frames: the frame of each predicate, such as "come.03", by its index.
    """
    spans = [Span(doc, index, index + 1, label=frame) for index, frame in frames.items()]
    doc.spans[PREDICATES] = SpanGroup(doc, name=PREDICATES, spans=spans)


def arguments(doc: Doc) -> dict[int, list[Argument]]:
    """Return the arguments of each predicate by its index, in the order in which they were set."""
    found: dict[int, list[Argument]] = {index: [] for index in predicates(doc)}
    for span in doc.spans.get(ARGUMENTS, []):
        found[int(span.id_)].append(Argument(span.start, span.end, span.label_))
    return found


def set_arguments(doc: Doc, found: Mapping[int, Iterable[Argument]]) -> None:
    """Replace the arguments of a Doc by those of each predicate."""
    spans = [
        Span(doc, start, end, label=label, span_id=str(predicate))
        for predicate, its in found.items()
        for start, end, label in its
    ]
    doc.spans[ARGUMENTS] = SpanGroup(doc, name=ARGUMENTS, spans=spans)


@spacy.registry.readers("evidence.PredicateCorpus.v1")
def predicate_corpus(path: Path | None, limit: int = 0) -> Callable[[Language], Iterator[Example]]:
    """Return a `spacy.Corpus.v1` that also sets the predicates on the predicted Docs, which spaCy's reader does not.

    Args:
        path: a `.spacy` file. None, as in an incomplete config, raises an error when the corpus is read.
        limit: largest number of Docs; 0: all.
    """

    def read(nlp: Language) -> Iterator[Example]:
        if path is None:
            raise ValueError(
                "There is no file to read: set --paths.train and --paths.dev to files of `python -m tasks.srl.convert`"
            )
        for example in Corpus(path, limit=limit)(nlp):
            given = example.reference.spans.get(PREDICATES)
            if given is None:
                raise ValueError(
                    f"{path}: {example.reference.text[:60]!r} has no span group {PREDICATES!r}: "
                    "write the file with `python -m tasks.srl.convert`"
                )
            set_predicates(example.predicted, {span.start: span.label_ for span in given})
            yield example

    return read
