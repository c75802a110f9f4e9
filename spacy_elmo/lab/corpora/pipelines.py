"""Functions that load a pipeline, find the elmo component, and compute a fingerprint of a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import spacy
from spacy.language import Language

from ...digest import Digest, json_digest
from ...pipeline.component import Elmo
from ...pipeline.encode.encoder import shim_of
from ...weight_names import known_names
from .blank import ANY_LANGUAGE, blank_pipeline

LayerSelection: TypeAlias = Literal["all", "average", "top"]
"""Option that selects layers of the biLM: all layers, their average, or the top (last) layer."""
_WITHOUT_EFFECT = (
    "frozen", "trainable", "unfreeze_at", "learn_rate_factor", "max_batch_tokens", "cache_mb", "cache_dir", "hooks",
)  # fmt: skip
"""Options of the component `elmo` that do not change the vectors of a Doc."""


def load_pipeline(
    source: str, *, lang: str | None = None, tokenized: bool = False
) -> tuple[Language, list[str]]:
    """Load a saved or installed pipeline, or create a blank pipeline with the weights of a biLM.

    Args:
        source: name or folder of a pipeline, name of a bundled or installed biLM, or path of a weights file.
        lang: language code of a blank pipeline. Default: the language in the card (metadata) of the weights
            file.
        tokenized: True if the text is already tokenized. The language can then be unknown.

    Returns:
        The pipeline, and warnings for the user.

    Raises:
        OSError: no pipeline or weights have this name or path.
        ValueError: the pipeline cannot be loaded, or `lang` is set for a saved or installed pipeline. See
            also `blank_pipeline`.
    """
    path = Path(source)
    if source in known_names() or path.suffix == ".safetensors" or path.is_file():
        if tokenized:
            return blank_pipeline(source, lang, fallback=ANY_LANGUAGE)[0], []
        return blank_pipeline(source, lang)
    if lang is not None:
        raise ValueError(
            f"lang = {lang} (`--lang`) can only be set for a weights file. The pipeline {source!r} has its own language"
        )
    return saved_pipeline(source), []


def saved_pipeline(source: str) -> Language:
    """Load a saved or installed pipeline.

    Raises:
        OSError: there is no such pipeline.
        ValueError: the pipeline cannot be loaded.
    """
    try:
        return spacy.load(source)
    except (
        ImportError,
        ValueError,
    ) as error:  # for example, the library of its tokenizer is missing
        raise ValueError(f"Cannot load the pipeline {source!r}: {str(error).strip()}") from error
    except OSError as error:
        names = ", ".join(known_names())
        raise OSError(
            f"Cannot find {source!r}. Give an installed pipeline, the folder of a saved pipeline, a weights file"
            f" (.safetensors), or the name of a biLM ({names}). spaCy reports: {error}"
        ) from error


def find_elmo(nlp: Language) -> tuple[str, Elmo]:
    """Return the name of the elmo component of a pipeline, and the component.

    Raises:
        ValueError: the pipeline has no elmo component, or has more than one.
    """
    elmos = [(name, pipe) for name, pipe in nlp.pipeline if isinstance(pipe, Elmo)]
    if len(elmos) != 1:
        names = ", ".join(nlp.pipe_names) or "none"
        count = f"{len(elmos)} elmo components" if elmos else "no elmo component"
        raise ValueError(
            f"The pipeline has {count} (components: {names}). Use a pipeline with exactly one enabled elmo component,"
            " or a weights file"
        )
    return elmos[0]


def elmo_and_later(nlp: Language) -> list[str]:
    """Return the names of the elmo component and of all later components of a pipeline, in order.

    Raises:
        ValueError: the pipeline does not have exactly one elmo component.
    """
    name, _ = find_elmo(nlp)
    return list(nlp.pipe_names[nlp.pipe_names.index(name) :])


def fingerprint(nlp: Language) -> dict[str, str]:
    """Return values that identify the vectors of a pipeline: the language, a digest of the weights, and a
    digest of the tokenizer and of the components up to elmo, without options that change no vector.

    Raises:
        ValueError: the pipeline does not have exactly one elmo component.
    """
    name, elmo = find_elmo(nlp)
    config = nlp.config
    names = nlp.pipe_names[: nlp.pipe_names.index(name) + 1]
    components = {pipe: dict(config["components"][pipe]) for pipe in names}
    # The digest of the weights identifies them. The path of their file may change.
    del components[name]["weights"]
    for option in _WITHOUT_EFFECT:
        del components[name][option]
    # The tokenizer can have rules, and a component weights, that are not in the config. Components without weights are
    # left out, because the bytes of a sentencizer depend on the process.
    parts: list[Any] = [nlp.tokenizer, *(nlp.get_pipe(pipe) for pipe in names[:-1])]
    data = [
        Digest(part.to_bytes(exclude=["vocab"])).hexdigest()
        for part in parts
        if hasattr(part, "to_bytes") and getattr(part, "is_trainable", True)
    ]
    return {
        "lang": str(nlp.lang),
        "weights": shim_of(elmo.model).checksum(),
        "pipeline": json_digest([config["nlp"]["tokenizer"], components, data]),
    }
