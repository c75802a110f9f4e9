"""Compare the noun chunks of pipelines with the base noun phrases of a treebank.

    python noun_chunks.py ../../shared/data/pos/en_ewt-ud-test.conllu en_elmo_web en_core_web_sm

The base noun phrases are read off the gold trees of Universal Dependencies (UD). Each pipeline gets the words of
the treebank, and predicts everything else: tags, trees and sentences. A chunk is right if it has the same words.

A base noun phrase is a noun, proper noun or pronoun with the words that describe it, without another noun phrase
inside: no coordination of noun phrases, no prepositional phrase, no relative clause, no apposition. A possessor
is part of the phrase ("my friend's house"). Existential "there" is none.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.tokens import Doc

NOMINAL = {"NOUN", "PROPN", "PRON"}
# Relations of words that belong to the phrase of their head.
BEFORE = {
    "det",
    "amod",
    "nummod",
    "compound",
    "nmod:poss",
    "nmod:desc",
    "nmod:unmarked",
    "flat",
    "fixed",
    "goeswith",
}
AFTER = {"flat", "compound", "goeswith"}
NUMBERS_AFTER = {"nummod", "nmod:unmarked"}
# Relations of words that are no phrase, whatever their part of speech.
FUNCTION = {"fixed", "goeswith", "case", "mark", "cc", "det", "advmod", "reparandum"}

Row = dict[str, str]
Chunk = tuple[int, int]


def sentences(path: Path) -> Iterator[list[Row]]:
    """Yield the words of each sentence of a CoNLL-U file."""
    for block in path.read_text("utf8").split("\n\n"):
        columns = [line.split("\t") for line in block.splitlines() if line and line[0] != "#"]
        words = [c for c in columns if c[0].isdigit()]
        if words:
            names = ("id", "text", "lemma", "pos", "tag", "feats", "head", "dep", "deps", "misc")
            yield [dict(zip(names, c, strict=True)) for c in words]


def base_noun_phrases(words: list[Row]) -> set[Chunk]:
    """Return the first and one past the last index of each base noun phrase of a sentence."""
    heads = [int(word["head"]) - 1 for word in words]  # -1: the root
    children: list[list[int]] = [[] for _ in words]
    for index, head in enumerate(heads):
        if head >= 0:
            children[head].append(index)

    def universal(index: int) -> str:
        return words[index]["dep"].split(":")[0]

    def conjunct_of(index: int) -> int:
        """Return the first conjunct, whose relation holds for the whole coordination."""
        while universal(index) == "conj":
            index = heads[index]
        return index

    def describes(index: int) -> bool:
        """Return True if a word, or the coordination that it belongs to, is part of the phrase of its head."""
        index = conjunct_of(index)
        if heads[index] < 0 or words[heads[index]]["pos"] not in NOMINAL:
            return universal(index) in FUNCTION
        relations = {words[index]["dep"], universal(index)}
        if index < heads[index]:
            return bool(relations & BEFORE)
        is_number = words[index]["pos"] == "NUM" and index == heads[index] + 1
        return bool(relations & AFTER) or (is_number and bool(relations & NUMBERS_AFTER))

    def subtree(index: int) -> set[int]:
        return {index}.union(*map(subtree, children[index]))

    phrases = set()
    for index, word in enumerate(words):
        if word["pos"] not in NOMINAL or word["tag"] == "EX":
            continue
        if describes(index) or universal(conjunct_of(index)) in FUNCTION:
            continue
        inside = {index}
        for child in children[index]:
            if universal(child) != "conj" and describes(child):
                inside |= subtree(child)
        punctuation = {i for i, other in enumerate(words) if other["pos"] == "PUNCT"}
        first = last = index
        while first - 1 in inside | punctuation:
            first -= 1
        while last + 1 in inside | punctuation:
            last += 1
        while first not in inside:
            first += 1
        while last not in inside:
            last -= 1
        phrases.add((first, last + 1))
    return {
        p for p in phrases if not any(o != p and o[0] <= p[0] and p[1] <= o[1] for o in phrases)
    }


def main() -> None:
    """Print precision, recall and F1 of the noun chunks of each pipeline."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=Path, metavar="CONLLU")
    parser.add_argument("pipelines", nargs="+", metavar="PIPELINE")
    parser.add_argument("--errors", type=int, default=0, help="print this many wrong sentences")
    args = parser.parse_args()
    treebank = list(sentences(args.treebank))
    gold = [base_noun_phrases(words) for words in treebank]
    for name in args.pipelines:
        nlp = spacy.load(name)
        docs = (Doc(nlp.vocab, [word["text"] for word in words],
                    ["SpaceAfter=No" not in word["misc"] for word in words]) for words in treebank)  # fmt: skip
        right = found = shown = 0
        for doc, expected in zip(nlp.pipe(docs, batch_size=64), gold, strict=True):
            chunks = {(chunk.start, chunk.end) for chunk in doc.noun_chunks}
            right += len(chunks & expected)
            found += len(chunks)
            if chunks != expected and shown < args.errors:
                shown += 1
                print(doc.text)
                print("   missing:", [doc[a:b].text for a, b in sorted(expected - chunks)])
                print("   wrong:  ", [doc[a:b].text for a, b in sorted(chunks - expected)])
        total = sum(map(len, gold))
        precision, recall = right / max(found, 1), right / total
        print(f"{name}: precision {precision:.3f}, recall {recall:.3f},"
              f" F1 {2 * right / (found + total):.3f} ({total} phrases)")  # fmt: skip


if __name__ == "__main__":
    main()
