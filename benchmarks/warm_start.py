"""Distance of vectors from a reference with carried state, if sentences start with zeros or with the start state.

The model was trained with its state carried from sentence to sentence. The reference does the same: it processes each
sentence with both boundaries, and starts it with the state after the previous one. The two others start every sentence
independently. The effect of the start decreases with the number of words that a direction has processed. This number is
the position: the forward half of a vector has position 1 in the first word of a sentence, the backward half in the
last.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.start_state import BURN_IN, StartState
from spacy_elmo.bilm.weights import Weights

POSITIONS = (1, 2, 3, 5, 10, 20)
Sentence = Sequence[str]


def read_texts(path: Path) -> list[list[list[str]]]:
    """Read a text with one sentence per line. A .json file has several texts as lists of sentences, like the test data
    of bilm-tf and AllenNLP."""
    if path.suffix == ".json":
        return [
            [sentence.split() for sentence in text] for text in json.loads(path.read_text("utf8"))
        ]
    return [[line.split() for line in path.read_text("utf8").splitlines() if line.strip()]]


@torch.no_grad()
def run(
    bilm: BiLM, sentence: Sentence, state: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return (n, 2, L, P), the layers 1 to L of each direction by position, and the state after the closing
    boundary."""
    rows = {word: row for row, word in enumerate(dict.fromkeys(sentence))}
    words = np.array([rows[word] for word in sentence], dtype=np.int64)
    output = bilm(bilm.token_ids(list(rows)), words, [len(sentence)], state, closing=True)
    forward, backward = output.layers[1:].chunk(2, dim=2)
    return torch.stack([forward, backward.flip(1)], 1).permute(2, 1, 0, 3), output.state


class Distances:
    """Sums of squared distances from the reference and of squares of the reference, for each position."""

    def __init__(self) -> None:
        self._sums: dict[int, list[float]] = {}

    def add(self, vectors: Tensor, reference: Tensor) -> None:
        squares = [
            (t.double() ** 2).sum((1, 2, 3)).tolist() for t in (vectors - reference, reference)
        ]
        for position, pair in enumerate(zip(*squares, strict=True), 1):
            sums = self._sums.setdefault(position, [0.0, 0.0])
            sums[:] = [total + square for total, square in zip(sums, pair, strict=True)]

    def at(self, position: int | None = None) -> float:
        """Return the root mean square distance, relative to that of the reference; None: over all positions."""
        chosen = self._sums.values() if position is None else [self._sums[position]]
        distance, reference = map(sum, zip(*chosen, strict=True))
        return math.sqrt(distance / reference)


def measure(
    bilm: BiLM, start: StartState, texts: Sequence[Sequence[Sentence]]
) -> dict[str, Distances]:
    """Measure all sentences except the first ones of each text, for which the reference has no carried state yet."""
    distances = {"zero": Distances(), "warm": Distances()}
    starts = {"zero": None, "warm": start.for_batch(1, bilm.device)}
    for text in texts:
        carried = None
        for number, sentence in enumerate(text):
            reference, carried = run(bilm, sentence, carried)
            if number >= BURN_IN:
                for name, state in starts.items():
                    distances[name].add(run(bilm, sentence, state)[0], reference)
    return distances


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="weights file with a start state")
    parser.add_argument(
        "text",
        type=Path,
        help="text with one sentence per line, or .json; not the text of the start state",
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    weights = Weights.load(args.weights)
    if weights.start_state is None:
        parser.error(f"{args.weights} has no start state: convert the model with --warm")
    texts = read_texts(args.text)
    if not any(len(text) > BURN_IN for text in texts):
        parser.error(f"{args.text} has no text with more than {BURN_IN} sentences")
    distances = measure(weights.build_bilm(), weights.start_state, texts)
    counted = [sentence for text in texts for sentence in text[BURN_IN:]]
    report(args, weights, counted, distances)


def report(
    args: argparse.Namespace,
    weights: Weights,
    sentences: list[Sentence],
    distances: dict[str, Distances],
) -> None:
    words, longest = sum(map(len, sentences)), max(map(len, sentences))
    positions = [*(position for position in POSITIONS if position <= longest), None]
    print(f"{weights.card.get('converted_from', args.weights)}; start: {weights.card.get('start')}")
    print(f"{len(sentences)} sentences, {words} words of {args.text.name}")
    print(f"\n{'position':12}" + "".join(f"{name:>10}" for name in distances))
    for position in positions:
        row = "".join(f"{distance.at(position):10.4f}" for distance in distances.values())
        print(f"{position or 'all words':<12}{row}")
    if args.out:
        result = {
            "card": weights.card,
            "sentences": len(sentences),
            "words": words,
            "distance": {
                name: {
                    str(position or "all words"): distance.at(position) for position in positions
                }
                for name, distance in distances.items()
            },
        }
        args.out.write_text(json.dumps(result, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
