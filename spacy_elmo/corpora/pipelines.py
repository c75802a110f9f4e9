"""Pipelines that process a corpus: loading, their elmo, and a fingerprint of what their vectors depend on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import spacy
from spacy.language import Language

from ..catalogue.weight_names import known_names
from ..digest import json_digest
from ..pipeline.component import Elmo
from ..pipeline.encode.encoder import shim_of
from .blank import ANY_LANGUAGE, blank_pipeline

LayerSelection: TypeAlias = Literal["all", "average", "top"]
"""Layers of the biLM to keep: all of them, their average, or the last one."""
_WITHOUT_EFFECT = (
    "frozen", "trainable", "unfreeze_at", "learn_rate_factor", "max_batch_tokens", "cache_mb", "cache_dir", "hooks",
)  # fmt: skip
"""Options of elmo on which no vector depends."""


def load_pipeline(
    source: str, *, lang: str | None = None, tokenized: bool = False
) -> tuple[Language, list[str]]:
    """Load a saved or installed pipeline, or make a blank one around weights.

    Args:
        source: name or folder of a pipeline, name of a bundled or installed biLM, or path of a weights file.
        lang: language of a blank pipeline, if the weights' card does not name it or names another one.
        tokenized: the text is tokenized already, so the language does not matter and may be unknown.

    Returns:
        The pipeline, and warnings for the user.

    Raises:
        OSError: there is neither a pipeline nor a weights file of this name.
        ValueError: it cannot be loaded; `lang` is set for a pipeline, which has its language; see `blank_pipeline`.
    """
    path = Path(source)
    if source in known_names() or path.suffix == ".safetensors" or path.is_file():
        if tokenized:
            return blank_pipeline(source, lang, fallback=ANY_LANGUAGE)[0], []
        return blank_pipeline(source, lang)
    if lang is not None:
        raise ValueError(
            f"lang = {lang} (`--lang`) can be set for a weights file only; {source!r} is a pipeline"
        )
    try:
        return spacy.load(source), []
    except OSError as error:
        names = ", ".join(known_names())
        raise OSError(
            f"No pipeline {source!r}: it is neither an installed package nor the folder of a saved pipeline, nor the"
            f" name of a bundled biLM ({names}), nor a weights file ({error})"
        ) from error


def find_elmo(nlp: Language) -> tuple[str, Elmo]:
    """Return the name of a pipeline's elmo, and the component.

    Raises:
        ValueError: the pipeline has none, or several.
    """
    elmos = [(name, pipe) for name, pipe in nlp.pipeline if isinstance(pipe, Elmo)]
    if len(elmos) != 1:
        names = ", ".join(nlp.pipe_names) or "none"
        count = f"{len(elmos)} elmo components" if elmos else "no elmo component"
        raise ValueError(
            f"The pipeline has {count} (components: {names}). Use a pipeline with exactly one elmo that is not"
            " disabled, or a weights file"
        )
    return elmos[0]


def elmo_and_later(nlp: Language) -> list[str]:
    """Return the names of a pipeline's elmo and of the components after it, in order.

    Raises:
        ValueError: see `find_elmo`.
    """
    name, _ = find_elmo(nlp)
    return list(nlp.pipe_names[nlp.pipe_names.index(name) :])


def fingerprint(nlp: Language) -> dict[str, str]:
    """Return what the vectors of a pipeline depend on: its language, digests of its weights and its config up to elmo.

    Raises:
        ValueError: see `find_elmo`.
    """
    name, elmo = find_elmo(nlp)
    config = nlp.config
    names = nlp.pipe_names[: nlp.pipe_names.index(name) + 1]
    components = {pipe: dict(config["components"][pipe]) for pipe in names}
    # The digest of the weights identifies them; the path of their file does not.
    del components[name]["weights"]
    for option in _WITHOUT_EFFECT:
        del components[name][option]
    return {
        "lang": str(nlp.lang),
        "weights": shim_of(elmo.model).checksum(),
        "pipeline": json_digest([config["nlp"]["tokenizer"], components]),
    }
