"""Settings of a pretraining run, one class per section of its `.cfg` file."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from confection import Config
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from ..bilm.config import BiLMConfig
from ..text.files import text_files


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_bool_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        # On the command line `--training.max_steps` without its value is true, which pydantic would convert to 1.
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and annotation is not bool:
            raise ValueError(f"{str(value).lower()} is not possible here; was the value left out?")
        return value


class Paths(_Section):
    """Paths of the text and the weights to start from. Text is UTF-8, in these formats:

    - `.jsonl`: one record per line and document, {"text": "..."}, or {"tokens": ["...", ...]} for your own words.
    - `.spacy`: a DocBin; each Doc is a document, of which only the words are read.
    - Anything else is plain text: a document ends at a blank line, at the end of its file, or after 100 lines.

    Plain text and `.jsonl` may be compressed as `.gz`, `.xz` or `.zst`.
    """

    raw_text: str | None = None
    """Training text; required unless `corpus` is given. A file; a directory, from which all *.txt and *.jsonl,
    compressed or not, and all *.spacy are read; or a glob pattern, from which all files are read.
    """
    dev_text: str | None = None
    """Held-out text, given in the same way; null: 1 % of the documents of `raw_text`, at least 100 sentences, chosen by
    a seeded hash.
    """
    corpus: str | None = None
    """A folder written by `prepare`; null: `raw_text` is prepared into OUT/corpus first."""
    init: str | None = None
    """Initial weights: a weights file, or the name of a bundled or installed biLM. Its network must be that of
    `[model]`; words that are in the vocabulary of its head keep their rows. Null: random weights.
    """

    def text_files(self) -> dict[str, list[Path]]:
        """Return the files of the raw text, and those of the held-out text if there is any, by the settings' values.

        Raises:
            FileNotFoundError: there are no such files.
            ValueError: `raw_text` is null, or a file is of a kind that cannot be read.
        """
        if self.raw_text is None:
            raise ValueError("paths.raw_text is required: a file, a directory or a glob pattern")
        sources = (self.raw_text, self.dev_text)
        return {source: text_files(source) for source in sources if source is not None}


class Prepare(_Section):
    """Settings by which text becomes sentences of words."""

    lang: str = "en"
    """Language of the spaCy tokenizer."""
    tokenizer: dict[str, Any] | None = None
    """The `[nlp.tokenizer]` block of the pipelines that will use the weights, as `[prepare.tokenizer]`; null: the
    tokenizer of the language.
    """
    tokenized: bool = False
    """True: the text consists of words separated by spaces, one sentence per line, and is used without tokenizing."""
    dedup: Literal["none", "documents", "sentences"] = "none"
    """Units of which repetitions are dropped; the first occurrence is kept. Units that occur in `dev_text` are also
    dropped from the training text. "sentences" makes common short sentences ("Yes .") rare and leaves gaps in
    documents, which does no harm, because each sentence is a separate training sequence.
    """
    n_process: int = Field(default=1, ge=-1)
    """Number of processes that tokenize; -1: one per core. The corpus does not depend on it."""
    encoding_errors: Literal["strict", "replace"] = "strict"
    """Treatment of bytes that are not UTF-8: "strict" is an error with file and line, "replace" inserts U+FFFD."""
    seed: int = Field(default=0, ge=0)
    """Seed of the hash that chooses the held-out documents."""

    @field_validator("n_process")
    @classmethod
    def _refuse_zero(cls, value: int) -> int:
        if value == 0:
            raise ValueError("at least 1, or -1 for one per core")
        return value

    @property
    def description(self) -> str:
        """Description of the tokenizer, which the card of weights contains."""
        if self.tokenized:
            return "text as given"
        name = f"spacy.blank({self.lang!r})"
        return name if self.tokenizer is None else f"{name} with nlp.tokenizer = {self.tokenizer}"


_LIMITS = ("max_steps", "max_epochs", "max_tokens", "max_minutes")


class Training(_Section):
    """Settings of the optimization. At least one of the four limits is required; the first one reached, or `patience`,
    ends the run."""

    max_steps: int | None = Field(default=None, ge=1)
    max_epochs: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_minutes: float | None = Field(default=None, gt=0)
    """Minutes spent in training steps, summed over all resumed parts of the run. The learning rate does not depend on
    it: only the end of the run depends on the clock.
    """
    seed: int = Field(default=0, ge=0)
    vocab_size: int | None = Field(default=50_000, ge=4)
    """Number of softmax classes: the most frequent words of the corpus, including `<S>`, `</S>` and `<UNK>`. Null: the
    vocabulary of `paths.init`, unchanged.
    """
    negatives: int | None = Field(default=2048, ge=1)
    """Number of words drawn per step and direction for the sampled softmax. Null: the full softmax."""
    batch_tokens: int = Field(default=4096, ge=1)
    """Number of words per step, in sentences of similar length; summed over all processes, if there are several."""
    accumulate_gradient: int = Field(default=1, ge=1)
    """Number of parts into which the batch of a step is divided; they are processed one after the other. The step is
    the same, with less memory.
    """
    max_length: int = Field(default=100, ge=1)
    """Longer training sentences are split after this many words, and each part is a sentence."""
    optimizer: Literal["adamw", "adagrad", "muon"] = "adamw"
    """Adagrad is the optimizer of the paper. Muon orthogonalizes the steps of the large matrices and leaves the other
    parameters to AdamW.
    """
    learn_rate: float = Field(default=3e-3, gt=0)
    """Peak of the learning rate, reached after `warmup_steps` and kept until the cooldown."""
    warmup_steps: int = Field(default=200, ge=0)
    cooldown: float = Field(default=0.2, ge=0, le=1)
    """Share of the run, at its end, in which the learning rate falls linearly to a hundredth of the peak."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay of AdamW and Muon, on the matrices of the biLM but not on the rows of the head. Adagrad
    has none.
    """
    grad_clip: float = Field(default=1.0, gt=0)
    """Largest global norm of the gradient of the mean loss per target."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate on the input of each LSTM layer and on the top output (bilm-tf: 0.1)."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number type of the matrix products; parameters, states and sums remain in float32. "auto" is bfloat16 if the
    machine has instructions for it. A resumed run keeps the type that it began with.
    """
    log_every: int = Field(default=10, ge=1)
    """Number of steps between two rows of the log."""
    eval_every: int = Field(default=200, ge=1)
    """Number of steps between two held-out perplexities. The model with the best one is kept as `model-best`."""
    patience: int | None = Field(default=None, ge=1)
    """Number of steps without a better held-out perplexity after which the run ends, as in spaCy; the cooldown is then
    left out. Null: no such limit.
    """
    eval_tokens: int = Field(default=20_000, ge=1)
    """Number of held-out words in each perplexity: always the first ones, so that the values are comparable."""
    save_every: int = Field(default=200, ge=1)
    """Number of steps between two checkpoints."""

    @property
    def limited(self) -> bool:
        """True if at least one of the four limits is set."""
        return any(getattr(self, limit) is not None for limit in _LIMITS)


class PretrainConfig(_Section):
    """All settings of a run."""

    paths: Paths = Paths()
    prepare: Prepare = Prepare()
    model: dict[str, Any] = {}
    """Fields of `BiLMConfig`; if empty and `paths.init` is given, those of its network."""
    training: Training = Training()
    card: dict[str, Any] = {}
    """Information for users of the weights (name, licence, sources), copied into the header of the file. JSON types."""

    @classmethod
    def read(
        cls,
        source: str | Path | Mapping[str, Any] | PretrainConfig,
        overrides: Mapping[str, Any] | None = None,
        *,
        training: bool = True,
    ) -> PretrainConfig:
        """Return the settings of a `.cfg` file, of its sections, or of other settings, with overrides, checked.

        Args:
            overrides: other values of settings, by "section.key".
            training: see `of`.

        Raises:
            FileNotFoundError: the file does not exist.
            ValueError: the file cannot be parsed, an override is of no section, or see `of`.
        """
        if isinstance(source, PretrainConfig):
            source = source.model_dump()
        config = _parsed(Path(source)) if isinstance(source, str | Path) else Config(dict(source))
        # The defaults of a section that is left out can be overridden as well.
        for section in cls.model_fields:
            config.setdefault(section, {})
        interpolated = Config().from_str(config.to_str(), overrides=dict(overrides or {}))
        return cls.of(interpolated, training=training)

    @classmethod
    def of(cls, sections: Mapping[str, Any], *, training: bool = True) -> PretrainConfig:
        """Check a parsed `.cfg` and return its settings.

        Args:
            training: the config is for a training run, which requires a limit; preparing text does not.

        Raises:
            ValueError: settings are unknown, missing or impossible; the message names each, with its value.
        """
        problems = []
        try:
            config = cls(**sections)
        except ValidationError as error:
            problems = [cls._problem(e["loc"], e["input"], e["msg"]) for e in error.errors()]
        try:
            bilm = BiLMConfig.from_dict(dict(sections.get("model", {})))
            if bilm.n_words:
                problems.append(
                    f"[model] n_words = {bilm.n_words}: pretraining with word input is not supported yet (the table"
                    " would require the size of the vocabulary); leave it out, or set 0: the input is characters"
                )
            elif bilm.n_symbols:
                problems.append(
                    f"[model] n_symbols = {bilm.n_symbols}: pretraining with an alphabet is not supported yet; leave it"
                    " out, or set 0: the characters are bytes"
                )
        except (TypeError, ValueError) as error:
            problems.append(f"[model] {error}")
        if not problems:
            if training and not config.training.limited:
                problems.append(
                    f"[training] requires a limit, at least one of {', '.join(_LIMITS)}"
                )
            vocab_size, negatives = config.training.vocab_size, config.training.negatives
            if vocab_size is None and config.paths.init is None:
                problems.append(
                    "[training] vocab_size = null means that of paths.init, which is null too; set one of them"
                )
            if vocab_size is not None and negatives is not None and negatives > vocab_size:
                problems.append(
                    f"[training] negatives = {negatives}: at most vocab_size = {vocab_size}; null is the full softmax"
                )
            if config.training.optimizer == "adagrad" and config.training.weight_decay:
                problems.append(
                    f"[training] weight_decay = {config.training.weight_decay}: Adagrad has none; set it to 0"
                )
        if problems:
            raise ValueError("Impossible pretraining config:\n  " + "\n  ".join(problems))
        return config

    @classmethod
    def _problem(cls, place: tuple[int | str, ...], value: object, message: str) -> str:
        section, *keys = map(str, place)
        if section not in cls.model_fields:
            return f"[{section}]: not a section of a pretraining config, which has {', '.join(cls.model_fields)}"
        message = message.removeprefix("Value error, ")
        return f"[{section}] {'.'.join(keys)} = {value!r:.100}: {message}"

    @property
    def bilm(self) -> BiLMConfig:
        """The shape of the network."""
        return BiLMConfig.from_dict(self.model)


def _parsed(path: Path) -> Config:
    if not path.is_file():
        raise FileNotFoundError(
            f"No config file at {path}. `python -m spacy elmo init-config --list` shows the shipped ones"
        )
    try:
        return Config().from_disk(path, interpolate=False)
    except (configparser.Error, ValueError) as error:
        # The parser receives the text, not the file, and calls it "<string>".
        message = str(error).strip().replace("<string>", path.name)
        raise ValueError(f"{path} is not a valid config file: {message}") from error
