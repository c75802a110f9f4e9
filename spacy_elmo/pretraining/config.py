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
    """Paths of the text (see `text.passages.passages` and `text.reading.text_files`) and of the initial weights."""

    raw_text: str | None = None
    """Training text: a file, a directory or a glob pattern. Required unless `corpus` is given."""
    dev_text: str | None = None
    """Held-out text, as a file, directory or glob pattern. Null: 1 % of the documents of `raw_text` are held
    out, or more, until they have 100 sentences. A hash with the seed `prepare.seed` chooses the documents.
    """
    corpus: str | None = None
    """Folder that the command `prepare` has written: the corpus as word ids. Null: the run first tokenizes
    `raw_text`, and writes the word ids to the subfolder `corpus` of its output folder."""
    init: str | None = None
    """Initial weights: a weights file, or the name of a bundled or installed biLM, whose network `[model]` describes.
    The rows of its head are copied for all words that are in both vocabularies. Null: random weights."""
    teacher: str | None = None
    """A larger biLM whose predictions the run imitates: a weights file with a head, or the name of a bundled biLM. The
    run has its vocabulary, so `training.vocab_size` must be null, and `training.negatives` a number."""

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
    """Section `[nlp.tokenizer]` of the pipelines that will use the weights. Null: the default of the language."""
    tokenized: bool = False
    """True: the text is already tokenized, as words separated by spaces and one sentence per line."""
    n_process: int = Field(default=1, ge=-1)
    """Number of processes that tokenize; -1: one per core. It changes no result."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of the hash that chooses the held-out documents."""

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
    """Settings of the optimization. At least one of the four limits (`max_...`) is required. The first ends the run."""

    max_steps: int | None = Field(default=None, ge=1)
    max_epochs: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_minutes: float | None = Field(default=None, gt=0)
    """Limit of the minutes in training steps, over all resumed parts. Without another limit, the learning rate has no
    cooldown, because the number of steps is unknown."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    vocab_size: int | None = Field(default=50_000, ge=4)
    """Number of softmax classes: `<S>`, `</S>`, `<UNK>` and the most frequent words of the corpus. Null: the
    vocabulary of `paths.teacher`, or, without a teacher, of `paths.init`."""
    negatives: int | None = Field(default=2048, ge=1)
    """Number of negative samples per training step and direction. Null: the full softmax."""
    batch_tokens: int = Field(default=4096, ge=1)
    """Number of words in the batch of one training step, which is divided among the processes."""
    max_length: int = Field(default=100, ge=1)
    """Largest number of words of a training sentence. Longer sentences are split into several sentences."""
    optimizer: Literal["adamw", "adagrad", "muon"] = "adamw"
    """The paper used Adagrad. "muon" updates the large matrices with Muon and all other parameters with AdamW."""
    learn_rate: float = Field(default=3e-3, gt=0)
    """Peak learning rate, after `warmup_steps` steps and until the cooldown."""
    warmup_steps: int = Field(default=200, ge=0)
    cooldown: float = Field(default=0.2, ge=0, le=1)
    """Share of the steps, at the end, in which the learning rate falls linearly to a hundredth of the peak."""
    grad_clip: float = Field(default=1.0, gt=0)
    """Maximum global norm of the gradient of the mean loss per target. A longer gradient is scaled down."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate on the input of each LSTM layer and on the output of the top layer (bilm-tf: 0.1)."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Data type of the matrix products; "auto": bfloat16 if the machine has instructions for it. Parameters, states and
    sums are always float32. A resumed run keeps the type in its checkpoint."""
    log_every: int = Field(default=10, ge=1)
    """Number of training steps between two rows of the training log."""
    eval_every: int = Field(default=200, ge=1)
    """Number of steps between two evaluations on held-out text. The best model is saved as `model-best`."""
    patience: int | None = Field(default=None, ge=1)
    """The run ends, without a cooldown, after this number of steps without a better held-out perplexity."""
    eval_tokens: int = Field(default=20_000, ge=1)
    """Number of held-out words in each evaluation: always the first, so the results can be compared."""
    save_every: int = Field(default=200, ge=1)
    """Number of steps between two checkpoints."""

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
