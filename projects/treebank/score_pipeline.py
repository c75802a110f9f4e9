"""Score a pipeline on the test part, from plain text and with the words and sentences of the treebank.

    python score_pipeline.py training/pipeline corpus/test.conllu training/scores.json

`udeval` of the Python package udtools computes the scores, as in the CoNLL 2018 shared task and for UDPipe: F1 in
percent; punctuation counts; labels have no subtypes ("acl:relcl" is "acl"); only universal features count.
"""

import argparse
import copy
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import srsly
from read_conllu import (
    DEPREL,
    FEATS,
    HEAD,
    ID,
    LEMMA,
    UPOS,
    XPOS,
    Sentence,
    is_annotated,
    lacks,
    read_conllu,
)

SPLIT = {"tokens": "Tokens", "words": "Words", "sentences": "Sentences"}
COLUMNS = {
    "UPOS": ("UPOS", UPOS),
    "XPOS": ("XPOS", XPOS),
    "UFeats": ("UFeats", FEATS),
    "lemmas": ("Lemmas", LEMMA),
    "UAS": ("UAS", HEAD),
    "LAS": ("LAS", DEPREL),
}
"""Our name of a score: the name in `udeval`, and the column of CoNLL-U."""
Scores = dict[str, dict[str, float]]


class Counts(NamedTuple):
    """Numbers of words (or tokens, or sentences) that `udeval` counts."""

    correct: int
    gold: int
    predicted: int
    aligned: int

    @property
    def f1(self) -> float:
        """F1 in percent."""
        return round(200 * self.correct / (self.gold + self.predicted), 2)


def find_udeval() -> str:
    """Return the path of the program `udeval`."""
    places = [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
    program = shutil.which("udeval", path=os.pathsep.join(places))
    if program is None:
        raise FileNotFoundError("The program udeval is missing: python -m pip install udtools")
    return program


def udeval(gold: list[Sentence], predicted: list[Sentence], folder: Path) -> dict[str, Counts]:
    """Return the counts of `udeval`, by its names of the scores. Words without a head get one, which it needs."""
    files = [folder / "gold.conllu", folder / "predicted.conllu"]
    for file, sentences in zip(files, (gold, predicted), strict=True):
        file.write_text("".join(map(str, map(_with_tree, sentences))), "utf8")
    command = [find_udeval(), "--counts", "--no-enhanced", *map(str, files)]
    table = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf8").stdout
    rows = [line.split("|") for line in table.splitlines()[2:]]
    return {name.strip(): Counts(*(int(n) if n.strip() else 0 for n in row)) for name, *row in rows}


def _with_tree(sentence: Sentence) -> Sentence:
    filled = copy.deepcopy(sentence)
    missing = [word for word in filled.words if lacks(word, HEAD)]
    top = next((word[ID] for word in filled.words if word[HEAD] == "0"), None)
    for word in missing:
        top = top or word[ID]
        word[HEAD] = "0" if word[ID] == top else top
    return filled


def over_annotated(
    gold: list[Sentence], predicted: list[Sentence], counts: Mapping[str, Counts], folder: Path
) -> dict[str, float]:
    """Return the scores of the columns that a part of the words lacks, over the words that have them.

    `udeval` takes every lemma as correct if there is none in the treebank, and every tag as wrong.
    """
    words = [word for sentence in gold for word in sentence.words]
    annotated = {
        name: sum(not lacks(w, column) for w in words) for name, (_, column) in COLUMNS.items()
    }
    partial = [name for name, n in annotated.items() if name != "UFeats" and 0 < n < len(words)]
    if not partial:
        return {}
    # In one comparison, what is missing equals nothing. In the other, it is all that differs, so that the number of
    # aligned words that have an annotation is counted; heads are counted as features, because two columns have them.
    no_missing, marked, marks = map(copy.deepcopy, (gold, gold, predicted))
    for sentence in no_missing:
        for word in sentence.words:
            for column in (UPOS, XPOS, LEMMA, DEPREL):
                word[column] = "<none>" if lacks(word, column) else word[column]
    for sentences in (marked, marks):
        for word in (word for sentence in sentences for word in sentence.words):
            has = [
                sentences is marks or not lacks(word, column)
                for column in (UPOS, XPOS, LEMMA, DEPREL)
            ]
            word[UPOS], word[XPOS], word[LEMMA], word[DEPREL] = ("yes" if h else "no" for h in has)
            word[FEATS] = "Abbr=Yes" if has[-1] else "_"
    values = udeval(no_missing, predicted, folder)
    found = udeval(marked, marks, folder)
    scores = {}
    for name in partial:
        metric = COLUMNS[name][0]
        correct = found["LAS"].correct if name == "UAS" else values[metric].correct
        aligned = found["UFeats" if name in ("UAS", "LAS") else metric].correct
        total = counts[metric]
        predicted_words = total.predicted - (total.aligned - aligned)
        scores[name] = Counts(correct, annotated[name], predicted_words, aligned).f1
    return scores


def plain_text(sentences: Iterable[Sentence]) -> str:
    """Return the text of sentences, with an empty line before each document and paragraph."""
    text = ""
    for sentence in sentences:
        text += ("\n\n" if sentence.starts_paragraph else " ") * bool(text) + sentence.text
    return text + "\n"


def has_values(sentences: Iterable[Sentence], column: int) -> bool:
    """True unless no component of the pipeline predicts a column."""
    return any(not lacks(word, column) for sentence in sentences for word in sentence.words)


def score(pipeline: Path, test: Path, folder: Path) -> Scores:
    """Return {what was given to the pipeline: {name of the score: F1 in percent}}.

    Args:
        folder: for the annotated text.
    """
    gold, _, _ = read_conllu(test)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    inputs = {"gold words": test}
    if any(sentence.has_text for sentence in gold):
        inputs = {"plain text": folder / "test.txt", **inputs}
        inputs["plain text"].write_text(plain_text(gold), "utf8")
    scores: Scores = {}
    for name, given in inputs.items():
        out = folder / f"{name.replace(' ', '-')}.conllu"
        command = [sys.executable, "-m", "spacy", "elmo", "annotate", pipeline, given, out]
        subprocess.run(command, check=True)
        predicted, _, problems = read_conllu(out)
        if problems:
            raise ValueError("\n".join(problems))
        shown = [
            name
            for name, (_, column) in COLUMNS.items()
            if is_annotated(gold, column) and has_values(predicted, column)
        ]
        counts = udeval(gold, predicted, folder)
        split = SPLIT if name == "plain text" else {}
        scores[name] = {ours: counts[theirs].f1 for ours, theirs in split.items()}
        scores[name] |= {ours: counts[COLUMNS[ours][0]].f1 for ours in shown}
        partial = over_annotated(gold, predicted, counts, folder)
        if partial := {ours: f1 for ours, f1 in partial.items() if ours in shown}:
            scores[f"{name}, annotated words alone"] = partial
    return scores


def table(scores: Scores) -> str:
    """Return the scores as a table in Markdown."""
    names = [name for name in (*SPLIT, *COLUMNS) if any(name in row for row in scores.values())]
    rows = [["", *names], ["---", *(["---:"] * len(names))]]
    for given, row in scores.items():
        rows.append([given, *(f"{row[name]:.2f}" if name in row else "" for name in names)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Print and write the scores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE")
    parser.add_argument("test", type=Path, metavar="TEST.conllu")
    parser.add_argument("out", type=Path, metavar="OUT.json")
    args = parser.parse_args()
    scores = score(args.pipeline, args.test, args.out.with_suffix(""))
    srsly.write_json(args.out, scores)
    print(table(scores))


if __name__ == "__main__":
    main()
