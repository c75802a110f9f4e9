"""What a run starts from: a random network, or the weights of another run."""

from __future__ import annotations

import dataclasses

import torch

from ..bilm.head import Head
from ..bilm.model import BiLM
from ..bilm.weights import Weights
from .config import PretrainConfig
from .corpus import Corpus


@dataclasses.dataclass
class Start:
    """A network and its head before the first step."""

    bilm: BiLM
    head: Head
    vocabulary: list[str]
    """Words of the head's rows."""
    card: dict[str, object]
    """What the weights' card should say of where they come from; empty if they are random."""


def start(config: PretrainConfig, corpus: Corpus) -> Start:
    """Random weights by `training.seed`, or those of `paths.init`.

    A head's rows go by word: a word that `paths.init` knows keeps its row, any other gets a random one.

    Raises:
        OSError: `paths.init` cannot be read.
        ValueError: it is no weights file of ours, has another network than `[model]`, or no vocabulary though
            `training.vocab_size` is null.
    """
    given = Weights.read(config.paths.init) if config.paths.init is not None else None
    if given is not None:
        _check_same_network(config, given)
    vocabulary = _vocabulary(config, corpus, given)
    torch.manual_seed(config.training.seed)
    bilm = BiLM(config.bilm)
    head = Head(len(vocabulary), config.bilm.projection)
    if given is None:
        return Start(bilm, head, vocabulary, {})
    bilm.load_state_dict(given.bilm().state_dict())
    if (known := given.head()) is not None:
        rows = {word: row for row, word in enumerate(given.vocabulary)}
        pairs = [(new, rows[word]) for new, word in enumerate(vocabulary) if word in rows]
        new, old = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
        with torch.no_grad():
            for mine, theirs in zip(head.parameters(), known.parameters(), strict=True):
                mine[new] = theirs[old]
    return Start(bilm, head, vocabulary, {"init": given.card})


def _check_same_network(config: PretrainConfig, given: Weights) -> None:
    asked, found = config.bilm.to_dict(), given.config.to_dict()
    differing = [f"{k} = {asked[k]!r}, there {found[k]!r}" for k in asked if asked[k] != found[k]]
    if differing:
        raise ValueError(
            f"[model] is not the network of paths.init = {config.paths.init}; set it to that of the file:\n  "
            + "\n  ".join(differing)
        )


def _vocabulary(config: PretrainConfig, corpus: Corpus, given: Weights | None) -> list[str]:
    if config.training.vocab_size is not None:
        return corpus.vocabulary(config.training.vocab_size)
    assert given is not None, "checked by PretrainConfig"
    if given.head() is None:
        raise ValueError(
            f"training.vocab_size = null: {config.paths.init} has no head, so no vocabulary to keep; give a number"
        )
    return given.vocabulary
