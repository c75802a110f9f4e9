"""Compatibility of a checkpoint with the run that resumes it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...digest import Digest
from ..corpus.prepared import Corpus


def digests(corpus: Corpus, vocabulary: Sequence[str]) -> dict[str, str]:
    """Return digests of what a checkpoint depends on: the ids of words, the order of sentences, and the words of the
    rows of the head."""
    return {
        "corpus": _digest(corpus.types, corpus.train.offsets),
        "vocabulary": _digest(vocabulary),
    }


def check_digests(state: Mapping[str, Any], expected: Mapping[str, str], checkpoint: Path) -> None:
    """Check that the state of a checkpoint has these digests.

    Raises:
        ValueError: it belongs to another corpus or vocabulary.
    """
    for name, digest in expected.items():
        if state[name] != digest:
            raise ValueError(
                f"The checkpoint in {checkpoint} belongs to another {name}, whose words have other ids. Give the run"
                f" its former {name}, or start in another folder"
            )


def warn_of_other_rounding(state: Mapping[str, Any], ranks: int) -> None:
    """Warn if the run was saved with another number of threads or processes, so that sums are rounded differently."""
    for name, now, remedy in (
        ("threads", torch.get_num_threads(), "OMP_NUM_THREADS"),
        ("ranks", ranks, "`torchrun --nproc-per-node`"),
    ):
        if state[name] != now:
            warnings.warn(
                f"The run was saved with {state[name]} {name} and continues with {now}, so sums are rounded differently"
                f" from those of an unbroken run. {remedy} sets the number",
                stacklevel=3,
            )


def _digest(words: Sequence[str], offsets: np.ndarray | None = None) -> str:
    digest = Digest("\n".join(words).encode("utf8", "surrogatepass"))
    if offsets is not None:
        digest.update(np.ascontiguousarray(offsets).tobytes())
    return digest.hexdigest()
