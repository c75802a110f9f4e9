"""The treebank of the sample corpus: short sentences with parts of speech, morphology, lemmas and dependencies.

A sentence and its annotation are generated together, so the annotation is always correct. It uses the tags, features
and relations of Universal Dependencies, and the tags of the Penn Treebank.
"""

import random
from typing import NamedTuple

NOUNS = "boat girl sailor farmer bridge garden river market teacher letter horse window ship doctor road".split()
ADJECTIVES = "old small green quiet heavy new red long".split()
PREPOSITIONS = "near behind under beside".split()
WITH_OBJECT = [("paint", "painted"), ("find", "found"), ("see", "saw"), ("keep", "kept")]
WITHOUT = [("wait", "waited"), ("sleep", "slept"), ("stand", "stood"), ("sing", "sang")]


class Word(NamedTuple):
    """A row of a CoNLL-U file, without the number of the word."""

    form: str
    lemma: str
    pos: str
    tag: str
    feats: str
    head: int
    """Distance to the head; 0 for the root."""
    relation: str


def noun_phrase(rng: random.Random, relation: str, head: int, plural: bool) -> list[Word]:
    """Return an article, sometimes an adjective, and a noun. The head of the noun is at the distance `head`."""
    noun = rng.choice(NOUNS)
    form, tag, number = (f"{noun}s", "NNS", "Plur") if plural else (noun, "NN", "Sing")
    adjective = rng.choice(ADJECTIVES) if rng.random() < 0.5 else ""
    words = [
        Word("the", "the", "DET", "DT", "Definite=Def|PronType=Art", 1 + bool(adjective), "det")
    ]
    if adjective:
        words.append(Word(adjective, adjective, "ADJ", "JJ", "Degree=Pos", 1, "amod"))
    return [*words, Word(form, noun, "NOUN", tag, f"Number={number}", head, relation)]


def verb(rng: random.Random, verbs: list[tuple[str, str]], plural: bool) -> Word:
    """Return a verb in the past or present tense that agrees with its subject."""
    lemma, past = rng.choice(verbs)
    if rng.random() < 0.5:
        return Word(past, lemma, "VERB", "VBD", "Mood=Ind|Tense=Past|VerbForm=Fin", 0, "root")
    form, tag = (lemma, "VBP") if plural else (f"{lemma}s", "VBZ")
    return Word(form, lemma, "VERB", tag, "Mood=Ind|Tense=Pres|VerbForm=Fin", 0, "root")


def sentence(rng: random.Random) -> list[Word]:
    """Return a subject, a verb, sometimes an object, sometimes a place, and a full stop."""
    plural, has_object = rng.random() < 0.5, rng.random() < 0.5
    words = noun_phrase(rng, "nsubj", 1, plural)
    words.append(verb(rng, WITH_OBJECT if has_object else WITHOUT, plural))
    root = len(words) - 1
    if has_object:
        words += noun_phrase(rng, "obj", 0, rng.random() < 0.5)
        words[-1] = words[-1]._replace(head=root + 1 - len(words))
    if rng.random() < 0.5:
        place = noun_phrase(rng, "obl", 0, rng.random() < 0.5)
        preposition = rng.choice(PREPOSITIONS)
        words.append(Word(preposition, preposition, "ADP", "IN", "_", len(place), "case"))
        words += place
        words[-1] = words[-1]._replace(head=root + 1 - len(words))
    words.append(Word(".", ".", "PUNCT", ".", "_", root - len(words), "punct"))
    return [words[0]._replace(form="The"), *words[1:]]


def conllu(rng: random.Random, count: int) -> str:
    """Return `count` sentences in CoNLL-U."""
    blocks = []
    for _ in range(count):
        words = sentence(rng)
        rows = []
        for number, word in enumerate(words, 1):
            head = number + word.head if word.head else 0
            space = "SpaceAfter=No" if number == len(words) - 1 else "_"
            cells = [number, *word[:5], head, word.relation, "_", space]
            rows.append("\t".join(map(str, cells)) + "\n")
        text = " ".join(word.form for word in words).replace(" .", ".")
        blocks.append(f"# text = {text}\n" + "".join(rows))
    return "\n".join(blocks) + "\n"
