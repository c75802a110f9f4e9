"""Training text in other letter case and with wrapped lines, for pipelines that read headlines, chats and e-mail."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

from spacy.language import Language
from spacy.training import Example
from spacy.training.augment import make_whitespace_variant

Augmenter = Callable[[Language, Example], Iterator[Example]]
Cases = dict[Callable[[str], str], float]


def case_and_lines_v1(
    lower: float, upper: float, title: float, lines: float, width: int = 12
) -> Augmenter:
    """Return an augmenter for `@augmenters = "spacy-elmo.case_and_lines.v1"` in a config. It draws anew for each
    example in each epoch. A lemma with a capital letter changes its case with its word.

    Args:
        lower: probability that the text becomes lower case.
        upper: probability that it becomes upper case.
        title: probability that the first letter of each word becomes a capital letter.
        lines: probability that the text gets a line break after every `width` words or so.
        width: words in a line, give or take half of them.

    Raises:
        ValueError: the probabilities of the cases add up to more than 1.
    """
    if lower + upper + title > 1:
        raise ValueError(f"lower + upper + title = {lower + upper + title}: at most 1 is possible")
    cases: Cases = {str.lower: lower, str.upper: upper, _capitalize: title}
    return partial(_augment, cases=cases, lines=lines, width=width)


def _capitalize(word: str) -> str:
    # Unlike `str.capitalize`, it leaves "NASA" and "McDonald" as they are.
    return word[:1].upper() + word[1:]


def _augment(
    nlp: Language,
    example: Example,
    *,
    cases: Cases,
    lines: float,
    width: int,
) -> Iterator[Example]:
    drawn = random.random()
    for change, probability in cases.items():
        drawn -= probability
        if drawn < 0:
            example = _recase(nlp, example, change)
            break
    if random.random() < lines:
        position = random.randint(1, width)
        while position < len(example.reference):
            example = make_whitespace_variant(nlp, example, "\n", position)
            position += random.randint(width // 2, width + width // 2)
    yield example


def _recase(nlp: Language, example: Example, change: Callable[[str], str]) -> Example:
    annotation = example.to_dict()
    tokens = annotation["token_annotation"]
    words = [
        # "n't" in "Don't" is not the start of a word, so `_capitalize` must not see its first letter as one.
        change("x" + token.text)[1:]
        if token.i and not token.nbor(-1).whitespace_
        else change(token.text)
        for token in example.reference
    ]
    tokens["LEMMA"] = [
        lemma if lemma == lemma.lower() else change(lemma) for lemma in tokens["LEMMA"]
    ]
    tokens["ORTH"] = words
    spaces = (token.whitespace_ for token in example.reference)
    text = "".join(word + space for word, space in zip(words, spaces, strict=True))
    return Example.from_dict(nlp.make_doc(text), annotation)
