"""Score English pipelines on the same words: names in eight data sets, tags, lemmas, trees, letter case, line breaks;
and the sentences that they find in plain text.

    python evidence/pipelines.py DATA PIPELINE [PIPELINE ...] [--part dev]

DATA has `ner/*.tsv` (IOB2) and `pos/en_ewt-ud-*.conllu`. All pipelines get the tokens of the data sets. Names are PER,
ORG and LOC: `GOLD` and `PREDICTED` say which labels are these, and all others are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from statistics import fmean

import spacy
from spacy.language import Language
from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import iob_to_biluo
from spacy.training.iob_utils import tags_to_entities

TRAINED = ("uner_ewt", "wikigold", "wnut17")
UNSEEN = ("politics", "science", "music", "literature", "ai")
GOLD = {
    **dict.fromkeys(
        "PER person politician scientist musicalartist writer researcher".split(), "PER"
    ),
    **dict.fromkeys(
        "ORG corporation group organisation politicalparty university band".split(), "ORG"
    ),
    **dict.fromkeys("LOC location country".split(), "LOC"),
}
PREDICTED = {"PER": "PER", "PERSON": "PER", "ORG": "ORG", "LOC": "LOC", "GPE": "LOC", "FAC": "LOC"}
CASES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}
LINE = 12


@dataclass
class Words:
    """What is known about the words of one sentence or several. A head is the position of a word, a root's its own."""

    words: list[str]
    spaces: list[bool]
    tags: list[str]
    heads: list[int]
    deps: list[str]
    starts: set[int]
    names: set[tuple[int, int, str]]
    lemmas: list[str] = field(default_factory=list)
    proper: set[int] = field(default_factory=set)
    """The positions of proper nouns."""


def _names(tags: list[str]) -> set[tuple[int, int, str]]:
    entities = tags_to_entities(iob_to_biluo(tags))
    return {(start, last + 1, GOLD[label]) for label, start, last in entities if label in GOLD}


def _blocks(path: Path) -> Iterator[list[list[str]]]:
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        yield [
            line.split("\t") for line in block.splitlines() if line and not line.startswith("# ")
        ]


def iob_sentences(path: Path) -> list[Words]:
    """Return the sentences of an IOB2 file."""
    result = []
    for rows in _blocks(path):
        words = [row[0] for row in rows]
        names = _names([row[-1] for row in rows])
        result.append(Words(words, [True] * len(words), [], [], [], {0}, names))
    return result


def conllu_sentences(path: Path, per_doc: int) -> list[Words]:
    """Return the sentences of a CoNLL-U file, `per_doc` in one."""
    result: list[Words] = []
    for number, block in enumerate(_blocks(path)):
        if number % per_doc == 0:
            result.append(Words([], [], [], [], [], set(), set()))
        doc, first = result[-1], len(result[-1].words)
        doc.starts.add(first)
        rows = [row for row in block if row[0].isdigit()]
        doc.words += [row[1] for row in rows]
        doc.spaces += ["SpaceAfter=No" not in row[9] for row in rows]
        doc.tags += [row[4] for row in rows]
        doc.lemmas += [row[2] for row in rows]
        doc.proper |= {first + i for i, row in enumerate(rows) if row[3] == "PROPN"}
        doc.heads += [
            first + (int(row[6]) - 1 if row[6] != "0" else i) for i, row in enumerate(rows)
        ]
        doc.deps += [row[7] for row in rows]
    return result


def paragraphs(path: Path) -> list[list[str]]:
    """Return the texts of the sentences of each paragraph of a CoNLL-U file."""
    result: list[list[str]] = []
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.splitlines()
        if not result or any(line.startswith(("# newdoc", "# newpar")) for line in lines):
            result.append([])
        result[-1] += [
            line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")
        ]
    return result


def sentences(nlp: Language, texts: list[list[str]]) -> float:
    """Return F1 in percent of the spans of sentences that are joined by a space. Spaces at their ends do not count."""
    spans = PRFScore()
    for right, doc in zip(texts, nlp.pipe(map(" ".join, texts)), strict=True):
        starts = accumulate((len(text) + 1 for text in right), initial=0)
        gold = {(start, start + len(text)) for start, text in zip(starts, right, strict=False)}
        words = [[token for token in sent if not token.is_space] for sent in doc.sents]
        spans.score_set(
            {(sent[0].idx, sent[-1].idx + len(sent[-1])) for sent in filter(None, words)}, gold
        )
    return 100 * spans.fscore


def predict(
    nlp: Language, gold: Iterable[Words], change: Callable[[str], str] = str, *, lines: bool = False
) -> Iterator[Words]:
    """Yield what a pipeline says about the same words, in another letter case or with a line break every 12 words."""
    docs = []
    for item in gold:
        words, spaces = [], []
        for i, (word, space) in enumerate(zip(item.words, item.spaces, strict=True)):
            if lines and i and i % LINE == 0:
                words.append("\n")
                spaces.append(False)
            words.append(change(word))
            spaces.append(space)
        docs.append(Doc(nlp.vocab, words, spaces))
    for doc in nlp.pipe(docs):
        kept = [token for token in doc if not token.is_space]
        place = {token.i: i for i, token in enumerate(kept)}
        before = [sum(not token.is_space for token in doc[:end]) for end in range(len(doc) + 1)]
        yield Words(
            [token.text for token in kept],
            [bool(token.whitespace_) for token in kept],
            [token.tag_ for token in kept],
            [place.get(token.head.i, -1) for token in kept],
            [token.dep_ for token in kept],
            {before[sent.start] for sent in doc.sents},
            {
                (before[ent.start], before[ent.end], PREDICTED[ent.label_])
                for ent in doc.ents
                if ent.label_ in PREDICTED
            },
            [token.lemma_ for token in kept],
        )


def scores(gold: list[Words], predicted: Iterable[Words]) -> dict[str, float]:
    """Return F1 of the names and of the sentence starts, and the accuracy of the tags, lemmas, heads, and heads with
    labels, in percent. Heads of punctuation do not count, as in spaCy."""
    names, starts = PRFScore(), PRFScore()
    tags = heads = labelled = words = scored = 0
    lemmas: list[bool] = []
    proper: list[bool] = []
    for right, ours in zip(gold, predicted, strict=True):
        names.score_set(ours.names, right.names)
        starts.score_set(ours.starts, right.starts)
        words += len(right.tags)
        tags += sum(a == b for a, b in zip(right.tags, ours.tags, strict=False))
        for i, (lemma, of_ours) in enumerate(zip(right.lemmas, ours.lemmas, strict=False)):
            if lemma != "_":  # the second part of a word that is written apart
                lemmas.append(lemma == of_ours)
                if i in right.proper:
                    proper.append(lemmas[-1])
        for i, label in enumerate(right.deps):
            if label != "punct":
                scored += 1
                heads += ours.heads[i] == right.heads[i]
                ours_label = ours.deps[i].lower()
                labelled += ours.heads[i] == right.heads[i] and ours_label == label
    result = {"names": names.fscore, "sentences": starts.fscore}
    if words:
        result |= {"tags": tags / words, "UAS": heads / scored, "LAS": labelled / scored}
        result |= {"lemmas": fmean(lemmas), "lemmas of proper nouns": fmean(proper)}
    return {key: 100 * value for key, value in result.items()}


def table(nlp: Language, data: Path, part: str) -> dict[str, float]:
    """Return all scores of a pipeline."""
    result = {}
    sets = {name: iob_sentences(data / "ner" / f"{name}-{part}.tsv") for name in TRAINED}
    sets |= {name: iob_sentences(data / "ner" / f"crossner-{name}-{part}.tsv") for name in UNSEEN}
    for name, gold in sets.items():
        result[f"names {name}"] = scores(gold, predict(nlp, gold))["names"]
    result["names unseen, mean"] = sum(result[f"names {name}"] for name in UNSEEN) / len(UNSEEN)
    ewt = sets["uner_ewt"]
    for case, change in CASES.items():
        result[f"names uner_ewt, {case}"] = scores(ewt, predict(nlp, ewt, change))["names"]
    broken = scores(ewt, predict(nlp, ewt, lines=True))["names"]
    result["names uner_ewt, loss by lines"] = result["names uner_ewt"] - broken
    path = data / "pos" / f"en_ewt-ud-{part}.conllu"
    single, tens = conllu_sentences(path, 1), conllu_sentences(path, 10)
    plain = scores(single, predict(nlp, single))
    kinds = ("tags", "lemmas", "lemmas of proper nouns", "UAS", "LAS")
    result |= {key: plain[key] for key in kinds}
    texts = paragraphs(path)
    result["sentences in paragraphs"] = sentences(nlp, texts)
    result["sentences alone"] = sentences(nlp, [[text] for each in texts for text in each])
    for case, change in CASES.items():
        result[f"tags, {case}"] = scores(single, predict(nlp, single, change))["tags"]
    whole, broken_up = (
        scores(tens, predict(nlp, tens)),
        scores(tens, predict(nlp, tens, lines=True)),
    )
    for key in ("UAS", "sentences"):
        result[f"{key}, loss by lines"] = whole[key] - broken_up[key]
    return {key: round(value, 2) for key, value in result.items()}


def main() -> None:
    """Print a row for evidence/scores/pipelines.jsonl of each pipeline."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("pipelines", nargs="+")
    parser.add_argument("--part", default="test")
    args = parser.parse_args()
    for name in args.pipelines:
        run = {"system": Path(name).name, "part": args.part}
        run |= {"scores": table(spacy.load(name), args.data, args.part)}
        print(json.dumps(run | {"command": "python evidence/pipelines.py"}), flush=True)


if __name__ == "__main__":
    main()
