"""Estimation of the initial LSTM state of a converted model."""

from __future__ import annotations

import dataclasses
from itertools import islice
from pathlib import Path

from ..bilm.start_state import mean_start_state
from .result import Conversion

# The largest public models need minutes for this many sentences. More would hardly make the mean more exact.
MAX_SENTENCES = 2000


def with_start(conversion: Conversion, text: str | Path) -> Conversion:
    """Add an initial LSTM state to a converted model. The component elmo uses this state if `start` is
    "warm".

    The state is the mean of the LSTM states after the sentences of a text (see `mean_start_state`).

    Args:
        conversion: the converted model.
        text: a text file with one sentence per line, and with spaces between words. The text should be
            similar to the training text of the model. Only the first 2,000 lines that are not blank are read.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8 text, the file has too few sentences, or the values of the state
            exceed the range of the weights' data type.
    """
    text, weights = Path(text), conversion.weights
    dtype = next(iter(weights.tensors.values())).dtype
    try:
        with text.open(encoding="utf-8-sig") as file:
            lines = (words for line in file if (words := line.split()))
            sentences = list(islice(lines, MAX_SENTENCES))
        start = mean_start_state(weights.build_bilm(), sentences).to(dtype)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    if not (start.h.isfinite().all() and start.c.isfinite().all()):
        raise ValueError(f"The start state estimated on {text} exceeds the range of {dtype}")
    source = f"{len(sentences):,} sentences of {text.name}"
    warm = dataclasses.replace(weights, start_state=start, card={**weights.card, "start": source})
    return Conversion(
        warm, [*conversion.files, text], [*conversion.notes, f"start state: mean over {source}"]
    )
