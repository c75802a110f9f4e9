"""The pipeline that reads a corpus, and what tells it from another."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import spacy
from spacy.language import Language

from ..pipeline.bundled import bundled_names
from ..pipeline.component import Elmo
from ..pipeline.reading.encoder import shim_of
from .blank import ANY_LANGUAGE, blank_pipeline


def load_pipeline(
    source: str, *, lang: str | None = None, tokenized: bool = False
) -> tuple[Language, list[str]]:
    """A saved or installed pipeline; or a blank one around a weights file.

    Args:
        source: name or folder of a pipeline, name of a bundled biLM, or a weights file.
        lang: language of a blank one, if the weights' card does not know it or another one is wanted.
        tokenized: there is nothing to tokenize, so the language is of no weight and may be unknown.

    Returns:
        The pipeline, and remarks for the user.

    Raises:
        OSError: there is neither.
        ValueError: it cannot be loaded; a pipeline has a language already; otherwise as of `blank_pipeline`.
    """
    path = Path(source)
    if source in bundled_names() or path.suffix == ".safetensors" or path.is_file():
        if tokenized:
            return blank_pipeline(source, lang, fallback=ANY_LANGUAGE)[0], []
        return blank_pipeline(source, lang)
    if lang is not None:
        raise ValueError(f"--lang {lang} is for a weights file; {source!r} is a pipeline")
    try:
        return spacy.load(source), []
    except OSError as error:
        names = ", ".join(bundled_names())
        raise OSError(
            f"No pipeline {source!r}: it is neither an installed package nor a folder of a saved pipeline, nor the"
            f" name of a bundled biLM ({names}), nor a weights file ({error})"
        ) from error


def elmo_of(nlp: Language) -> tuple[str, Elmo]:
    """The name of a pipeline's elmo, and the component.

    Raises:
        ValueError: it has none, or several.
    """
    found = [(name, pipe) for name, pipe in nlp.pipeline if isinstance(pipe, Elmo)]
    if len(found) != 1:
        names = ", ".join(nlp.pipe_names) or "none"
        what = f"{len(found)} elmo components" if found else "no elmo component"
        raise ValueError(
            f"The pipeline has {what} (components: {names}). Give one with a single elmo that is not disabled, or a"
            " weights file"
        )
    return found[0]


def identity(nlp: Language) -> dict[str, str]:
    """What the vectors of a pipeline follow from: its language, its weights, and its config up to elmo."""
    name, elmo = elmo_of(nlp)
    config = nlp.config
    names = nlp.pipe_names[: nlp.pipe_names.index(name) + 1]
    components = {pipe: dict(config["components"][pipe]) for pipe in names}
    # The weights are known by what they are, not by where they lie.
    del components[name]["weights"]
    # It changes no vector, and older folders and indexes were written without it.
    components[name].pop("learn_rate_factor", None)
    stated = json.dumps([config["nlp"]["tokenizer"], components], sort_keys=True)
    return {
        "lang": str(nlp.lang),
        "weights": shim_of(elmo.model).checksum(),
        "pipeline": hashlib.blake2b(stated.encode(), digest_size=16).hexdigest(),
    }
