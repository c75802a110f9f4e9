"""Converter of clusters of mentions in JSONL to the binary Docs of the coref configs.

    python -m tasks.coref.convert IN.jsonl OUT.spacy

A line is a document: {"sentences": [["Ann", ...], ...], "clusters": [[[0, 0, 1], [2, 4, 5]], ...]} where a mention is
[sentence, start, end], end exclusive, and may be followed by a type. Types and all other keys are left out, and so
are "singletons": a single mention is no cluster.
"""

from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..conversion import arguments, call, read_records, write_docs
from .annotation import Cluster, Mention, set_clusters


class Document(NamedTuple):
    """The words of all sentences, and the clusters, whose numbers count the words from the first."""

    words: list[str]
    clusters: list[Cluster]


class Counts(NamedTuple):
    """Numbers of written items."""

    docs: int
    tokens: int
    clusters: int
    mentions: int


def read_jsonl(path: Path) -> list[Document]:
    """Return the documents of a file.

    Raises:
        ValueError: a line is invalid, or there is no document; the message names file and line.
    """
    return read_records(path, _parsed, "document", '{"sentences": ..., "clusters": ...}')


def _parsed(record: Any) -> Document:
    try:
        sentences = record["sentences"]
        lengths = [len(sentence) for sentence in sentences]
        clusters = [
            [_mention(place, lengths) for place in cluster] for cluster in record["clusters"]
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f'expected {{"sentences": [["word", ...], ...], '
            f'"clusters": [[[sentence, start, end], ...], ...]}} ({type(error).__name__}: {error})'
        ) from error
    _check(clusters)
    return Document([word for sentence in sentences for word in sentence], clusters)


def _mention(place: list[Any], lengths: list[int]) -> Mention:
    if len(place) < 3:
        raise TypeError(f"{place} is no [sentence, start, end]")
    sentence, start, end = place[:3]
    if sentence not in range(len(lengths)) or not 0 <= start < end <= lengths[sentence]:
        problem = f"of {lengths[sentence]} tokens" if 0 <= sentence < len(lengths) else "not there"
        raise ValueError(
            f"a mention is [{start}, {end}) in sentence {sentence}, which is {problem}"
        )
    before = [0, *accumulate(lengths)][sentence]
    return before + start, before + end


def _check(clusters: list[Cluster]) -> None:
    seen: set[Mention] = set()
    for cluster in clusters:
        if len(cluster) < 2:
            raise ValueError(f"{cluster} is a cluster of {len(cluster)}; write it under singletons")
        for start, end in cluster:
            if (start, end) in seen:
                raise ValueError(
                    f"the mention at tokens [{start}, {end}) of the document stands twice; "
                    "it belongs to one cluster, once"
                )
            seen.add((start, end))


def make_doc(vocab: Vocab, document: Document) -> Doc:
    """Return the Doc of a document."""
    # No spaces: spaCy's readers then take the tokens as they are, which is what the annotation counts.
    doc = Doc(vocab, words=document.words)
    set_clusters(doc, document.clusters)
    return doc


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file and return the counts."""
    documents = read_jsonl(path)
    vocab = spacy.blank(lang).vocab
    write_docs([make_doc(vocab, document) for document in documents], out)
    clusters = [cluster for document in documents for cluster in document.clusters]
    return Counts(
        docs=len(documents),
        tokens=sum(len(document.words) for document in documents),
        clusters=len(clusters),
        mentions=sum(map(len, clusters)),
    )


def main() -> None:
    """Parse the arguments, convert, and print the counts."""
    args = arguments(__doc__).parse_args()
    counts = call(convert, args.path, args.out, lang=args.lang)
    print(
        "{out}: {docs} Docs, {tokens} tokens, {mentions} mentions in {clusters} clusters".format(
            out=args.out, **counts
        )
    )


if __name__ == "__main__":
    main()
