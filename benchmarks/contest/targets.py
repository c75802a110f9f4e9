"""What the measured speeds should at least be in relation to each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """One of those that are compared."""

    kind: str
    precision: str = "float32"


@dataclass(frozen=True)
class Target:
    """The quotient of two speeds, in words per second."""

    what: str
    size: str
    fast: Side
    slow: Side
    least: float


_ALLENNLP = Side("AllenNLP")
TARGETS = (
    Target("small to AllenNLP", "small", Side("network"), _ALLENNLP, 12),
    Target("original to AllenNLP", "original", Side("network"), _ALLENNLP, 4),
    *(
        Target(f"original, {low}, to AllenNLP", "original", Side("network", low), _ALLENNLP, 8)
        for low in ("bfloat16", "int8")
    ),
    Target("original to its products alone", "original", Side("network"), Side("products"), 0.85),
    *(
        Target(f"{size}, nlp.pipe to the network", size, Side("nlp.pipe"), Side("network"), 0.9)
        for size in ("mini", "small", "original")
    ),
    Target("small to BERT-base", "small", Side("nlp.pipe"), Side("BERT-base"), 20),
)
