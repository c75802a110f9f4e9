"""The variants of a task. Each is one of the two configs of the task, with only the change that its name states."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from confection import Config
from spacy.util import load_config

PLACES = ("input", "output")
"""The positions of ELMo: concatenated with the input of the encoder, or with its output."""


class Resources(NamedTuple):
    """The files that some variants need. They are made from the same raw text."""

    vectors: Path
    """Folder from `spacy init vectors`."""
    tok2vec: Path
    """File of weights from `spacy pretrain`, for the embedding and encoder of the task."""


def derive(variant: str, task: str, pair: tuple[Config, Config], resources: Resources) -> Config:
    """Return the config of a variant.

    Args:
        variant: one of `VARIANTS`.
        task: the name of the component.
        pair: the configs of the task without ELMo and with it, not interpolated. They are not changed.

    Raises:
        ValueError: the variant is unknown.
    """
    if variant not in VARIANTS:
        raise ValueError(f"Unknown variant {variant!r}; the variants are {', '.join(VARIANTS)}")
    config = pair[needs_elmo(variant)].copy()
    VARIANTS[variant](config, task, resources)
    return config


def needs_elmo(variant: str) -> bool:
    """Return True if a variant is made from the config with ELMo."""
    return variant.startswith("elmo")


def config_file(task: str, kind: str, folder: Path = Path()) -> Path:
    """Return the config file of a task: in the folder of its component, or for spaCy's own tasks in ../configs.

    Args:
        task: name of the task, such as ner.
        kind: "baseline" or "elmo".
        folder: the folder of this project.

    Raises:
        FileNotFoundError: there is no such file.
    """
    paths = [
        folder / "tasks" / task / f"{kind}.cfg",
        folder / ".." / "configs" / f"{task}_{kind}.cfg",
    ]
    for path in paths:
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"The task {task} has no {kind} config: there is no {' and no '.join(map(str, paths))}"
    )


def read_pair(task: str, folder: Path = Path()) -> tuple[Config, Config]:
    """Return the configs of a task without ELMo and with it."""
    baseline, elmo = (load_config(config_file(task, kind, folder)) for kind in ("baseline", "elmo"))
    return baseline, elmo


def own_variant(task: str, folder: Path = Path()) -> str:
    """Return the variant with the same position of ELMo as the task's config with ELMo, such as elmo_input."""
    block = tok2vec_block(read_pair(task, folder)[1], task)
    (place,) = (place for place in PLACES if block[place] is not None)
    return f"elmo_{place}"


def tok2vec_block(config: Config, task: str) -> dict[str, Any]:
    """Return the block of the embedding and encoder inside a component."""
    return config["components"][task]["model"]["tok2vec"]


def _as_it_is(config: Config, task: str, resources: Resources) -> None:
    pass


def _vectors(config: Config, task: str, resources: Resources) -> None:
    config.setdefault("initialize", {})["vectors"] = str(resources.vectors)
    tok2vec_block(config, task)["embed"]["include_static_vectors"] = True


def _pretrain(config: Config, task: str, resources: Resources) -> None:
    config.setdefault("initialize", {})["after_init"] = {
        "@callbacks": "evidence.init_tok2vec.v1",
        "component": task,
        "path": str(resources.tok2vec),
    }


def _placed(*places: str) -> Callable[[Config, str, Resources], None]:
    def change(config: Config, task: str, resources: Resources) -> None:
        block = tok2vec_block(config, task)
        listener = _listeners(block)[0]
        block.update(
            {place: copy.deepcopy(listener) if place in places else None for place in PLACES}
        )

    return change


def _listener(**settings: Any) -> Callable[[Config, str, Resources], None]:
    def change(config: Config, task: str, resources: Resources) -> None:
        for listener in _listeners(tok2vec_block(config, task)):
            listener.update(settings)

    return change


def _listeners(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [block[place] for place in PLACES if block[place] is not None]


VARIANTS: dict[str, Callable[[Config, str, Resources], None]] = {
    "baseline": _as_it_is,
    "vectors": _vectors,
    "pretrain": _pretrain,
    "elmo": _as_it_is,
    "elmo_vectors": _vectors,
    "elmo_input": _placed("input"),
    "elmo_output": _placed("output"),
    "elmo_both": _placed(*PLACES),
    "elmo_top": _listener(layers="top"),
    "elmo_average": _listener(layers="average"),
    "elmo_l2_1": _listener(l2=1.0),
    "elmo_l2_0001": _listener(l2=0.001),
}
"""For each variant, the function that changes the config: that with ELMo if the name begins with "elmo", or else that
without ELMo."""
