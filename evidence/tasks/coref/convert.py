"""Convert clusters of mentions in JSONL to Docs for the coref configs.

    python -m tasks.coref.convert IN.jsonl OUT.spacy

A line is a document: {"sentences": [["Ann", ...], ...], "clusters": [[[0, 0, 1], [2, 4, 5]], ...]}. A mention is
[sentence, start, end], where `end` is exclusive; a type may follow. Types and all other keys are ignored, also
"singletons", because a single mention is no cluster.
"""

from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..conversion import arguments, read_records, run, write_docs
from .annotation import Cluster, Mention, set_clusters


class Document(NamedTuple):
    """The words of all sentences, and the clusters. Mentions are indices of these words."""

    words: list[str]
    clusters: list[Cluster]


class Counts(NamedTuple):
    """Numbers of Docs, tokens, clusters and mentions that were written."""

    docs: int
    tokens: int
    clusters: int
    mentions: int


def _parsed(record: Any) -> Document:
    try:
        sentences = record["sentences"]
        lengths = [len(sentence) for sentence in sentences]
        clusters = [
            [_mention(entry, lengths) for entry in cluster] for cluster in record["clusters"]
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f'expected {{"sentences": [["word", ...], ...], '
            f'"clusters": [[[sentence, start, end], ...], ...]}} ({type(error).__name__}: {error})'
        ) from error
    _check(clusters)
    return Document([word for sentence in sentences for word in sentence], clusters)


def _mention(entry: list[Any], lengths: list[int]) -> Mention:
    if len(entry) < 3:
        raise TypeError(f"{entry} is not [sentence, start, end]")
    sentence, start, end = entry[:3]
    if sentence not in range(len(lengths)) or not 0 <= start < end <= lengths[sentence]:
        problem = (
            f"has {lengths[sentence]} tokens" if 0 <= sentence < len(lengths) else "is missing"
        )
        raise ValueError(f"a mention is [{start}, {end}) in sentence {sentence}, which {problem}")
    before = [0, *accumulate(lengths)][sentence]
    return before + start, before + end


def _check(clusters: list[Cluster]) -> None:
    seen: set[Mention] = set()
    for cluster in clusters:
        if len(cluster) < 2:
            raise ValueError(
                f"{cluster} is a cluster of {len(cluster)} mentions; move it to singletons"
            )
        for start, end in cluster:
            if (start, end) in seen:
                raise ValueError(
                    f"the mention at tokens [{start}, {end}) of the document occurs twice; "
                    "it must occur in one cluster only, and only once"
                )
            seen.add((start, end))


def make_doc(vocab: Vocab, document: Document) -> Doc:
    """Return the Doc of a document."""
    # Without spaces, spaCy's readers keep these tokens, to which the annotation refers.
    doc = Doc(vocab, words=document.words)
    set_clusters(doc, document.clusters)
    return doc


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file and return the counts."""
    documents = read_records(path, _parsed, "document", '{"sentences": ..., "clusters": ...}')
    vocab = spacy.blank(lang).vocab
    write_docs([make_doc(vocab, document) for document in documents], out)
    clusters = [cluster for document in documents for cluster in document.clusters]
    return Counts(
        docs=len(documents),
        tokens=sum(len(document.words) for document in documents),
        clusters=len(clusters),
        mentions=sum(map(len, clusters)),
    )


if __name__ == "__main__":
    run(
        convert,
        arguments(__doc__),
        "{out}: {docs} Docs, {tokens} tokens, {mentions} mentions in {clusters} clusters",
    )
