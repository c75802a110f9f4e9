"""Accuracy of a biLM with matrix products of lower precision: cosines between its layers and the layers in float32, and
scores of pipelines that were trained in float32.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from contest.contenders import batches
from measuring.precisions import ALL
from measuring.sentences import SAMPLE, read_sentences
from spacy.training import Corpus

from spacy_elmo.bilm.matmul_precision import Precision
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import find_weights

SENTENCES_AT_ONCE = 64


@torch.no_grad()
def layers(bilm: BiLM, sentences: list[list[str]]) -> torch.Tensor:
    """Return (L+1, N, 2P), the layers of all words."""
    outputs = []
    for batch in batches(sentences, SENTENCES_AT_ONCE):
        types, words = np.unique([w for sentence in batch for w in sentence], return_inverse=True)
        ids = bilm.token_ids(types.tolist())
        outputs.append(bilm(ids, words, [len(sentence) for sentence in batch]).layers)
    return torch.cat(outputs, 1)


def cosines(exact: torch.Tensor, other: torch.Tensor) -> list[dict[str, float]]:
    """Return for each layer the least cosine of a word, the 1 % quantile and the mean."""
    layer_cosines = torch.nn.functional.cosine_similarity(exact, other, dim=2)
    return [
        {"least": float(c.min()), "1 %": float(c.quantile(0.01)), "mean": float(c.mean())}
        for c in layer_cosines
    ]


def score(pipeline: Path, precision: Precision, test: Path, name: str) -> float:
    """Evaluate a trained pipeline with another precision of its elmo."""
    nlp = spacy.load(pipeline, config={"components": {"elmo": {"precision": precision}}})
    return nlp.evaluate(list(Corpus(test)(nlp)))[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="en_mini_v4", help="a bundled biLM, or a path")
    parser.add_argument(
        "--text", type=Path, default=SAMPLE, help="raw text, one paragraph per line"
    )
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument(
        "--pipelines", nargs="*", type=Path, default=[], help="trained pipelines with an elmo"
    )
    parser.add_argument(
        "--test", type=Path, help=".spacy file on which the pipelines are evaluated"
    )
    parser.add_argument("--score", default="ents_f")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    if args.pipelines and not args.test:
        parser.error("--pipelines needs a file for their evaluation: add --test FILE")
    bilm = Weights.load(find_weights(args.weights)).build_bilm()
    sentences = [words for words in read_sentences(args.text, args.words) if words]
    exact = layers(bilm.prepare_for_inference("float32"), sentences)
    print(
        f"{exact.shape[1]:,} words\n\n{'cosine to float32':20}{'least':>10}{'1 %':>10}{'mean':>10}"
    )
    report: dict[str, dict[Precision, list[Any]]] = {"cosines": {}, "scores": {}}
    for precision in ALL[1:]:
        rows = cosines(exact, layers(bilm.prepare_for_inference(precision), sentences))
        report["cosines"][precision] = rows
        for layer, row in enumerate(rows):
            figures = "".join(f"{value:10.5f}" for value in row.values())
            print(f"{f'{precision}, layer {layer}':20}{figures}")
    for precision in ALL if args.pipelines else ():
        scores = [score(path, precision, args.test, args.score) for path in args.pipelines]
        report["scores"][precision] = scores
        each = ", ".join(f"{100 * value:.2f}" for value in scores)
        print(f"{args.score}, {precision}: {100 * np.mean(scores):.2f} ({each})")
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
