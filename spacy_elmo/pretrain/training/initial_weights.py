"""What a run starts from: a random network, or the weights of another run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from ...bilm.head import Head
from ...bilm.model import BiLM
from ...bilm.weights import Weights
from ...bilm.words.char_ids import BOS, EOS, UNK
from ..config import PretrainConfig
from ..corpus.prepared import Corpus


@dataclasses.dataclass
class Start:
    """A network and its head before the first step."""

    bilm: BiLM
    head: Head
    vocabulary: list[str]
    """Words of the head's rows."""
    card: dict[str, object]
    """What the weights' card should say of where they come from; empty if they are random."""


def given_weights(config: PretrainConfig) -> Weights | None:
    """The weights of `paths.init`, if it names any.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no weights file of ours, has another network than `[model]`, or no vocabulary though
            `training.vocab_size` is null.
    """
    path = config.paths.init
    if path is None:
        return None
    given = _read(path)
    asked, found = vars(config.bilm), vars(given.config)
    differing = [f"{k} = {asked[k]!r}, there {found[k]!r}" for k in asked if asked[k] != found[k]]
    if differing:
        raise ValueError(
            f"[model] is not the network of paths.init = {path}; set it to that of the file:\n  "
            + "\n  ".join(differing)
        )
    if config.training.vocab_size is None and not {BOS, EOS, UNK} <= set(given.vocabulary):
        raise ValueError(
            f"training.vocab_size = null: {path} has no head with a vocabulary to keep; give a number"
        )
    return given


def with_network(config: PretrainConfig) -> PretrainConfig:
    """The config, `[model]` being that of `paths.init` if it was left empty.

    Raises:
        OSError, ValueError: as of `given_weights`.
    """
    if config.model or config.paths.init is None:
        return config
    return config.model_copy(update={"model": _read(config.paths.init).config.to_dict()})


def _read(path: str) -> Weights:
    if not Path(path).exists():
        raise FileNotFoundError(f"No weights file at {path} (paths.init, --init)")
    return Weights.load(path)


def start(config: PretrainConfig, corpus: Corpus) -> Start:
    """Random weights by `training.seed`, or those of `paths.init`.

    A head's rows go by word: a word that `paths.init` knows keeps its row, any other gets a random one.

    Raises:
        OSError, ValueError: as of `given_weights`.
    """
    given = given_weights(config)
    if config.training.vocab_size is not None:
        vocabulary = corpus.vocabulary(config.training.vocab_size)
    else:
        assert given is not None, "checked by PretrainConfig"
        vocabulary = given.vocabulary
    torch.manual_seed(config.training.seed)
    bilm = BiLM(config.bilm)
    head = Head(len(vocabulary), config.bilm.projection)
    if given is None:
        return Start(bilm, head, vocabulary, {})
    bilm.load_state_dict(given.build_bilm().state_dict())
    if (known := given.build_head()) is not None:
        rows = {word: row for row, word in enumerate(given.vocabulary)}
        pairs = [(new, rows[word]) for new, word in enumerate(vocabulary) if word in rows]
        new, old = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
        with torch.no_grad():
            for mine, theirs in zip(head.parameters(), known.parameters(), strict=True):
                mine[new] = theirs[old]
    return Start(bilm, head, vocabulary, {"init": given.card})
