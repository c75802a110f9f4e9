"""Predicates and their arguments on a Doc, and the reader that passes the predicates to the pipeline.

`doc.spans["predicates"]` contains one token per predicate, whose label is its frame; `doc.spans["arguments"]` the
arguments of all of them: the label of a span is its role, its id the index of its predicate. Both survive `.spacy`
files.
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
    """The tokens from `start` up to, not including, `end`, and their role."""

    start: int
    end: int
    label: str


def predicates(doc: Doc) -> list[int]:
    """Return the index of each predicate; an empty list if the Doc has no such group."""
    return [span.start for span in doc.spans.get(PREDICATES, [])]


def set_predicates(doc: Doc, frames: Mapping[int, str]) -> None:
    """Mark tokens as predicates.

    Args:
        doc: the Doc of the tokens.
        frames: index of each -> its frame, such as "come.03".
    """
    spans = [Span(doc, index, index + 1, label=frame) for index, frame in frames.items()]
    doc.spans[PREDICATES] = SpanGroup(doc, name=PREDICATES, spans=spans)


def arguments(doc: Doc) -> dict[int, list[Argument]]:
    """Return the arguments of each predicate, in the order in which they were set."""
    found: dict[int, list[Argument]] = {index: [] for index in predicates(doc)}
    for span in doc.spans.get(ARGUMENTS, []):
        found[int(span.id_)].append(Argument(span.start, span.end, span.label_))
    return found


def set_arguments(doc: Doc, found: Mapping[int, Iterable[Argument]]) -> None:
    """Write the arguments of each predicate to a Doc, in place of earlier ones."""
    spans = [
        Span(doc, start, end, label=label, span_id=str(predicate))
        for predicate, its in found.items()
        for start, end, label in its
    ]
    doc.spans[ARGUMENTS] = SpanGroup(doc, name=ARGUMENTS, spans=spans)


@spacy.registry.readers("evidence.PredicateCorpus.v1")
def predicate_corpus(path: Path | None, limit: int = 0) -> Callable[[Language], Iterator[Example]]:
    """Return a `spacy.Corpus.v1` whose predicted Docs have their predicates, which spaCy's own reader leaves out.

    Args:
        path: a `.spacy` file. None, as in a config that is not filled in yet, is an error once it is read.
        limit: read only so many Docs; 0: all.
    """

    def read(nlp: Language) -> Iterator[Example]:
        if path is None:
            raise ValueError(
                "no file to read: give --paths.train and --paths.dev, files of `python -m tasks.srl.convert`"
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
