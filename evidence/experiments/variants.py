"""The variants of a task. Each is the config of the task with ELMo, with only the change that its name states."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confection import Config
from spacy.util import load_config

PLACES = ("input", "output")
"""The positions of ELMo: concatenated with the input of the encoder, or with its output."""
_ROOT = Path(__file__).parents[1]


def task_config(task: str) -> Config:
    """Return the config of a task with ELMo: one of our own, or for spaCy's own tasks one of ../configs."""
    own = _ROOT / "tasks" / f"{task}.cfg"
    return load_config(own if own.is_file() else _ROOT.parent / "configs" / f"{task}_elmo.cfg")


def derive(variant: str, task: str, vectors: Path) -> Config:
    """Return the config of a variant, not interpolated.

    Args:
        variant: one of `VARIANTS`.
        task: the name of the component.
        vectors: folder of the static vectors, for the variants with them.
    """
    config = task_config(task)
    block = tok2vec_block(config, task)
    if not variant.startswith("elmo"):
        del config["components"]["elmo"]
        config["nlp"]["pipeline"].remove("elmo")
        for place in PLACES:
            del block[place]
        block["@architectures"] = "spacy.Tok2Vec.v2"
    VARIANTS[variant](block)
    if variant == "elmo_tuned":
        config["components"]["elmo"].update(frozen=False, lr_scale=0.1)
    if "vectors" in variant:
        config.setdefault("initialize", {})["vectors"] = str(vectors)
    return config


def own_variant(task: str) -> str:
    """Return the variant with the same position of ELMo as the task's config with ELMo, such as elmo_input."""
    block = tok2vec_block(task_config(task), task)
    (place,) = (place for place in PLACES if block[place] is not None)
    return f"elmo_{place}"


def tok2vec_block(config: Config, task: str) -> dict[str, Any]:
    """Return the block of the embedding and encoder inside a component."""
    return config["components"][task]["model"]["tok2vec"]


def _as_it_is(block: dict[str, Any]) -> None:
    pass


def _vectors(block: dict[str, Any]) -> None:
    block["embed"]["include_static_vectors"] = True


def _placed(*places: str) -> Callable[[dict[str, Any]], None]:
    def change(block: dict[str, Any]) -> None:
        (listener,) = (block[place] for place in PLACES if block[place] is not None)
        for place in PLACES:
            block[place] = copy.deepcopy(listener) if place in places else None

    return change


def _listener(**settings: Any) -> Callable[[dict[str, Any]], None]:
    def change(block: dict[str, Any]) -> None:
        for place in PLACES:
            if block[place] is not None:
                block[place].update(settings)

    return change


VARIANTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "baseline": _as_it_is,
    "vectors": _vectors,
    "elmo": _as_it_is,
    "elmo_vectors": _vectors,
    "elmo_tuned": _as_it_is,
    "elmo_input": _placed("input"),
    "elmo_output": _placed("output"),
    "elmo_both": _placed(*PLACES),
    "elmo_top": _listener(layers="top"),
    "elmo_average": _listener(layers="average"),
    "elmo_l2_1": _listener(l2=1.0),
    "elmo_l2_0001": _listener(l2=0.001),
}
"""For each variant, the function that changes the block of the embedding and encoder."""
