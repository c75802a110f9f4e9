"""Conversion of the arguments of a predicate to one BIO tag per token, and of the best tags to arguments.

With K labels there are 1 + 2K tags: 0 is O, 1 + 2k begins an argument with label k, and 2 + 2k continues it.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from thinc.types import Floats2d, Ints1d

from .annotation import Argument


def n_tags(labels: Sequence[str]) -> int:
    """Return the number of tags for a number of labels."""
    return 1 + 2 * len(labels)


def encode(found: Iterable[Argument], length: int, labels: Sequence[str]) -> Ints1d:
    """Return the tags of `length` tokens. Arguments with a label that is not in `labels` are left out."""
    tags = np.zeros(length, dtype="i")
    for start, end, label in found:
        if label in labels:
            begin = 1 + 2 * labels.index(label)
            tags[start] = begin
            tags[start + 1 : end] = begin + 1
    return tags


def decode(tags: Sequence[int], labels: Sequence[str]) -> list[Argument]:
    """Return the arguments of tags, as the inverse of `encode`. A tag that continues an argument must follow a tag with
    the same label, as in every result of `best_path`."""
    found: list[Argument] = []
    for index, tag in enumerate(tags):
        if tag and tag % 2:
            found.append(Argument(index, index + 1, labels[tag // 2]))
        elif tag:
            found[-1] = found[-1]._replace(end=index + 1)
    return found


def best_path(scores: Floats2d) -> list[int]:
    """Return the tags with the highest sum of scores in which an argument continues only after its begin (the Viterbi
    algorithm with the BIO constraints of He et al. 2017).

    Args:
        scores: (n_tokens, n_tags), such as logarithms of probabilities.
    """
    # Any tag may precede a tag, but only the two tags of its label may precede a tag that continues. So two comparisons
    # per tag are enough; a table of all transitions would have the square of the number of tags.
    begin = np.arange(1, scores.shape[1], 2)
    total = scores[0].copy()
    total[2::2] = -np.inf
    steps = np.empty(scores.shape, dtype="i")
    for index in range(1, len(scores)):
        before = steps[index]
        before[:] = total.argmax()
        before[2::2] = np.where(total[1::2] >= total[2::2], begin, begin + 1)
        total = total[before] + scores[index]
    tag = int(total.argmax())
    path = [tag]
    for before in steps[:0:-1]:
        tag = int(before[tag])
        path.append(tag)
    return path[::-1]
