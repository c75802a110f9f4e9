"""Stages of a run, each given to `notify` of `pretrain`; its progress is what `pretrain` yields."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..bilm.weights import Weights
    from .config import Paths, PretrainConfig
    from .corpus.prepared import Corpus
    from .training.log import Progress


@dataclass(frozen=True)
class FolderReady:
    """The folder of the run is locked and checked."""

    has_checkpoint: bool
    """True if the run continues from a checkpoint in the folder."""
    replaced: Path | None
    """The run that this one replaces, which is kept until this one is complete."""


@dataclass(frozen=True)
class Preparing:
    """The raw text is about to be tokenized."""

    paths: Paths
    """The paths of the text."""


@dataclass(frozen=True)
class CorpusReady:
    """The prepared corpus is there, and training begins."""

    config: PretrainConfig
    """The settings, in which an empty `[model]` is replaced by the network of the initial weights."""
    corpus: Corpus
    initial: Weights | None
    """The weights of `paths.init`; None: random ones."""


@dataclass(frozen=True)
class Finished:
    """A limit has ended the run, and its weights are written."""

    last: Progress | None
    """The last row of the log; None: the run was complete before."""


Stage = FolderReady | Preparing | CorpusReady | Finished
