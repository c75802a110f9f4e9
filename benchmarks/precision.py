"""How near the layers of a biLM come to those in float32 when its products are of lower precision: the cosine, word by
word and layer by layer.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from contenders import batches
from sentences import SAMPLE, read_sentences

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.precision import Precision
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pipeline.bundled import find_weights

SENTENCES_AT_ONCE = 64


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="en_mini_v3", help="a bundled biLM, or a path")
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text, a paragraph a line")
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    bilm = Weights.read(find_weights(args.weights)).bilm()
    sentences = [words for words in read_sentences(args.text, args.words) if words]
    exact = layers(bilm.ready("float32"), sentences)
    print(
        f"{exact.shape[1]:,} words\n\n{'cosine to float32':20}{'least':>10}{'1 %':>10}{'mean':>10}"
    )
    found: dict[Precision, list[dict[str, float]]] = {}
    for precision in ("bfloat16", "int8"):
        found[precision] = cosines(exact, layers(bilm.ready(precision), sentences))
        for layer, row in enumerate(found[precision]):
            figures = "".join(f"{value:10.5f}" for value in row.values())
            print(f"{f'{precision}, layer {layer}':20}{figures}")
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
