"""A quiz of word senses: how often does the nearest use of a word have the same sense?

    python scripts/sense_quiz.py en_base_v2 [-o metrics.json]

quiz.tsv has 30 words with two senses each, and two uses of each sense. For each of the 120 uses, the program finds the
nearest of the other three uses of the word, by cosine. One of them has the same sense, so the chance level is a third.
The program does this twice: with the vectors themselves, and after subtracting the mean of the word's four uses, which
does not distinguish senses. The quiz was written before the models that it evaluates were trained, and no choice of
theirs depends on it. Subtracting the mean was first tested on SemCor.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from spacy.language import Language
from wasabi import Printer

from spacy_elmo.lab.corpora.pipelines import load_pipeline

QUIZ = Path(__file__).parent.parent / "corpus" / "sample" / "senses" / "quiz.tsv"


class Use(NamedTuple):
    """One use of a word in a sentence, with its sense."""

    word: str
    sense: str
    text: str


def read_quiz(path: Path = QUIZ) -> list[Use]:
    """Read the uses from a file with the columns `word`, `sense` and `text`.

    Raises:
        ValueError: A word does not occur exactly once in its sentence.
    """
    with path.open(encoding="utf8") as file:
        uses = [Use(**row) for row in csv.DictReader(file, delimiter="\t")]
    for use in uses:
        if use.text.split().count(use.word) + use.text.split().count(f"{use.word}.") != 1:
            raise ValueError(f"{path}: {use.word!r} must occur exactly once in {use.text!r}")
    return uses


def layer_vectors(nlp: Language, uses: list[Use]) -> np.ndarray:
    """Return (uses, layers, width), the vectors of each word in its sentence: layers 1 and up, then the average of all.

    Layer 0 is left out, because it has the same vector for a word in every sentence.
    """
    vectors = []
    for use in uses:
        (token,) = [token for token in nlp(use.text) if token.text == use.word]
        vectors.append(np.concatenate([token._.elmo_layers[1:], token._.elmo[None]]))
    return np.stack(vectors)


def indices_by_word(uses: list[Use]) -> list[list[int]]:
    """Return the indices of the uses of each word."""
    groups = defaultdict(list)
    for index, use in enumerate(uses):
        groups[use.word].append(index)
    return list(groups.values())


def without_word_means(vectors: np.ndarray, uses: list[Use]) -> np.ndarray:
    """Return (uses, layers, width), the vectors minus the mean vector of their word."""
    relative = np.empty_like(vectors)
    for indices in indices_by_word(uses):
        relative[indices] = vectors[indices] - vectors[indices].mean(axis=0)
    return relative


def accuracies(vectors: np.ndarray, uses: list[Use]) -> list[float]:
    """Return for each layer the share of uses whose nearest use has the same sense.

    Args:
        vectors: (uses, layers, width).
        uses: the words and senses of these vectors, in the same order.
    """
    correct = np.zeros(vectors.shape[1])
    for indices in indices_by_word(uses):
        unit = vectors[indices] / np.linalg.norm(vectors[indices], axis=2, keepdims=True)
        cosines = np.einsum("ald,bld->lab", unit, unit)
        cosines[:, range(len(indices)), range(len(indices))] = -np.inf
        for index, nearest in zip(indices, cosines.argmax(2).T, strict=True):
            correct += [uses[indices[other]].sense == uses[index].sense for other in nearest]
    return (correct / len(uses)).tolist()


def main() -> None:
    """Print the accuracy of each layer, and write it to a file if `--output` is given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", help="a bundled model, a weights file or a pipeline with elmo")
    parser.add_argument("-o", "--output", type=Path, help="JSON file for the accuracies")
    arguments = parser.parse_args()
    nlp, _ = load_pipeline(arguments.source, lang=None)
    uses = read_quiz()
    vectors = layer_vectors(nlp, uses)
    names = [*map(str, range(1, vectors.shape[1])), "average"]
    scores = {
        "as they are": accuracies(vectors, uses),
        "without the word's mean": accuracies(without_word_means(vectors, uses), uses),
    }
    print("Share of uses whose nearest use has the same sense")
    Printer().table(
        [
            (name, *(f"{100 * score:.1f} %" for score in row))
            for name, *row in zip(names, *scores.values(), strict=True)
        ],
        header=("layer", *scores),
        divider=True,
    )
    if arguments.output:
        arguments.output.write_text(
            json.dumps({"layers": names, **scores}, indent=1) + "\n", encoding="utf8"
        )


if __name__ == "__main__":
    main()
