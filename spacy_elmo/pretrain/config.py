"""The settings of a pretraining run, section by section as in its `.cfg` file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from ..bilm.config import BiLMConfig


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        # On the command line `--training.max_steps` without its value is true, and pydantic would read 1.
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and annotation is not bool:
            raise ValueError(f"{str(value).lower()} is no value for it; was the value left out?")
        return value


class Paths(_Section):
    """Where the text is, in UTF-8.

    - `.jsonl`: records {"text": "..."}, or {"tokens": ["...", ...]} for words of your own; a record is a document.
    - `.spacy`: a DocBin, of which the words are read; a Doc is a document.
    - Anything else is plain text: a document ends at a blank line, at the end of its file, or after 100 lines.

    Plain text and `.jsonl` may be packed as `.gz`, `.xz` or `.zst`.
    """

    raw_text: str | None = None
    """Training text; needed unless `corpus` is given. A file; a directory, of which all *.txt and *.jsonl, packed or
    not, and all *.spacy are read; or a glob pattern, of which all files are read.
    """
    dev_text: str | None = None
    """Held-out text, likewise; null: 1 % of the documents of `raw_text`, at least 100 sentences, by a seeded hash."""
    corpus: str | None = None
    """A folder made by `prepare`; null: `raw_text` is prepared into OUT/corpus first."""
    init: str | None = None
    """Weights to start from, a file of ours: its network has to be that of `[model]`, and the words that its head
    knows keep their rows. Null: random.
    """


class Prepare(_Section):
    """How text becomes sentences of words."""

    lang: str = "en"
    """Language of the spaCy tokenizer."""
    tokenizer: dict[str, Any] | None = None
    """The `[nlp.tokenizer]` block of the pipelines that will use the weights, as `[prepare.tokenizer]`; null: that of
    the language.
    """
    tokenized: bool = False
    """True: the text is words separated by spaces, one sentence per line, and is taken as it is."""
    dedup: Literal["none", "documents", "sentences"] = "none"
    """What is read once only, its first place kept. What stands in `dev_text` is dropped from the training text, too.
    "sentences" makes common short ones ("Yes .") rare, and leaves gaps in documents; sentences are trained on one by
    one, so nothing is lost by that.
    """
    n_process: int = Field(default=1, ge=-1)
    """Processes that tokenize; -1: as many as there are cores. The corpus is the same whatever their number."""
    encoding_errors: Literal["strict", "replace"] = "strict"
    """What to do with bytes that are not UTF-8: stop and name file and line, or put U+FFFD."""
    seed: int = Field(default=0, ge=0)
    """Decides which documents are held out."""

    @field_validator("n_process")
    @classmethod
    def _some_process(cls, value: int) -> int:
        if value == 0:
            raise ValueError("at least 1, or -1 for as many as there are cores")
        return value

    @property
    def made_by(self) -> str:
        """What makes the words, as the card of weights says it."""
        if self.tokenized:
            return "text as given"
        name = f"spacy.blank({self.lang!r})"
        return name if self.tokenizer is None else f"{name} with nlp.tokenizer = {self.tokenizer}"


_LIMITS = ("max_steps", "max_epochs", "max_tokens", "max_minutes")


class Training(_Section):
    """The optimisation. At least one of the four limits is needed; whichever is met first ends the run."""

    max_steps: int | None = Field(default=None, ge=1)
    max_epochs: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_minutes: float | None = Field(default=None, gt=0)
    """Of training steps, across resumes. The learning rate does not know it: only the stop hangs on the clock."""
    seed: int = Field(default=0, ge=0)
    vocab_size: int | None = Field(default=50_000, ge=4)
    """Classes of the softmax: the most frequent words of the corpus, `<S>`, `</S>` and `<UNK>` among them. Null: the
    vocabulary of `paths.init`, as it is.
    """
    negatives: int | None = Field(default=2048, ge=1)
    """Words drawn per step and direction for the sampled softmax. Null: the full softmax."""
    batch_tokens: int = Field(default=4096, ge=1)
    """Words per step, of sentences of like length; of all processes together, if there are several."""
    accumulate_gradient: int = Field(default=1, ge=1)
    """Parts into which a step's batch is divided, to be read one after the other: less memory, the same step."""
    max_length: int = Field(default=100, ge=1)
    """Longer training sentences are cut into pieces of this many words, each read as a sentence."""
    optimizer: Literal["adamw", "adagrad"] = "adamw"
    """Adagrad is the paper's."""
    learn_rate: float = Field(default=3e-3, gt=0)
    """Peak, reached after `warmup_steps` and held until the cooldown."""
    warmup_steps: int = Field(default=200, ge=0)
    cooldown: float = Field(default=0.2, ge=0, le=1)
    """Share of the run, at its end, in which the learning rate falls in a line to a hundredth of the peak."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's, on the matrices of the biLM; the head's rows have none. Adagrad has none."""
    grad_clip: float = Field(default=1.0, gt=0)
    """Largest global norm of the gradient of the mean loss per target."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """On the input of each LSTM layer and on the top output (bilm-tf: 0.1)."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the matrix products; parameters, states and sums stay in float32. Auto: bfloat16 where the machine has
    instructions for it. A resumed run keeps what it began with.
    """
    log_every: int = Field(default=10, ge=1)
    eval_every: int = Field(default=200, ge=1)
    """Steps between two held-out perplexities. The model with the best one is kept as `model-best`."""
    patience: int | None = Field(default=None, ge=1)
    """Steps without a better held-out perplexity after which the run ends, as in spaCy; such an end comes before the
    cooldown. Null: it does not end for that.
    """
    eval_tokens: int = Field(default=20_000, ge=1)
    """Held-out words scored each time, from the start of the text: the same ones, so that the figures compare."""
    save_every: int = Field(default=200, ge=1)
    """Steps between two checkpoints."""

    @property
    def limited(self) -> bool:
        """Whether a run has an end."""
        return any(getattr(self, limit) is not None for limit in _LIMITS)


class PretrainConfig(_Section):
    """A whole run."""

    paths: Paths = Paths()
    prepare: Prepare = Prepare()
    model: dict[str, Any] = {}
    """Fields of `BiLMConfig`; none at all: those of `paths.init`, if it is given."""
    training: Training = Training()
    card: dict[str, Any] = {}
    """Anything a user of the weights should know (name, licence, sources); copied into the file's header."""

    @classmethod
    def of(cls, sections: Mapping[str, Any], *, training: bool = True) -> PretrainConfig:
        """Check a parsed `.cfg`.

        Args:
            training: it is for a run, which needs a limit; preparing text does not.

        Raises:
            ValueError: naming every unknown, missing or impossible setting, with its value.
        """
        problems = []
        try:
            config = cls(**sections)
        except ValidationError as error:
            problems = [cls._problem(e["loc"], e["input"], e["msg"]) for e in error.errors()]
        try:
            bilm = BiLMConfig.from_dict(dict(sections.get("model", {})))
            if bilm.words:
                problems.append(
                    f"[model] words = {bilm.words}: pretraining with word input is not supported yet (the table would"
                    " need the size of the vocabulary); leave it out, or 0: the input is characters"
                )
            elif bilm.symbols:
                problems.append(
                    f"[model] symbols = {bilm.symbols}: pretraining with an alphabet is not supported yet; leave it"
                    " out, or 0: the characters are bytes"
                )
        except (TypeError, ValueError) as error:
            problems.append(f"[model] {error}")
        if not problems:
            if training and not config.training.limited:
                problems.append(f"[training] needs a limit, at least one of {', '.join(_LIMITS)}")
            vocab_size, negatives = config.training.vocab_size, config.training.negatives
            if vocab_size is None and config.paths.init is None:
                problems.append(
                    "[training] vocab_size = null: it is that of paths.init, which is null too; give one of them"
                )
            if vocab_size is not None and negatives is not None and negatives > vocab_size:
                problems.append(
                    f"[training] negatives = {negatives}: at most vocab_size = {vocab_size}; null is the full softmax"
                )
            if config.training.optimizer == "adagrad" and config.training.weight_decay:
                problems.append(
                    f"[training] weight_decay = {config.training.weight_decay}: Adagrad has none, set it to 0"
                )
        if problems:
            raise ValueError("Impossible pretraining config:\n  " + "\n  ".join(problems))
        return config

    @classmethod
    def _problem(cls, place: tuple[int | str, ...], value: object, message: str) -> str:
        section, *keys = map(str, place)
        if section not in cls.model_fields:
            return f"[{section}]: no section of a pretraining config, which has {', '.join(cls.model_fields)}"
        message = message.removeprefix("Value error, ")
        return f"[{section}] {'.'.join(keys)} = {value!r:.100}: {message}"

    @property
    def bilm(self) -> BiLMConfig:
        """The shape of the network."""
        return BiLMConfig.from_dict(self.model)
