"""`plan.yml`: the data sets, and the runs of each size."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import srsly

from .variants import VARIANTS

PLAN = Path("plan.yml")


class Corpus(NamedTuple):
    """A `.spacy` file: `share` percent of the first `limit` of the shuffled documents of a part of a data set."""

    task: str
    data: str
    part: str
    limit: int | None = None
    share: int = 100
    noise: int = 0
    """Percentage of words with an error like those of optical character recognition."""

    @property
    def path(self) -> Path:
        """The path of the file, which may not exist yet."""
        noise = f"-noise{self.noise}" if self.noise else ""
        limit = f"-limit{self.limit}" if self.limit is not None else ""
        share = f"-share{self.share}" if self.share != 100 else ""
        return Path("corpus", self.task, f"{self.data}-{self.part}{noise}{limit}{share}.spacy")


@dataclass(frozen=True)
class Run:
    """One training of a pipeline, and the scoring of its best step on test parts."""

    size: str
    task: str
    data: str
    variant: str
    seed: int
    share: int
    """Percent of the training documents."""
    steps: int | None
    """Optimizer steps; None: the number in the config."""
    limits: Mapping[str, int]
    """Largest number of documents of each part. A part that is not in it is used completely."""
    also: tuple[str, ...]
    """Names of further sets. The run is also scored on their test parts."""
    noise: tuple[int, ...]
    """Percentages of words with an error. For each, the run is also scored on such a copy of its test part."""
    lang: str
    weights: str | None
    """The biLM of variants with ELMo, a name or a path; None: the default of the language."""

    @property
    def folder(self) -> Path:
        """The folder of the training."""
        share = f"-{self.share}pct" if self.share != 100 else ""
        return Path(
            "training", self.size, f"{self.data}{share}", f"{self.task}_{self.variant}-{self.seed}"
        )

    @property
    def pipeline_kept(self) -> bool:
        """True if the trained pipeline is kept: the chart of learned layer weights needs those of the first seed."""
        return (self.variant, self.seed, self.share) == ("elmo", 0, 100)

    def corpus(self, part: str, data: str | None = None, noise: int = 0) -> Corpus:
        """Return a part of the set that the run is trained on, or of another set."""
        share = self.share if part == "train" else 100
        return Corpus(self.task, data or self.data, part, self.limits.get(part), share, noise)

    @property
    def tests(self) -> list[Corpus]:
        """The test parts. The first is that of the set that the run is trained on."""
        tests = [self.corpus("test", data) for data in (self.data, *self.also)]
        return tests + [self.corpus("test", noise=noise) for noise in self.noise]


class Plan:
    """The content of `plan.yml`."""

    def __init__(self, path: Path = PLAN) -> None:
        content = srsly.read_yaml(path)
        self.converters: Mapping[str, list[str]] = content["converters"]
        self.sources: Mapping[str, str] = content["sources"]
        self.names: Mapping[str, str] = content["names"]
        self.also_scored: Mapping[str, list[str]] = content["also_scored"]
        self.sizes: Mapping[str, Mapping[str, Any]] = content["sizes"]

    def size(self, name: str) -> Mapping[str, Any]:
        """Return the section of a size."""
        if name not in self.sizes:
            raise ValueError(f"There is no size {name!r} in {PLAN}, only {', '.join(self.sizes)}")
        return self.sizes[name]

    def trained_on(self, task: str, data: str) -> str | None:
        """Return the set on which the pipelines for a set are trained; None: on its own training part."""
        owners = (owner for owner, others in self.also_scored.items() if f"{task}/{data}" in others)
        return next((owner.partition("/")[2] for owner in owners), None)

    def runs(self, name: str) -> list[Run]:
        """Return the runs of a size in the order of the file, each once. All runs of the first seed of a group come
        before those of the second, so that an early stop leaves comparable results."""
        size, runs = self.size(name), {}
        for group in size["runs"]:
            for seed, text, share, variant in itertools.product(
                group["seeds"], group["data"], group.get("shares", [100]), group["variants"]
            ):
                if variant not in VARIANTS or text not in self.sources:
                    raise ValueError(f"{name}: unknown variant or set: {variant}, {text}")
                task, _, data = text.partition("/")
                run = Run(
                    name, task, data, variant, seed, share,
                    steps={**size["steps"], **group.get("steps", {})}.get(task),
                    limits=size.get("documents") or {},
                    also=tuple(other.partition("/")[2] for other in self.also_scored.get(text, [])),
                    noise=tuple(group.get("noise", ())),
                    lang=size.get("lang", "en"),
                    weights=size.get("weights"),
                )  # fmt: skip
                runs.setdefault(run.folder, run)
        return list(runs.values())
