"""Settings of a pretraining run, with one class per section of the `.cfg` file."""

from __future__ import annotations

import configparser
import copy
import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from confection import Config
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from ..bilm.config import BiLMConfig
from ..text.reading import text_files


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _convert(cls, value: Any, info: ValidationInfo) -> Any:
        # On the command line `--training.max_steps` without its value is true, which pydantic would convert to 1.
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and annotation is not bool:
            raise ValueError(f"must not be {str(value).lower()}; on the command line, give a value")
        return os.fspath(value) if isinstance(value, os.PathLike) else value


class Paths(_Section):
    """Paths of the text and of other weights."""

    raw_text: str | None = None
    """Training text in UTF-8: a file, a folder or a glob pattern (docs/pretrain.md#text). Required unless you set
    `corpus`."""
    dev_text: str | None = None
    """Held-out text, in the same formats. null: 1 % of the documents of `raw_text`, at least 100 sentences, selected by
    a seeded hash."""
    corpus: str | None = None
    """Output folder of `prepare`, which replaces `raw_text`, `dev_text` and `[prepare]`. null: `pretrain` first
    prepares `raw_text` in the subfolder `corpus` of its output folder."""
    init: str | None = None
    """Initial weights: a weights file, or the name of a bundled or installed biLM (`--init`). null: random weights.

    `[model]` must describe its network. The rows of its head are copied for all words that are in both vocabularies."""
    teacher: str | None = None
    """A larger biLM whose predictions the run imitates (docs/pretrain_further.md#a-smaller-model): a weights file with
    a softmax, or the name of a bundled biLM. Needs `vocab_size = null` and a number of `negatives`."""

    def text_files(self) -> dict[str, list[Path]]:
        """Return {path or pattern in the setting: text files} for `raw_text` and, if it is given, `dev_text`."""
        if self.raw_text is None:
            raise ValueError(
                "paths.raw_text is missing: set it to a file, a directory or a glob pattern"
            )
        sources = (self.raw_text, self.dev_text)
        return {source: text_files(source) for source in sources if source is not None}


class Prepare(_Section):
    """Settings for splitting text into sentences and words."""

    lang: str = "en"
    """Language of the spaCy tokenizer."""
    tokenizer: dict[str, Any] | None = None
    """The `[nlp.tokenizer]` block of the pipelines that will use the weights. null: the tokenizer of the language."""
    tokenized: bool = False
    """The text is already tokenized: spaces between words, one sentence per line."""
    n_process: int = Field(default=1, ge=-1)
    """Number of processes that tokenize. -1: one per core. It does not change the result."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of the selection of held-out documents."""

    @field_validator("n_process")
    @classmethod
    def _refuse_zero(cls, value: int) -> int:
        if value == 0:
            raise ValueError("must be at least 1, or -1 for one process per core")
        return value

    @property
    def description(self) -> str:
        """Description of the tokenizer for the model card in the weights file."""
        if self.tokenized:
            return "text as given"
        name = f"spacy.blank({self.lang!r})"
        return name if self.tokenizer is None else f"{name} with nlp.tokenizer = {self.tokenizer}"

    @classmethod
    def of_card(cls, card: Mapping[str, Any]) -> Prepare:
        """Return settings for the tokenizer that a model card names."""
        lang, tokenizer = card.get("language"), card.get("tokenizer")
        for settings in (cls(tokenized=True), *([cls(lang=lang)] if lang else [])):
            if settings.description == tokenizer:
                return settings
        raise ValueError(
            f"No tokenizer can be created from the card of the weights, which has language {lang!r} and tokenizer"
            f" {tokenizer!r}. Set lang (`--lang`) to use the tokenizer of a language, or tokenized (`--tokenized`) if"
            " the words of the text are separated by spaces"
        )


_LIMITS = ("max_steps", "max_epochs", "max_tokens", "max_minutes")


class Training(_Section):
    """Settings of the optimization. At least one of the four limits (`max_...`) is required. The run ends at the first
    limit that it reaches."""

    max_steps: int | None = Field(default=None, ge=1)
    """Limit in steps."""
    max_epochs: int | None = Field(default=None, ge=1)
    """Limit in epochs (passes over the text)."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Limit in training words."""
    max_minutes: float | None = Field(default=None, gt=0)
    """Limit in minutes of training steps, over all resumed parts. Without another limit, the learning rate has no
    cooldown, because the number of steps is unknown."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of the weights, the batches and the sampled words."""
    vocab_size: int | None = Field(default=50_000, ge=4)
    """Classes of the softmax, including `<S>`, `</S>` and `<UNK>`. null: the vocabulary of `paths.teacher`, or without
    a teacher of `paths.init`."""
    negatives: int | None = Field(default=2048, ge=1)
    """Words sampled per step and direction for the softmax. null: the full softmax, which is slower."""
    batch_tokens: int = Field(default=4096, ge=1)
    """Words per step, over all processes."""
    max_length: int = Field(default=100, ge=1)
    """Maximum length of a training sentence in words; longer sentences are split."""
    optimizer: Literal["adamw", "adagrad", "muon"] = "adamw"
    """"adamw", "adagrad" (as in the paper) or "muon", which orthogonalizes the updates of the large matrices and uses
    AdamW for the rest."""
    learn_rate: float = Field(default=3e-3, gt=0)
    """Learning rate between warm-up and cooldown."""
    warmup_steps: int = Field(default=200, ge=0)
    """Steps in which the learning rate rises to `learn_rate`."""
    cooldown: float = Field(default=0.2, ge=0, le=1)
    """Last share of the run, in which the learning rate falls linearly to a hundredth of `learn_rate`."""
    grad_clip: float = Field(default=1.0, gt=0)
    """Maximum norm of the gradient of the mean loss per target."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate of the input of each LSTM layer and of the top output (bilm-tf: 0.1). Only repeated text needs it
    (docs/pretrain.md#dropout)."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Data type of the matrix products. "auto": bfloat16 if the machine has instructions for it, otherwise float32.

    Parameters, states and sums are always float32. A resumed run keeps the type in its checkpoint."""
    log_every: int = Field(default=10, ge=1)
    """Steps between two log lines."""
    eval_every: int = Field(default=200, ge=1)
    """Steps between two evaluations. The model with the best held-out perplexity is `model-best`."""
    patience: int | None = Field(default=None, ge=1)
    """The run ends, without a cooldown, after this many steps without a better perplexity."""
    eval_tokens: int = Field(default=20_000, ge=1)
    """Held-out words per evaluation; every evaluation uses the same words."""
    save_every: int = Field(default=200, ge=1)
    """Steps between two checkpoints."""

    @property
    def limited(self) -> bool:
        """True if at least one of the four limits is set."""
        return any(getattr(self, limit) is not None for limit in _LIMITS)


class PretrainConfig(_Section):
    """All settings of a pretraining run."""

    paths: Paths = Paths()
    prepare: Prepare = Prepare()
    model: dict[str, Any] = {}
    """The fields of `BiLMConfig`. Empty: the network of `paths.init`."""
    training: Training = Training()
    card: dict[str, Any] = {}
    """Information for users of the weights (name, licence, sources), in JSON types."""

    @classmethod
    def read(
        cls,
        source: str | Path | Mapping[str, Any] | PretrainConfig,
        overrides: Mapping[str, Any] | None = None,
        *,
        training: bool = True,
    ) -> PretrainConfig:
        """Return checked settings from a `.cfg` file, from a dict of sections, or from other settings.

        Args:
            overrides: values that replace settings, such as {"training.max_steps": 100}.
            training: if true, the settings are for a training run, so one of the limits `max_...` is
                required.
        """
        sections = _sections(source, overrides or {})
        problems = []
        try:
            config = cls(**sections)
        except ValidationError as error:
            problems = [cls._problem(e["loc"], e["input"], e["msg"]) for e in error.errors()]
        try:
            bilm = BiLMConfig.from_dict(dict(sections.get("model", {})))
            for name in ("n_words", "n_symbols"):
                if value := getattr(bilm, name):
                    problems.append(
                        f"[model] {name} = {value}: pretraining reads the bytes of words. Remove {name}, or set it to 0"
                    )
        except (TypeError, ValueError) as error:
            problems.append(f"[model] {error}")
        if not problems:
            problems = config._contradictions()
            if training and not config.training.limited:
                problems.append(
                    f"[training] has no limit: set at least one of {', '.join(_LIMITS)}"
                )
        if problems:
            raise ValueError("Impossible pretraining config:\n  " + "\n  ".join(problems))
        return config

    def _contradictions(self) -> list[str]:
        """Return the settings that do not fit settings of other sections."""
        problems = []
        init, teacher = self.paths.init, self.paths.teacher
        vocab_size, negatives = self.training.vocab_size, self.training.negatives
        if vocab_size is None and init is None and teacher is None:
            problems.append(
                "[training] vocab_size = null uses the vocabulary of paths.init or paths.teacher, but both are null:"
                " set one of the three"
            )
        if teacher is not None and (vocab_size is not None or negatives is None):
            problems.append(
                f"[paths] teacher = {teacher}: the run predicts the words of the teacher by a sampled softmax, so set"
                f" training.vocab_size = null (now {vocab_size}) and training.negatives to a number (now {negatives})"
            )
        if teacher is not None and init is None and not self.model:
            problems.append(
                "[model] is empty: describe the network that learns from paths.teacher, or set paths.init"
            )
        if vocab_size is not None and negatives is not None and negatives > vocab_size:
            problems.append(
                f"[training] negatives = {negatives}: it must be at most vocab_size = {vocab_size}, or null for the"
                " full softmax"
            )
        return problems

    @classmethod
    def _problem(cls, place: tuple[int | str, ...], value: object, message: str) -> str:
        section, *keys = map(str, place)
        if section not in cls.model_fields:
            meant = _suggestion(section, cls.model_fields)
            return f"[{section}]: unknown section{meant}; a pretraining config has {', '.join(cls.model_fields)}"
        message = message.removeprefix("Value error, ")
        if message == "Extra inputs are not permitted":
            fields = _SECTIONS[section].model_fields
            message = f"unknown setting{_suggestion(keys[0], fields)}"
        return f"[{section}] {'.'.join(keys)} = {value!r:.100}: {message}"

    @property
    def bilm(self) -> BiLMConfig:
        """The configuration of the biLM that the run trains."""
        return BiLMConfig.from_dict(self.model)


_SECTIONS: dict[str, type[_Section]] = {"paths": Paths, "prepare": Prepare, "training": Training}


def _suggestion(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" (do you mean {close[0]}?)" if close else ""


def _sections(
    source: str | Path | Mapping[str, Any] | PretrainConfig, overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the sections of a config, with the values of its variables and of the overrides."""
    if isinstance(source, PretrainConfig):
        source = source.model_dump()
    sections: dict[str, Any] = (
        _parsed(Path(source)) if isinstance(source, str | Path) else copy.deepcopy(dict(source))
    )
    for name, value in overrides.items():
        *parents, key = name.split(".")
        section = sections
        for parent in parents:
            if not isinstance(section.get(parent), dict):
                section[parent] = {}
            section = section[parent]
        section[key] = os.fspath(value) if isinstance(value, os.PathLike) else value
    model = sections.get("model", {})
    if isinstance(model, Mapping) and isinstance(model.get("replace"), Mapping):
        # As pairs, because a config file would store the mapping as a section, in which "#" begins a comment, and "="
        # ends a name.
        pairs = [list(pair) for pair in model["replace"].items()]
        sections["model"] = {**model, "replace": pairs}
    return Config(sections).interpolate() if isinstance(sections, Config) else sections


def _parsed(path: Path) -> Config:
    """Parse a config file without replacing its variables."""
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no config file {path}. `python -m spacy elmo init-config {path} --from pretrain_small` copies a"
            " shipped config"
        )
    try:
        return Config().from_disk(path, interpolate=False)
    except (configparser.Error, ValueError) as error:
        # The parser does not know the name of the file and calls it "<string>".
        message = str(error).strip().replace("<string>", path.name)
        raise ValueError(f"{path} is not a valid config file: {message}") from error
