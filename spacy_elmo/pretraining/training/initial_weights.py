"""Initial weights of a run: random ones, or those of a file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from ...bilm.head import Head
from ...bilm.model import BiLM
from ...bilm.weights import Weights
from ...bilm.words.char_ids import BOS, EOS, UNK
from ...bilm.words.spelling import Spelling
from ...catalogue.weight_names import find_weights
from ..config import PretrainConfig
from ..corpus.prepared import Corpus


@dataclasses.dataclass
class InitialModel:
    """A network and its head before the first step."""

    bilm: BiLM
    head: Head
    vocabulary: list[str]
    """Words of the rows of the head."""
    card: dict[str, object]
    """Origin of the weights, for the card of the trained weights; empty if they are random."""


def read_initial_weights(
    config: PretrainConfig, resumed: Path | None = None
) -> tuple[PretrainConfig, Weights | None]:
    """Read and check the weights of `paths.init`.

    Args:
        resumed: folder of a run that is resumed. Its own weights have the shape, the vocabulary and the card of the
            initial ones, so the file of `paths.init` may be gone.

    Returns:
        The config, in which an empty `[model]` is replaced by the network of the weights; and the weights, None if
        `paths.init` is null.

    Raises:
        OSError: there is no such file or biLM, or the file cannot be read.
        ValueError: it is not a weights file of this package, its network is not that of `[model]`, it is of another
            language than `prepare.lang`, or it has no vocabulary although `training.vocab_size` is null.
    """
    path = config.paths.init
    if path is None:
        return config, None
    initial = _read(path, resumed)
    if not config.model:
        config = config.model_copy(update={"model": initial.config.to_dict()})
    differences = config.bilm.differences(initial.config)
    mismatches = [f"{name} = {ours!r}, in the file {its!r}" for name, ours, its in differences]
    if mismatches:
        raise ValueError(
            f"[model] is not the network of paths.init = {path}; set it to that of the file:\n  "
            + "\n  ".join(mismatches)
        )
    languages = {config.prepare.lang, initial.card.get("language")} - {None, "xx"}
    if len(languages) > 1:
        raise ValueError(
            f"paths.init = {path} was trained on text of the language {initial.card['language']!r}, and prepare.lang ="
            f" {config.prepare.lang!r}: set it to {initial.card['language']!r} (`--prepare.lang`), or to 'xx' for a"
            " tokenizer of any language"
        )
    if config.training.vocab_size is None and not {BOS, EOS, UNK} <= set(initial.vocabulary):
        raise ValueError(
            f"training.vocab_size = null: {path} has no head with a vocabulary to keep; set a number"
        )
    return config, initial


def _read(path: str, resumed: Path | None) -> Weights:
    try:
        return Weights.load(find_weights(path))
    except (OSError, ValueError):
        # `model-best` is written before the first checkpoint, unless the perplexity of the initial weights is infinite.
        own = resumed / "model-best.safetensors" if resumed is not None else None
        if own is None or not own.exists():
            raise
        weights = Weights.load(own)
        card = weights.card.get("init")
        # Otherwise the run started without `paths.init`, or its own card has another "init".
        if not isinstance(card, dict):
            raise
        return dataclasses.replace(weights, card=card)


def run_vocabulary(config: PretrainConfig, corpus: Corpus, initial: Weights | None) -> list[str]:
    """Return the words of the softmax: the most frequent ones of the corpus, or those of the initial weights."""
    if config.training.vocab_size is not None:
        return corpus.vocabulary(config.training.vocab_size)
    assert initial is not None, "checked by PretrainConfig"
    return initial.vocabulary


def initial_model(config: PretrainConfig, corpus: Corpus, initial: Weights | None) -> InitialModel:
    """Return a network with random weights from `training.seed`, or with those of `paths.init`.

    A word in the vocabulary of `paths.init` keeps its row in the head; the row of any other word is random.

    Args:
        initial: the weights of `paths.init`; None: random ones.

    Raises:
        ValueError: the words of the corpus are spelled by another rule.
    """
    if corpus.spelling != config.bilm.spelling:
        raise ValueError(
            f"The corpus was prepared with {_described(corpus.spelling)}, and the network is to be trained with"
            f" {_described(config.bilm.spelling)}. Prepare the text again, or change [model] unicode_form and replace"
        )
    vocabulary = run_vocabulary(config, corpus, initial)
    torch.manual_seed(config.training.seed)
    bilm = BiLM(config.bilm)
    head = Head(len(vocabulary), config.bilm.projection)
    if initial is None:
        return InitialModel(bilm, head, vocabulary, {})
    bilm.load_state_dict(initial.build_bilm().state_dict())
    if (initial_head := initial.build_head()) is not None:
        _copy_rows(initial_head, initial.vocabulary, head, vocabulary)
    return InitialModel(bilm, head, vocabulary, {"init": initial.card})


def _described(spelling: Spelling) -> str:
    return f"unicode_form = {spelling.form!r}, replace = {dict(spelling.replace)!r:.200}"


@torch.no_grad()
def _copy_rows(source: Head, source_words: list[str], target: Head, words: list[str]) -> None:
    """Copy the rows of the words that both heads have."""
    rows = {word: row for row, word in enumerate(source_words)}
    pairs = [(row, rows[word]) for row, word in enumerate(words) if word in rows]
    new, old = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    for values, initial_values in zip(target.parameters(), source.parameters(), strict=True):
        values[new] = initial_values[old]
