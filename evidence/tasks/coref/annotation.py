"""The clusters of mentions on a Doc, and the reader that cuts long Docs for training.

`doc.spans["coref_clusters_1"]`, `["coref_clusters_2"]` and so on each contain the mentions of one cluster, as in
spacy-experimental. `.spacy` files keep them.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Corpus, Example

from spacy_elmo.pipeline.encode.spans import rule_spans

PREFIX = "coref_clusters_"

Mention = tuple[int, int]
"""The indices of the first token of a mention and of the token after it."""

Cluster = list[Mention]
"""Mentions of the same entity."""


def clusters(doc: Doc) -> list[Cluster]:
    """Return the clusters of a Doc; an empty list if it has no such groups."""
    return [
        [(span.start, span.end) for span in group]
        for key, group in doc.spans.items()
        if key.startswith(PREFIX)
    ]


def set_clusters(doc: Doc, groups: Iterable[Cluster]) -> None:
    """Replace the clusters of a Doc."""
    for key in [key for key in doc.spans if key.startswith(PREFIX)]:
        del doc.spans[key]
    for number, cluster in enumerate(groups, 1):
        key = f"{PREFIX}{number}"
        spans = [Span(doc, start, end) for start, end in cluster]
        doc.spans[key] = SpanGroup(doc, name=key, spans=spans)


def pieces(doc: Doc, max_words: int) -> Iterator[Doc]:
    """Yield pieces of a labelled Doc. A piece has whole sentences, by the sentence rule of elmo.

    A cluster is cut like the Doc. It is dropped if a piece has only one of its mentions.

    Args:
        doc: a Doc without whitespace tokens, from `tasks.coref.convert`.
        max_words: largest number of words of a piece. A longer sentence is a piece of its own.
    """
    (sentences,) = rule_spans([doc])
    start = 0
    for sentence, after in zip(sentences, [*sentences[1:], None], strict=True):
        if after is None or after.end - start > max_words:
            yield _piece(doc[start : sentence.end])
            start = sentence.end


def _piece(part: Span) -> Doc:
    doc = Doc(part.doc.vocab, words=[token.text for token in part])
    inside = (
        [
            (start - part.start, end - part.start)
            for start, end in cluster
            if part.start <= start and end <= part.end
        ]
        for cluster in clusters(part.doc)
    )
    set_clusters(doc, (cluster for cluster in inside if len(cluster) > 1))
    return doc


@spacy.registry.readers("evidence.CorefPieces.v1")
def coref_pieces(
    path: Path | None, max_words: int, limit: int = 0
) -> Callable[[Language], Iterator[Example]]:
    """Return a `spacy.Corpus.v1` that cuts its Docs into pieces, because a training step on a whole chapter takes too
    long.

    Args:
        path: a `.spacy` file. None, as in an incomplete config, raises an error when the corpus is read.
        max_words: see `pieces`.
        limit: largest number of Docs; 0: all.
    """

    def read(nlp: Language) -> Iterator[Example]:
        if path is None:
            raise ValueError(
                "There is no training file: set --paths.train to a file of `python -m tasks.coref.convert`"
            )
        for example in Corpus(path, limit=limit)(nlp):
            for piece in pieces(example.reference, max_words):
                words = [token.text for token in piece]
                yield Example(Doc(nlp.vocab, words=words), piece)

    return read
