"""Turn clusters of mentions in JSONL into the binary Docs that the coref configs read.

    python scripts/convert_coref.py IN.jsonl OUT.spacy

A line is a document: {"sentences": [["Ann", ...], ...], "clusters": [[[0, 0, 1], [2, 4, 5]], ...]} where a mention is
[sentence, start, end], end exclusive, and may have a type behind it. Types and all other keys are left out, also
"singletons": a mention that stands alone makes no cluster.
"""

import argparse
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo.text.documents import json_lines

# A script sees its own folder only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tasks.coref_annotation import Cluster, Mention, set_clusters  # noqa: E402


class Document(NamedTuple):
    """The words of all sentences, and the clusters, which count words from the first."""

    words: list[str]
    clusters: list[Cluster]


class Counts(NamedTuple):
    """What a conversion wrote."""

    docs: int
    tokens: int
    clusters: int
    mentions: int


def read_jsonl(path: Path) -> list[Document]:
    """The documents of a file. Empty lines are passed over.

    Raises:
        ValueError: a line that cannot be right, or no document at all; it names file and line.
    """
    found = list(json_lines(path, _parsed, "strict"))
    if not found:
        raise ValueError(
            f'{path}: no document in it; expected lines of {{"sentences": ..., "clusters": ...}}'
        )
    return found


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
        there = f"of {lengths[sentence]} tokens" if 0 <= sentence < len(lengths) else "not there"
        raise ValueError(f"a mention is [{start}, {end}) in sentence {sentence}, which is {there}")
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
    """The Doc of a document."""
    # No spaces: spaCy's readers then take the tokens as they are, which is what the annotation counts.
    doc = Doc(vocab, words=document.words)
    set_clusters(doc, document.clusters)
    return doc


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file and say what was written."""
    documents = read_jsonl(path)
    vocab = spacy.blank(lang).vocab
    out.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=[make_doc(vocab, document) for document in documents]).to_disk(out)
    clusters = [cluster for document in documents for cluster in document.clusters]
    return Counts(
        docs=len(documents),
        tokens=sum(len(document.words) for document in documents),
        clusters=len(clusters),
        mentions=sum(map(len, clusters)),
    )


def main() -> None:
    """Parse, convert, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language of the Docs")
    args = parser.parse_args()
    try:
        counts = convert(args.path, args.out, lang=args.lang)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(
        f"{args.out}: {counts.docs} Docs, {counts.tokens} tokens, "
        f"{counts.mentions} mentions in {counts.clusters} clusters"
    )


if __name__ == "__main__":
    main()
