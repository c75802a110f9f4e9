"""Pipelines with an elmo component: loading one, finding its elmo, and what its vectors depend on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import spacy
from spacy.language import Language

from ..bilm.weights import Weights
from ..pipeline.component import Elmo
from ..pipeline.encode.encoder import shim_of
from ..pretraining.config import Prepare
from ..weight_names import find_weights, known_names

LayerSelection: TypeAlias = Literal["all", "average", "top"]
"""Option that selects layers of the biLM: all layers, their average, or the top (last) layer."""
_ANY_LANGUAGE = "xx"


def load_pipeline(source: str, *, lang: str | None = None, tokenized: bool = False) -> Language:
    """Load a saved or installed pipeline, or create a blank pipeline with the weights of a biLM.

    Args:
        source: name or folder of a pipeline, name of a bundled or installed biLM, or path of a weights file.
        lang: language code of a blank pipeline. Default: the language in the card (metadata) of the weights
            file.
        tokenized: True if the text is already tokenized. The language can then be unknown.
    """
    if is_weights(source):
        return blank_pipeline(source, lang, tokenized=tokenized)
    if lang is not None:
        raise ValueError(
            f"lang = {lang} (`--lang`) can only be set for a weights file. The pipeline {source!r} has its own language"
        )
    return saved_pipeline(source)


def is_weights(source: str) -> bool:
    """Return True if a source is a biLM (its name, or a weights file), and no pipeline."""
    path = Path(source)
    return source in known_names() or path.suffix == ".safetensors" or path.is_file()


def saved_pipeline(source: str) -> Language:
    """Load a saved or installed pipeline."""
    try:
        return spacy.load(source)
    except (ImportError, ValueError) as error:  # such as a missing library of its tokenizer
        raise ValueError(f"Cannot load the pipeline {source!r}: {str(error).strip()}") from error
    except OSError as error:
        names = ", ".join(known_names())
        raise OSError(
            f"Cannot find {source!r}. Give an installed pipeline, the folder of a saved pipeline, a weights file"
            f" (.safetensors), or the name of a biLM ({names}). spaCy reports: {error}"
        ) from error


def blank_pipeline(source: str, lang: str | None = None, *, tokenized: bool = False) -> Language:
    """Return a blank pipeline that contains only the component elmo. The component loads the weights at its
    first use. Warn if its tokenizer is not that of the training text; `elmo` warns of another language.

    Args:
        source: path of a weights file, or name of a bundled or installed biLM.
        lang: language code of the pipeline. Default: the language in the card (metadata) of the weights file.
        tokenized: True if the text is already tokenized. The language can then be unknown.
    """
    path = find_weights(source)
    card = Weights.load_card(path)
    lang = lang or card.get("language") or (_ANY_LANGUAGE if tokenized else None)
    if lang is None:
        raise ValueError(
            f"{path} does not record the language of its weights. Set lang (`--lang`), for example to en, or to"
            f" {_ANY_LANGUAGE} for spaCy's multi-language tokenizer"
        )
    try:
        nlp = spacy.blank(lang)
    except (ImportError, ValueError) as error:  # spaCy raises ImportError for an unknown language
        raise ValueError(
            f"spaCy cannot create a pipeline for the language {lang!r}: {str(error).strip()}"
        ) from error
    # The limit protects the memory of parsers. A line of a text file can be longer.
    nlp.max_length = 1 << 30
    weights = source if source in known_names() else str(path.absolute())
    nlp.add_pipe("elmo", config={"weights": weights})
    trained, tokenizer = card.get("tokenizer"), Prepare(lang=lang).description
    same_language = card.get("language") in (None, lang) or _ANY_LANGUAGE in (
        lang,
        card["language"],
    )
    if same_language and not tokenized and trained not in (None, tokenizer):
        warnings.warn(
            f"The weights were trained with another tokenizer ({trained}) than this pipeline has ({tokenizer})."
            " Vectors are best if text is tokenized as in training. You can set the tokenizer in the section"
            " [nlp.tokenizer] of a config",
            stacklevel=2,
        )
    return nlp


def find_elmo(nlp: Language) -> tuple[str, Elmo]:
    """Return the name of the elmo component of a pipeline, and the component."""
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
    """Return the names of the elmo component and of all later components of a pipeline, in order."""
    name, _ = find_elmo(nlp)
    return list(nlp.pipe_names[nlp.pipe_names.index(name) :])


def vector_settings(nlp: Language) -> dict[str, Any]:
    """Return what the vectors of a pipeline depend on, in JSON types: its language (`lang`), the digest of its
    biLM (`weights`), and elmo's option `get_spans`.
    """
    name, elmo = find_elmo(nlp)
    return {
        "lang": nlp.lang,
        "weights": shim_of(elmo.model).digest(),
        "get_spans": nlp.config["components"][name]["get_spans"],
    }


def source_of(nlp: Language, source: str, *, lang: str | None, tokenized: bool) -> dict[str, Any]:
    """Return the metadata of an index, in JSON types, with which `load_again` loads the pipeline of the index."""
    path = Path(source)
    # `load_pipeline` also prefers the name to a folder with this name in the working directory.
    is_name = source in known_names() or spacy.util.is_package(source)
    return {
        "source": str(path.absolute()) if path.exists() and not is_name else source,
        "lang": lang,
        "tokenized": tokenized,
        "pipeline": vector_settings(nlp),
    }


def load_again(about: Mapping[str, Any], source: str | None = None) -> Language:
    """Load the pipeline that has computed the vectors of an index, for queries.

    Args:
        about: metadata of the index, from `source_of`, or from `embed`, which does not know the `source`.
        source: new location of the pipeline, if it was moved.
    """
    source = source or about.get("source")
    if source is None or "pipeline" not in about:
        raise ValueError(
            "The index does not name its pipeline. Give it (`--pipeline`), or search the index in Python"
        )
    nlp = load_pipeline(source, lang=about.get("lang"), tokenized=about.get("tokenized", False))
    if about["pipeline"] != vector_settings(nlp):
        raise ValueError(
            f"{source} is not the pipeline of the index, or has changed, so its vectors cannot be compared with the"
            " vectors in the index. Give the pipeline of the index, or make the index again"
        )
    return nlp
