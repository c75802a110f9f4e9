"""The ratios of speeds that are the targets of the project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """A contender and its precision."""

    kind: str
    precision: str = "float32"


@dataclass(frozen=True)
class Target:
    """The least ratio between the speeds of two contenders."""

    name: str
    size: str
    fast: Side
    slow: Side
    least: float


_ALLENNLP = Side("AllenNLP")
TARGETS = (
    Target("small to AllenNLP", "small", Side("network"), _ALLENNLP, 12),
    Target("original to AllenNLP", "original", Side("network"), _ALLENNLP, 4),
    *(
        Target(
            f"original, {precision}, to AllenNLP",
            "original",
            Side("network", precision),
            _ALLENNLP,
            8,
        )
        for precision in ("bfloat16", "int8")
    ),
    Target(
        "original, bfloat16, to float32",
        "original",
        Side("network", "bfloat16"),
        Side("network"),
        3,
    ),
    Target(
        "original, int8, to bfloat16",
        "original",
        Side("network", "int8"),
        Side("network", "bfloat16"),
        1,
    ),
    Target("small, bfloat16, to AllenNLP", "small", Side("network", "bfloat16"), _ALLENNLP, 20),
    Target(
        "small, bfloat16, to float32", "small", Side("network", "bfloat16"), Side("network"), 2.2
    ),
    *(
        Target(f"{size} to its products alone", size, Side("network"), Side("products"), 0.85)
        for size in ("mini", "small", "original")
    ),
    *(
        Target(f"{size}, nlp.pipe to the network", size, Side("nlp.pipe"), Side("network"), 0.9)
        for size in ("mini", "small", "original")
    ),
    *(
        Target(f"{size} to onnxruntime", size, Side("network"), Side("onnxruntime"), 2.5)
        for size in ("mini", "small")
    ),
    Target("small to BERT-base", "small", Side("nlp.pipe"), Side("BERT-base"), 20),
)
