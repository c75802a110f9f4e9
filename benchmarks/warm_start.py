"""How far vectors are from those of a reading that carries its state on, from a start of zeros and from a warm one.

The model is one that was trained with its state carried on. The reference reads the sentences of a text one after the
other, with both boundaries, and starts each with the state after the one before, as the programs did from which such
models come; the other two start every sentence anew. A direction forgets its start, so what counts is how many words
it has read: the forward half of a vector is at position 1 in the first word of its sentence, the backward half in the
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
    """A text with a sentence a line; or the several texts of a .json file, lists of sentences, as the test data of
    bilm-tf and AllenNLP have them."""
    if path.suffix == ".json":
        return [
            [sentence.split() for sentence in text] for text in json.loads(path.read_text("utf8"))
        ]
    return [[line.split() for line in path.read_text("utf8").splitlines() if line.strip()]]


@torch.no_grad()
def read(
    bilm: BiLM, sentence: Sentence, state: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """(n, 2, L, P) what each direction says of the words, in the order in which it reads them, layers 1 to L; and the
    state after the closing boundary."""
    rows = {word: row for row, word in enumerate(dict.fromkeys(sentence))}
    places = np.array([rows[word] for word in sentence], dtype=np.int64)
    output = bilm(bilm.token_ids(list(rows)), places, [len(sentence)], state, closing=True)
    forward, backward = output.layers[1:].chunk(2, dim=2)
    return torch.stack([forward, backward.flip(1)], 1).permute(2, 1, 0, 3), output.state


class Distances:
    """Squared distances to the reference and squares of the reference, summed by position."""

    def __init__(self) -> None:
        self._sums: dict[int, list[float]] = {}

    def add(self, vectors: Tensor, reference: Tensor) -> None:
        squares = [
            (t.double() ** 2).sum((1, 2, 3)).tolist() for t in (vectors - reference, reference)
        ]
        for position, own in enumerate(zip(*squares, strict=True), 1):
            sums = self._sums.setdefault(position, [0.0, 0.0])
            sums[:] = [total + square for total, square in zip(sums, own, strict=True)]

    def at(self, position: int | None = None) -> float:
        """Root mean square of the distance, as a share of that of the reference; None: of all positions."""
        chosen = self._sums.values() if position is None else [self._sums[position]]
        distance, reference = map(sum, zip(*chosen, strict=True))
        return math.sqrt(distance / reference)


def measure(
    bilm: BiLM, start: StartState, texts: Sequence[Sequence[Sentence]]
) -> dict[str, Distances]:
    """Of all sentences but the first ones of each text, before which the reference has had little to carry."""
    distances = {"zero": Distances(), "warm": Distances()}
    starts = {"zero": None, "warm": start.repeated(1, bilm.device)}
    for text in texts:
        carried = None
        for place, sentence in enumerate(text):
            reference, carried = read(bilm, sentence, carried)
            if place >= BURN_IN:
                for name, state in starts.items():
                    distances[name].add(read(bilm, sentence, state)[0], reference)
    return distances


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="weights file with a start state")
    parser.add_argument(
        "text", type=Path, help="a sentence a line, or .json; not that of the start state"
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    weights = Weights.read(args.weights)
    if weights.start is None:
        parser.error(f"{args.weights} has no start state: convert it with --warm")
    texts = read_texts(args.text)
    if not any(len(text) > BURN_IN for text in texts):
        parser.error(f"{args.text}: no text of more than {BURN_IN} sentences")
    distances = measure(weights.bilm(), weights.start, texts)
    counted = [sentence for text in texts for sentence in text[BURN_IN:]]
    report(args, weights, counted, distances)


def report(
    args: argparse.Namespace,
    weights: Weights,
    sentences: list[Sentence],
    distances: dict[str, Distances],
) -> None:
    words, longest = sum(map(len, sentences)), max(map(len, sentences))
    places = [*(position for position in POSITIONS if position <= longest), None]
    print(f"{weights.card.get('converted_from', args.weights)}; start: {weights.card.get('start')}")
    print(f"{len(sentences)} sentences, {words} words of {args.text.name}")
    print(f"\n{'position':12}" + "".join(f"{name:>10}" for name in distances))
    for position in places:
        row = "".join(f"{own.at(position):10.4f}" for own in distances.values())
        print(f"{position or 'all words':<12}{row}")
    if args.out:
        result = {
            "card": weights.card,
            "sentences": len(sentences),
            "words": words,
            "distance": {
                name: {str(position or "all words"): own.at(position) for position in places}
                for name, own in distances.items()
            },
        }
        args.out.write_text(json.dumps(result, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
