"""`evidence.qa_scorer.v1`: the exact match and the word F1 of SQuAD 1.1, for one answer per Doc.

If a question has several answers, each in its own Doc, this is stricter than SQuAD, which uses the best answer.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import spacy
from spacy.training import Example

from .annotation import answer

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normal_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without ASCII punctuation and articles."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def word_f1(predicted: str, gold: str) -> float:
    """Return the F1 between the bags of words of two answers; 0 if they share no word."""
    left, right = normal_words(predicted), normal_words(gold)
    shared = (Counter(left) & Counter(right)).total()
    return 2 * shared / (len(left) + len(right)) if shared else 0.0


def score_qa(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Return the means over the questions that have an answer.

    Returns:
        `qa_em`, the share of answers with the same words as the correct answer, and `qa_f`, the mean of `word_f1`; None
        if no question has an answer.
    """
    pairs = []
    for example in examples:
        predicted, gold = answer(example.predicted), answer(example.reference)
        if gold is not None:
            pairs.append((predicted.text if predicted else "", gold.text))
    if not pairs:
        return {"qa_em": None, "qa_f": None}
    exact = [normal_words(predicted) == normal_words(gold) for predicted, gold in pairs]
    return {
        "qa_em": sum(exact) / len(pairs),
        "qa_f": sum(word_f1(predicted, gold) for predicted, gold in pairs) / len(pairs),
    }


@spacy.registry.scorers("evidence.qa_scorer.v1")
def make_qa_scorer() -> Callable[..., dict[str, Any]]:
    """Return the scorer of a qa component."""
    return score_qa
