"""The perplexity of text files, whatever their size."""

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
from ..corpus.prepare import cut_files
from ..corpus.prepared import Sentences
from ..corpus.tokenize import DocumentTokenizer
from ..objective import Batcher
from .perplexity import NOTHING, Tally, tally

_CPU = torch.device("cpu")


def settings_of(card: Mapping[str, Any]) -> Prepare:
    """How the text that weights were trained on became words, by their card.

    Raises:
        ValueError: the card does not say, or names a tokenizer that is more than a language's own.
    """
    lang, tokenizer = card.get("language"), card.get("tokenizer")
    if tokenizer == "text as given":
        return Prepare(tokenized=True)
    if lang is None or tokenizer != f"spacy.blank({lang!r})":
        raise ValueError(
            f"The card of the weights says language {lang!r}, tokenizer {tokenizer!r}: that makes no words here. Give"
            " --lang for the tokenizer of a language, or --tokenized for text of words separated by spaces"
        )
    return Prepare(lang=lang)


def evaluate(
    weights: Weights, files: Iterable[Path], settings: Prepare, *, device: torch.device = _CPU
) -> Iterator[tuple[Path, Tally]]:
    """Score text files, one after the other, in memory that does not grow with them.

    Args:
        weights: with a head. Its vocabulary may stand in any order.
        settings: how text becomes words.

    Raises:
        ValueError: the weights have no head; a file cannot be read.
    """
    bilm, head = build_language_model(weights)
    bilm, head = bilm.to(device), head.to(device)
    cutter = DocumentTokenizer(settings)
    for file in files:
        total = NOTHING
        with contextlib.closing(cut_files([file], cutter, settings)) as pieces:
            for piece in pieces:
                sentences = Sentences(piece.words, np.append(0, np.cumsum(piece.lengths)))
                batcher = Batcher(bilm, piece.types, weights.vocabulary)
                total += tally(bilm, head, batcher, sentences)
        yield file, total
