"""A quiz of word senses: how often does the nearest use of a word have the same sense?

    python scripts/sense_quiz.py en_base_v2

quiz.tsv has 30 words with two senses each, and two uses of each sense. For each of the 120 uses, the program finds the
nearest of the other three uses of the word, by cosine. One of them has the same sense, so the chance level is a third.
The program does this twice: with the vectors themselves, and after subtracting the mean of the word's four uses, which
does not distinguish senses. The quiz was written before the models that it evaluates were trained, and no choice of
theirs depends on it. Subtracting the mean was first tested on SemCor.
"""

import csv
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import spacy

QUIZ = Path(__file__).parent.parent / "corpus" / "sample" / "senses" / "quiz.tsv"


def accuracies(weights: str) -> dict[str, list[float]]:
    """Return the share of uses whose nearest use has the same sense, for layers 1 and up and for their average.

    Layer 0 is left out, because it has the same vector for a word in every sentence.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": weights})
    with QUIZ.open(encoding="utf8") as file:
        uses = sorted(csv.DictReader(file, delimiter="\t"), key=lambda use: use["word"])
    correct: dict[str, list[np.ndarray]] = {"as they are": [], "without the word's mean": []}
    for word, group in itertools.groupby(uses, key=lambda use: use["word"]):
        senses, vectors = [], []
        for use in group:
            (token,) = (token for token in nlp(use["text"]) if token.text == word)
            senses.append(use["sense"])
            vectors.append(np.concatenate([token._.elmo_layers[1:], token._.elmo[None]]))
        for name, mean in zip(correct, (0, np.mean(vectors, axis=0)), strict=True):
            unit = np.stack(vectors) - mean
            unit /= np.linalg.norm(unit, axis=2, keepdims=True)
            cosines = np.einsum("ald,bld->lab", unit, unit)
            cosines[:, range(len(senses)), range(len(senses))] = -np.inf
            nearest = np.array(senses)[cosines.argmax(2)]
            correct[name].append(nearest == np.array(senses))
    return {
        name: np.concatenate(each, axis=1).mean(axis=1).tolist() for name, each in correct.items()
    }


def main() -> None:
    """Print rows for evidence/scores/probes.jsonl."""
    for name, shares in accuracies(sys.argv[1]).items():
        columns = [*(f"layer {i}" for i in range(1, len(shares))), "average"]
        run = {"probe": "sense quiz", "model": sys.argv[1], "vectors": name}
        run |= {"scores": {c: 100 * share for c, share in zip(columns, shares, strict=True)}}
        print(json.dumps(run | {"command": f"python scripts/sense_quiz.py {sys.argv[1]}"}))


if __name__ == "__main__":
    main()
