"""Cosines between the layers of a biLM in bfloat16 and its layers in float32.

python -m benchmarks.precision --text heldout.txt
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.networks import batches
from benchmarks.sentences import SAMPLE, read_sentences
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import find_weights


@torch.no_grad()
def layers(bilm: BiLM, sentences: list[list[str]]) -> torch.Tensor:
    """Return (L+1, N, 2P), the layers of all words."""
    outputs = []
    for batch in batches(sentences, 64):
        types, words = np.unique([w for sentence in batch for w in sentence], return_inverse=True)
        ids = bilm.token_ids(types.tolist())
        outputs.append(bilm(ids, words, [len(sentence) for sentence in batch]).layers)
    return torch.cat(outputs, 1)


def main() -> None:
    """Print the least cosine of a word, the 1 % quantile and the mean, for each layer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", default="en_mini_v4", help="a bundled biLM, or a path")
    parser.add_argument("--text", type=Path, default=SAMPLE, help="text with a paragraph per line")
    parser.add_argument("--words", type=int, default=20_000)
    args = parser.parse_args()
    sentences = [words for words in read_sentences(args.text, args.words) if words]
    precisions: list[Any] = ["float32", "bfloat16"]
    exact, other = (
        layers(Weights.load(find_weights(args.weights)).build_bilm().prepare_for_inference(precision), sentences)
        for precision in precisions
    )  # fmt: skip
    print(f"{exact.shape[1]:,} words\n{'cosine to float32':20}{'least':>10}{'1 %':>10}{'mean':>10}")
    for layer, cosines in enumerate(torch.nn.functional.cosine_similarity(exact, other, dim=2)):
        figures = (cosines.min(), cosines.quantile(0.01), cosines.mean())
        print(f"{f'layer {layer}':20}" + "".join(f"{float(figure):10.5f}" for figure in figures))


if __name__ == "__main__":
    main()
