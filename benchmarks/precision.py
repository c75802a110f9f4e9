"""How near the layers of a biLM come to those in float32 when its products are of lower precision: the cosine, word by
word and layer by layer; and what becomes of the scores of pipelines that were trained on it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from contenders import batches
from sentences import SAMPLE, read_sentences
from spacy.training import Corpus

from spacy_elmo.bilm.matmul_precision import Precision
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pipeline.bundled import find_weights

SENTENCES_AT_ONCE = 64
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8")


@torch.no_grad()
def layers(bilm: BiLM, sentences: list[list[str]]) -> torch.Tensor:
    """(L+1, N, 2P) of all words."""
    found = []
    for part in batches(sentences, SENTENCES_AT_ONCE):
        types, words = np.unique([word for own in part for word in own], return_inverse=True)
        ids = bilm.token_ids(types.tolist())
        found.append(bilm(ids, words, [len(own) for own in part]).layers)
    return torch.cat(found, 1)


def cosines(exact: torch.Tensor, other: torch.Tensor) -> list[dict[str, float]]:
    """Of each layer: the cosine of the worst word, the one that a hundredth undercuts, and the mean."""
    found = torch.nn.functional.cosine_similarity(exact, other, dim=2)
    return [
        {"least": float(own.min()), "1 %": float(own.quantile(0.01)), "mean": float(own.mean())}
        for own in found
    ]


def score(pipeline: Path, precision: Precision, test: Path, name: str) -> float:
    """A trained pipeline's score when its elmo reads in another precision than it was trained with."""
    nlp = spacy.load(pipeline, config={"components": {"elmo": {"precision": precision}}})
    return nlp.evaluate(list(Corpus(test)(nlp)))[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="en_mini_v3", help="a bundled biLM, or a path")
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text, a paragraph a line")
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument(
        "--pipelines", nargs="*", type=Path, default=[], help="trained, with an elmo"
    )
    parser.add_argument("--test", type=Path, help="the .spacy file that they are scored on")
    parser.add_argument("--score", default="ents_f")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    if args.pipelines and not args.test:
        parser.error("--pipelines are scored on --test FILE")
    bilm = Weights.read(find_weights(args.weights)).bilm()
    sentences = [words for words in read_sentences(args.text, args.words) if words]
    exact = layers(bilm.ready("float32"), sentences)
    print(
        f"{exact.shape[1]:,} words\n\n{'cosine to float32':20}{'least':>10}{'1 %':>10}{'mean':>10}"
    )
    found: dict[str, dict[Precision, list[Any]]] = {"cosines": {}, "scores": {}}
    for precision in PRECISIONS[1:]:
        rows = cosines(exact, layers(bilm.ready(precision), sentences))
        found["cosines"][precision] = rows
        for layer, row in enumerate(rows):
            figures = "".join(f"{value:10.5f}" for value in row.values())
            print(f"{f'{precision}, layer {layer}':20}{figures}")
    for precision in PRECISIONS if args.pipelines else ():
        scores = [score(path, precision, args.test, args.score) for path in args.pipelines]
        found["scores"][precision] = scores
        each = ", ".join(f"{100 * value:.2f}" for value in scores)
        print(f"{args.score}, {precision}: {100 * np.mean(scores):.2f} ({each})")
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
