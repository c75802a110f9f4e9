"""Search for sentences that another sentence entails, compared with word overlap.

python -m benchmarks.search sick-test.jsonl

PAIRS is a JSONL file (possibly .xz) with the fields `premise`, `hypothesis` and `label`. Each hypothesis of a pair with
the label "entailment" is a query. The program prints in how many percent of these pairs the premise is among the ten
nearest of all other sentences of the file.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import spacy
from sklearn.feature_extraction.text import TfidfVectorizer
from spacy.tokens import Doc

from spacy_elmo import SearchIndex
from spacy_elmo.lab.normalize import normalize
from spacy_elmo.text.passages import json_lines
from spacy_elmo.text.reading import text_files

K = 10


def read(path: str) -> tuple[list[str], dict[int, set[int]]]:
    """Return all sentences, and for each query the sentences to find, as indices."""
    pairs = [pair for file in text_files(path) for pair in json_lines(file, lambda pair: pair)]
    sentences = sorted({pair[side] for pair in pairs for side in ("premise", "hypothesis")})
    number = {sentence: i for i, sentence in enumerate(sentences)}
    wanted = defaultdict(set)
    for pair in pairs:
        if pair["label"] == "entailment" and pair["premise"] != pair["hypothesis"]:
            wanted[number[pair["hypothesis"]]].add(number[pair["premise"]])
    return sentences, wanted


def recall(wanted: dict[int, set[int]], nearest: Callable[[int], list[int]]) -> float:
    """Return the percentage of the sentences to find that are among the ten nearest ones other than the query."""
    found = 0
    for query, partners in wanted.items():
        ten = [number for number in nearest(query) if number != query][:K]
        found += len(partners.intersection(ten))
    return 100 * found / sum(map(len, wanted.values()))


def by_product(rows: np.ndarray) -> Callable[[int], list[int]]:
    """Return a search by the products of rows with norm 1."""

    def nearest(query: int) -> list[int]:
        products = rows @ rows[query].T
        products = products if isinstance(products, np.ndarray) else products.toarray()[:, 0]
        return np.argsort(-products, kind="stable")[: K + 1].tolist()

    return nearest


def by_index(index: SearchIndex, docs: list[Doc]) -> Callable[[int], list[int]]:
    """Return a search in an index whose entries are named by their number."""
    return lambda query: [int(hit.doc_id) for hit in index.search(docs[query], K + 1)]


def main() -> None:
    """Print the recall of each kind of search."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", metavar="PAIRS", help="JSONL file with sentence pairs")
    parser.add_argument("--weights", default="en_base_v2", help="a bundled biLM, or a path")
    args = parser.parse_args()
    sentences, wanted = read(args.pairs)
    print(f"{len(sentences):,} sentences, {len(wanted):,} queries; recall at {K} in %")
    for name, options in (
        ("TF-IDF, words", {"token_pattern": r"\w+"}),
        ("TF-IDF, 3 to 5 letters", {"analyzer": "char_wb", "ngram_range": (3, 5)}),
    ):
        rows = TfidfVectorizer(**options).fit_transform(sentences)
        print(f"{name:40}{recall(wanted, by_product(rows)):6.1f}", flush=True)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": args.weights})
    docs = list(nlp.pipe(sentences, batch_size=32))
    for layers in ("average", *range(len(docs[0]._.elmo_layers))):
        index = SearchIndex(layers=layers)
        vectors = []
        for number, doc in enumerate(docs):
            index.add(str(number), [doc])
            rows = doc._.elmo if layers == "average" else doc._.elmo_layers[layers]
            vectors.append(rows[[not token.is_space for token in doc]].mean(0))
        plain = recall(wanted, by_product(normalize(np.stack(vectors))))
        whitened = recall(wanted, by_index(index, docs))
        name = layers if layers == "average" else f"layer {layers}"
        print(f"{name + ', cosine of the vectors':40}{plain:6.1f}")
        print(f"{name + ', SearchIndex':40}{whitened:6.1f}", flush=True)


if __name__ == "__main__":
    main()
