"""Cosines between the layers of a biLM in bfloat16 and its layers in float32.

python -m benchmarks.precision --text heldout.txt
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import spacy
import torch
from spacy.tokens import Doc

from benchmarks.sentences import SAMPLE, read_sentences


def layers(weights: str, precision: str, sentences: list[list[str]]) -> torch.Tensor:
    """Return (L+1, N, 2P), the layers of all words."""
    nlp = spacy.blank("en")
    get_spans = {"@misc": "spacy-elmo.doc.v1"}
    nlp.add_pipe(
        "elmo", config={"weights": weights, "precision": precision, "get_spans": get_spans}
    )
    docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences)
    return torch.from_numpy(np.concatenate([doc._.elmo_layers for doc in docs], 1))


def main() -> None:
    """Print the least cosine of a word, the 1 % quantile and the mean, for each layer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", default="en_mini_v4", help="a bundled biLM, or a path")
    parser.add_argument("--text", type=Path, default=SAMPLE, help="text with a paragraph per line")
    parser.add_argument("--words", type=int, default=20_000)
    args = parser.parse_args()
    sentences = [words for words in read_sentences(args.text, args.words) if words]
    exact, other = (layers(args.weights, each, sentences) for each in ("float32", "bfloat16"))
    print(f"{exact.shape[1]:,} words\n{'cosine to float32':20}{'least':>10}{'1 %':>10}{'mean':>10}")
    for layer, cosines in enumerate(torch.nn.functional.cosine_similarity(exact, other, dim=2)):
        figures = (cosines.min(), cosines.quantile(0.01), cosines.mean())
        print(f"{f'layer {layer}':20}" + "".join(f"{float(figure):10.5f}" for figure in figures))


if __name__ == "__main__":
    main()
