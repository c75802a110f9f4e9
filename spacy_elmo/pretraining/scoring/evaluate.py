"""Perplexity of text files of any size."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...bilm.likelihood import build_language_model
from ...bilm.weights import Weights
from ..config import Prepare
from ..corpus.prepare import tokenize_files
from ..corpus.prepared import Sentences
from ..corpus.tokenize import DocumentTokenizer
from ..objective import Batcher
from .perplexity import NOTHING, Tally, tally

_CPU = torch.device("cpu")


def settings_of(card: Mapping[str, Any]) -> Prepare:
    """Return the settings by which the training text of weights was tokenized, from their card.

    Raises:
        ValueError: the card does not name a tokenizer, or names one that is not the default of a language.
    """
    lang, tokenizer = card.get("language"), card.get("tokenizer")
    if tokenizer == "text as given":
        return Prepare(tokenized=True)
    if lang is None or tokenizer != f"spacy.blank({lang!r})":
        raise ValueError(
            f"The card of the weights has language {lang!r} and tokenizer {tokenizer!r}, from which no tokenizer can be"
            " created here. Set lang (`--lang`) for the tokenizer of a language, or tokenized (`--tokenized`) for text"
            " of words separated by spaces"
        )
    return Prepare(lang=lang)


def evaluate(
    weights: Weights, files: Iterable[Path], settings: Prepare, *, device: torch.device = _CPU
) -> Iterator[tuple[Path, Tally]]:
    """Yield the scores of text files, in memory that does not depend on their size.

    Args:
        weights: weights with a head, with its vocabulary in any order.
        settings: the settings by which text is tokenized.

    Raises:
        ValueError: the weights have no head; a file cannot be read.
    """
    bilm, head = build_language_model(weights)
    bilm, head = bilm.to(device), head.to(device)
    tokenizer = DocumentTokenizer(settings)
    for file in files:
        total = NOTHING
        with contextlib.closing(tokenize_files([file], tokenizer)) as texts:
            for text in texts:
                sentences = Sentences(text.words, np.append(0, np.cumsum(text.lengths)))
                batcher = Batcher(bilm, text.types, weights.vocabulary)
                total += tally(bilm, head, batcher, sentences)
        yield file, total
