"""Creation of blank pipelines that contain only the component elmo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import spacy
from spacy.language import Language

from ...bilm.weights import Weights
from ...weight_names import find_weights, known_names

ANY_LANGUAGE = "xx"


def blank_pipeline(
    source: str, lang: str | None = None, *, fallback: str | None = None
) -> tuple[Language, list[str]]:
    """Return a blank pipeline that contains only the component elmo. The component loads the weights at its
    first use.

    Args:
        source: path of a weights file, or name of a bundled or installed biLM.
        lang: language code of the pipeline. Default: the language in the card (metadata) of the weights file.
        fallback: language code if `lang` is None and the card contains no language.

    Returns:
        The pipeline, and warnings for the user. The config of the pipeline contains the name of the weights,
        or the absolute path of the file.

    Raises:
        OSError: the file does not exist.
        ValueError: the file is not a weights file, the language is not known, or spaCy does not support the
            language.
    """
    path = find_weights(source)
    card = Weights.load(path).card
    lang = lang or card.get("language") or fallback
    if lang is None:
        raise ValueError(
            f"{path} does not record the language of its weights. Set lang (`--lang`), for example to en, or to"
            f" {ANY_LANGUAGE} for spaCy's multi-language tokenizer"
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
    return nlp, _tokenizer_warnings(card, lang)


def _tokenizer_warnings(card: Mapping[str, Any], lang: str) -> list[str]:
    training_tokenizer = card.get("tokenizer")
    tokenizer = f"spacy.blank({lang!r})"
    if training_tokenizer in (None, tokenizer):
        return []
    return [
        f"The weights were trained with another tokenizer ({training_tokenizer}) than this pipeline has ({tokenizer})."
        " Vectors are best if text is tokenized as in training. You can set the tokenizer in the section"
        " [nlp.tokenizer] of a config"
    ]
