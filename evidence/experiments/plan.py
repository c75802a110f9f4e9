"""`plan.yml`: the runs of each size, and their planned minutes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from .variants import VARIANTS, needs_elmo


class Data(NamedTuple):
    """A labelled set of a task."""

    task: str
    name: str

    @classmethod
    def of(cls, text: str) -> Data:
        """Return the set with the name TASK/NAME, such as ner/wnut17.

        Raises:
            ValueError: the text does not have this form.
        """
        task, slash, name = text.partition("/")
        if not (task and slash and name) or "/" in name:
            raise ValueError(f"{text!r} must have the form TASK/NAME, such as ner/wnut17")
        return cls(task, name)

    def __str__(self) -> str:
        return f"{self.task}/{self.name}"


@dataclass(frozen=True)
class Cut:
    """The part of a corpus that is used: `share` percent of the first `limit` of its shuffled documents."""

    limit: int | None = None
    """Largest number of documents; None: all."""
    share: int = 100

    @property
    def suffix(self) -> str:
        """Suffix for the name of the file; empty if the whole corpus is used."""
        limit = f"-limit{self.limit}" if self.limit is not None else ""
        return limit + (f"-share{self.share}" if self.share != 100 else "")


@dataclass(frozen=True)
class Run:
    """One training of a pipeline, and the scoring of its best step on test parts."""

    size: str
    data: Data
    variant: str
    seed: int
    share: int
    """Percent of the training documents."""
    steps: int | None
    """Optimizer steps; None: the number in the config."""
    minutes: float
    """Planned minutes of one core."""
    limits: Mapping[str, int]
    """Largest number of documents of each part. A part that is not in it is used completely."""
    also: tuple[Data, ...]
    """Further sets. The run is also scored on their test parts."""
    noise: tuple[int, ...] = ()
    """Percentages of words with an error. For each, the run is also scored on such a copy of its test part."""
    lang: str = "en"
    """Language of the pipeline."""
    weights: str | None = None
    """The biLM of variants with ELMo, a name or a path; None: the default of the language."""

    @property
    def name(self) -> str:
        """DATASET/TASK_VARIANT-SEED, such as wnut17/ner_elmo-0, or with a share wnut17-10pct/ner_elmo-0."""
        return self._name(self.corpus("test"))

    def _name(self, test: Corpus) -> str:
        share = f"-{self.share}pct" if self.share != 100 else ""
        return f"{test.data.name}{share}{test.noise_suffix}/{self.data.task}_{self.variant}-{self.seed}"

    @property
    def folder(self) -> Path:
        """The folder of the training."""
        return Path("training", self.size, self.name)

    @property
    def pipeline_kept(self) -> bool:
        """True if the trained pipeline is kept: the charts of learned layer weights need the pipelines of the first
        seed."""
        return (self.variant, self.seed, self.share) == ("elmo", 0, 100)

    @property
    def metrics(self) -> dict[Corpus, Path]:
        """The files of scores of all test parts. The first is that of the set that the run is trained on."""
        tests = [self.corpus("test", data) for data in (self.data, *self.also)]
        tests += [self.corpus("test")._replace(noise=noise) for noise in self.noise]
        return {test: Path("metrics", self.size, f"{self._name(test)}.json") for test in tests}

    def corpus(self, part: str, data: Data | None = None) -> Corpus:
        """Return a part of the set that the run is trained on, or of another set."""
        cut = Cut(self.limits.get(part), self.share if part == "train" else 100)
        return Corpus(data or self.data, part, cut)

    @property
    def corpora(self) -> tuple[Corpus, ...]:
        """All corpora that the run uses."""
        return (self.corpus("train"), self.corpus("dev"), *self.metrics)


class Corpus(NamedTuple):
    """A `.spacy` file."""

    data: Data
    part: str
    cut: Cut = Cut()
    noise: int = 0
    """Percentage of words with an error like those of optical character recognition."""

    @property
    def noise_suffix(self) -> str:
        """Suffix for the name of a file with errors; empty for a file without errors."""
        return f"-noise{self.noise}" if self.noise else ""

    @property
    def path(self) -> Path:
        """The path of the file, which may not exist yet."""
        folder = Path("corpus", self.data.task)
        name = f"{self.data.name}-{self.part}{self.noise_suffix}{self.cut.suffix}"
        return folder / f"{name}.spacy"


@dataclass(frozen=True)
class Plan:
    """The content of a plan file."""

    path: Path
    content: Mapping[str, Any]
    passed_over: frozenset[str] = frozenset()
    """Names of the runs that are skipped because their data are missing."""

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan.

        Raises:
            OSError, ValueError: the file does not exist, is not YAML, or has not all sections.
        """
        if not path.is_file():
            raise FileNotFoundError(f"There is no plan {path}")
        content = srsly.read_yaml(path)
        sections = ("converters", "sources", "also_scored", "sizes")
        missing = [name for name in sections if name not in content]
        if missing:
            raise ValueError(
                f"{path} has no section {', '.join(missing)}; it needs {', '.join(sections)}"
            )
        return cls(path, content)

    @property
    def trained_on(self) -> dict[Data, Data]:
        """For each set that is only scored on, the set of the training."""
        return {
            Data.of(other): Data.of(trained)
            for trained, others in self.content["also_scored"].items()
            for other in others
        }

    @property
    def names(self) -> Mapping[str, str]:
        """Display names of data sets. Sets that are missing here are displayed by their own name."""
        return self.content.get("names", {})

    def size(self, name: str) -> Mapping[str, Any]:
        """Return the section of a size.

        Raises:
            ValueError: the plan has no such size.
        """
        sizes = self.content["sizes"]
        if name not in sizes:
            raise ValueError(f"{self.path} has no size {name!r}; it has {', '.join(sizes)}")
        return sizes[name]

    def lang(self, size: str) -> str:
        """Return the language of a size, by default English."""
        lang: str = self.size(size).get("lang", "en")
        return lang

    def runs(self, size: str) -> list[Run]:
        """Return the runs of a size in the order of the file, each once, without the runs in `passed_over`.

        Raises:
            ValueError: a size, variant, task or set is unknown.
        """
        runs_by_name = {run.name: run for run in self._runs(size)}
        return [run for name, run in runs_by_name.items() if name not in self.passed_over]

    def _runs(self, size: str) -> Iterator[Run]:
        section = self.size(size)
        for group in section["runs"]:
            shares, seeds = group.get("shares", [100]), group["seeds"]
            # All runs of the first seed come before those of the second, so that an early stop leaves comparable
            # results.
            for seed, text, share, variant in itertools.product(
                seeds, group["data"], shares, group["variants"]
            ):
                if variant not in VARIANTS:
                    raise ValueError(
                        f"{self.path}: unknown variant {variant!r}; the variants are {', '.join(VARIANTS)}"
                    )
                if text not in self.content["sources"]:
                    raise ValueError(f"{self.path}: {text!r} is not in the section `sources`")
                data = Data.of(text)
                if data.task not in section["tasks"]:
                    raise ValueError(f"{self.path}: size {size} has no task {data.task!r}")
                task = {**section["tasks"][data.task], **group.get("tasks", {}).get(data.task, {})}
                yield Run(
                    size=size,
                    data=data,
                    variant=variant,
                    seed=seed,
                    share=share,
                    steps=task["steps"],
                    minutes=task["minutes"][needs_elmo(variant)],
                    limits=section["documents"] or {},
                    also=tuple(map(Data.of, self.content["also_scored"].get(text, []))),
                    noise=tuple(group.get("noise", ())),
                    lang=self.lang(size),
                    weights=section.get("weights"),
                )

    def run(self, size: str, name: str) -> Run:
        """Return the run with a name.

        Raises:
            ValueError: the size has no such run.
        """
        for run in self.runs(size):
            if run.name == name:
                return run
        raise ValueError(f"{self.path}: the size {size} has no run {name!r}")
