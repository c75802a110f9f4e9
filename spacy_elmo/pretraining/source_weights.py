"""The weights files that a run starts from or imitates, and the network before the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from ..bilm.head import Head
from ..bilm.model import BiLM
from ..bilm.spelling import BOS, EOS, UNK, Spelling
from ..bilm.weights import Weights
from ..weight_names import find_weights
from .config import PretrainConfig
from .corpus import Corpus


class SourceWeights(NamedTuple):
    """The weights files that the config names."""

    initial: Weights | None = None
    """The weights of `paths.init`; None: random weights."""
    teacher: Weights | None = None
    """The weights of `paths.teacher`; None: no teacher."""


@dataclass
class InitialModel:
    """A network and its softmax head before the first training step."""

    bilm: BiLM
    head: Head
    vocabulary: list[str]
    """The word of each row of the softmax head."""
    card: dict[str, object]
    """Fields for the model card of the trained weights: the cards of the initial weights and of the teacher."""


def read_source_weights(config: PretrainConfig) -> tuple[PretrainConfig, SourceWeights]:
    """Read and check the weights of `paths.init` and `paths.teacher`. Return the config, whose section `[model]`
    describes the network of `paths.init` if it was empty, and the weights."""
    initial = teacher = None
    if config.paths.init is not None:
        config, initial = _read_initial(config, config.paths.init)
    if config.paths.teacher is not None:
        teacher = Weights.load(find_weights(config.paths.teacher))
        if not ({BOS, EOS, UNK} <= set(teacher.vocabulary) and teacher.has_head):
            raise ValueError(
                f"paths.teacher = {config.paths.teacher} has no softmax with <S>, </S> and <UNK>. Use a bundled biLM,"
                " model-best.safetensors of a run, or the file that `package --head` writes"
            )
        _check_language(config, "teacher", teacher)
        if teacher.config.spelling != config.bilm.spelling:
            raise ValueError(
                f"paths.teacher = {config.paths.teacher} has {_described(teacher.config.spelling)}, but [model] has"
                f" {_described(config.bilm.spelling)}. Use the values of the teacher"
            )
    return config, SourceWeights(initial, teacher)


def _read_initial(config: PretrainConfig, path: str) -> tuple[PretrainConfig, Weights]:
    initial = Weights.load(find_weights(path))
    if not config.model:
        config = config.model_copy(update={"model": initial.config.to_dict()})
    differences = config.bilm.differences(initial.config)
    mismatches = [f"{name} = {ours!r}, but {its!r} in the file" for name, ours, its in differences]
    if mismatches:
        raise ValueError(
            f"[model] differs from the network of paths.init = {path}. Use the values of the file:\n  "
            + "\n  ".join(mismatches)
        )
    _check_language(config, "init", initial)
    takes_vocabulary = config.training.vocab_size is None and config.paths.teacher is None
    if takes_vocabulary and not {BOS, EOS, UNK} <= set(initial.vocabulary):
        raise ValueError(
            f"training.vocab_size = null keeps the vocabulary of {path}, which has none: set a number of words"
        )
    return config, initial


def _check_language(config: PretrainConfig, name: str, weights: Weights) -> None:
    language = weights.card.get("language")
    if len({config.prepare.lang, language} - {None, "xx"}) > 1:
        raise ValueError(
            f"paths.{name} = {getattr(config.paths, name)} was trained on text of the language {language!r}, but"
            f" prepare.lang = {config.prepare.lang!r}. Set prepare.lang (`--prepare.lang`) to {language!r}, or to 'xx'"
            " for a tokenizer of any language"
        )


def run_vocabulary(config: PretrainConfig, corpus: Corpus, sources: SourceWeights) -> list[str]:
    """Return the word of each softmax class: the most frequent words of the corpus, or, if
    `training.vocab_size` is null, the vocabulary of the teacher or of the initial weights."""
    if config.training.vocab_size is not None:
        return corpus.vocabulary(config.training.vocab_size)
    weights = sources.teacher or sources.initial
    assert weights is not None, "checked by PretrainConfig"
    return weights.vocabulary


def initial_model(config: PretrainConfig, corpus: Corpus, sources: SourceWeights) -> InitialModel:
    """Return a network with the weights of `paths.init`, or with random weights (seed: `training.seed`).

    The softmax head has one row of weights per word. The rows of words that are in the vocabulary of
    `paths.init` are copied. The other rows are random.
    """
    if corpus.lang != config.prepare.lang:
        raise ValueError(
            f"The corpus was prepared with prepare.lang = {corpus.lang!r}, but the config has prepare.lang ="
            f" {config.prepare.lang!r}. Use the [prepare] section with which the corpus was prepared"
        )
    if corpus.spelling != config.bilm.spelling:
        raise ValueError(
            f"The corpus was prepared with {_described(corpus.spelling)}, but [model] has"
            f" {_described(config.bilm.spelling)}. Prepare the text again, or change [model] unicode_form and replace"
        )
    vocabulary = run_vocabulary(config, corpus, sources)
    torch.manual_seed(config.training.seed)
    bilm = BiLM(config.bilm)
    head = Head(len(vocabulary), config.bilm.projection)
    # The cards contain sources and licences.
    cards = {"init": sources.initial, "teacher": sources.teacher}
    card: dict[str, object] = {name: w.card for name, w in cards.items() if w is not None}
    if (initial := sources.initial) is None:
        return InitialModel(bilm, head, vocabulary, card)
    bilm.load_state_dict(initial.build_bilm().state_dict())
    if (initial_head := initial.build_head()) is not None:
        _copy_rows(initial_head, initial.vocabulary, head, vocabulary)
    return InitialModel(bilm, head, vocabulary, card)


def _described(spelling: Spelling) -> str:
    return f"unicode_form = {spelling.form!r}, replace = {dict(spelling.replace)!r:.200}"


@torch.no_grad()
def _copy_rows(source: Head, source_words: list[str], target: Head, words: list[str]) -> None:
    """Copy the rows of all words that two softmax heads have in common from `source` to `target`."""
    rows = {word: row for row, word in enumerate(source_words)}
    pairs = [(row, rows[word]) for row, word in enumerate(words) if word in rows]
    new, old = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    for values, initial_values in zip(target.parameters(), source.parameters(), strict=True):
        values[new] = initial_values[old]
