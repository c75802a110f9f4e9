"""Score a pipeline as the CoNLL 2018 shared task does, with the words and the sentences of a treebank.

    python score_words.py training/pipeline corpus/small/test.conllu scores.json

As in `conll18_ud_eval.py`, and unlike `spacy evaluate`, punctuation counts, labels have no subtypes ("acl:relcl" is
"acl"), and only the universal features of UD count.
"""

import argparse
from pathlib import Path

import spacy
import srsly
from spacy.language import Language
from spacy.tokens import Doc, Token

UNIVERSAL = set(
    "Abbr Animacy Aspect Case Definite Degree Evident Foreign Gender Mood NumType Number Person Polarity Polite Poss"
    " PronType Reflex Tense VerbForm Voice".split()
)


def features(text: str) -> set[str]:
    """Return the universal features of "Case=Nom|Number=Sing"."""
    return {feature for feature in text.split("|") if feature.split("=")[0] in UNIVERSAL}


def correct(row: list[str], token: Token) -> dict[str, bool]:
    """Compare the columns of a word in CoNLL-U with a token. As in the shared task, any lemma is correct for `_`."""
    head = 0 if token.head == token else token.head.i - token.sent.start + 1
    attached = head == int(row[6])
    return {
        "UPOS": token.pos_ == row[3],
        "UFeats": features(str(token.morph)) == features(row[5]),
        "lemma": row[2] in ("_", token.lemma_),
        "UAS": attached,
        "LAS": attached and token.dep_.split(":")[0].lower() == row[7].split(":")[0],
    }


def scores(nlp: Language, text: str) -> dict[str, float]:
    """Return the percentage of correct words for each column."""
    sentences = []
    for block in text.strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n")]
        sentences.append([row for row in rows if row[0].isdigit()])
    docs = (
        Doc(
            nlp.vocab,
            words=[row[1] for row in rows],
            sent_starts=[i == 0 for i in range(len(rows))],
        )
        for rows in sentences
    )
    judged = [
        correct(row, token)
        for rows, doc in zip(sentences, nlp.pipe(docs), strict=True)
        for row, token in zip(rows, doc, strict=True)
    ]
    return {
        name: round(100 * sum(word[name] for word in judged) / len(judged), 2) for name in judged[0]
    }


def main() -> None:
    """Print and write the scores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE")
    parser.add_argument("treebank", type=Path, metavar="TEST.conllu")
    parser.add_argument("out", type=Path, metavar="OUT.json")
    args = parser.parse_args()
    found = scores(spacy.load(args.pipeline), args.treebank.read_text("utf8"))
    srsly.write_json(args.out, found)
    print(" ".join(f"{name} {score:.1f}" for name, score in found.items()))


if __name__ == "__main__":
    main()
