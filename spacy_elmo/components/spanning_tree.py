"""The best dependency tree of a sentence: the maximum spanning tree with one root, from the scores of all arcs."""

from __future__ import annotations

import numpy as np


def best_heads(scores: np.ndarray) -> np.ndarray:
    """Return the heads of the tree with the highest sum of scores, (n,). The root is its own head.

    If the best heads of the single words are not such a tree, the algorithm of Chu and Liu (1965) and Edmonds (1967)
    finds it, in time n² (Tarjan 1977). It contracts a cycle to one node until there is none, and then opens the cycles
    again, each at the word that the tree enters. The root's score is lowered so far that a tree with two roots is never
    the best (Gabow and Tarjan 1984).

    Args:
        scores: (n, n), finite. `scores[word, head]` is the score of an arc; the diagonal has the scores of the words as
            root.
    """
    n = len(scores)
    heads = scores.argmax(axis=1)
    if (heads == np.arange(n)).sum() == 1 and not _cycle(heads.tolist()):
        return heads
    # A column of its own for the root, because the diagonal of a contracted node is inside the node.
    arcs = np.concatenate([scores, scores.diagonal()[:, None]], axis=1, dtype=np.float64)
    arcs[:, n] -= 1 + n * (scores.max() - scores.min())
    np.fill_diagonal(arcs, -np.inf)
    best = [*arcs.argmax(axis=1).tolist(), n]
    contracted = []
    while cycle := _cycle(best):
        node, others = cycle[0], cycle[1:]
        # An arc into the cycle replaces the arc of the cycle to the same word. Arcs inside the cycle are gone.
        gains = arcs[cycle] - arcs[cycle, [best[word] for word in cycle]][:, None]
        gains[:, cycle] = -np.inf
        contracted.append(
            (
                cycle,
                [best[word] for word in cycle],
                gains.argmax(axis=0),
                arcs[:, cycle].argmax(axis=1),
            )
        )
        arcs[:, node] = arcs[:, cycle].max(axis=1)
        arcs[node] = gains.max(axis=0)
        arcs[:, others] = -np.inf
        inside = set(cycle)
        best = [node if head in inside else head for head in best]
        best[node] = int(arcs[node].argmax())
        for word in others:
            best[word] = n  # no longer a node
    for cycle, inner, enters, leaves in reversed(contracted):
        node, outer = cycle[0], best[cycle[0]]
        best = [
            cycle[leaves[word]] if head == node and word < n else head
            for word, head in enumerate(best)
        ]
        for word, head in zip(cycle, inner, strict=True):
            best[word] = head
        best[cycle[enters[outer]]] = outer
    return np.array([word if head == n else head for word, head in enumerate(best[:n])])


def _cycle(heads: list[int]) -> list[int]:
    """Return the words of a cycle of at least two words; an empty list if there is none."""
    seen: dict[int, int] = {}
    for start in range(len(heads)):
        word = start
        while word not in seen:
            seen[word] = start
            word = heads[word]
        if seen[word] == start and heads[word] != word:
            cycle = [word]
            while heads[cycle[-1]] != word:
                cycle.append(heads[cycle[-1]])
            return cycle
    return []
