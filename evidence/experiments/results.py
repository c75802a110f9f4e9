"""The scores of finished runs, in `scores/SIZE.jsonl`."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import srsly

from .plan import Corpus, Plan, Run

METRICS = {
    "ner": ("ents_f", "F1"),
    "tagger": ("tag_acc", "accuracy"),
    # If each text has one label, the micro-averaged F1 is the accuracy.
    "textcat": ("cats_micro_f", "accuracy"),
    "parser": ("dep_las", "LAS"),
    "srl": ("srl_f", "F1"),
    "nli": ("nli_acc", "accuracy"),
    "qa": ("qa_f", "F1"),
    "coref": ("coref_f", "average F1"),
}
"""For each task, the metric in spaCy's scores, and its name."""


@dataclass(frozen=True)
class Result:
    """The score of a run on one set, and its cost."""

    task: str
    data: str
    share: int
    """Percent of the training documents."""
    variant: str
    seed: int
    score: float
    """Score in percent."""
    minutes: float
    """Minutes of one core, for training and scoring."""
    documents: int
    """Number of training documents."""
    dev: tuple[tuple[int, float], ...]
    """(step, score in percent) of every evaluation on dev."""
    noise: int = 0
    """Percentage of words with an error in the test part."""
    speed: float | None = None
    """Words per second in prediction."""

    @property
    def key(self) -> tuple[str, str, int, int, str, int]:
        """What distinguishes a result from all others of a size."""
        return self.task, self.data, self.share, self.noise, self.variant, self.seed


def key_of(run: Run, test: Corpus) -> tuple[str, str, int, int, str, int]:
    """Return the key of the result of a run on a test part."""
    return run.task, test.data, run.share, test.noise, run.variant, run.seed


def scores_file(size: str) -> Path:
    """Return the file of the results of a size."""
    return Path("scores", f"{size}.jsonl")


def read(path: Path) -> list[Result]:
    """Return the results in a file; an empty list if there is no file."""
    lines = srsly.read_jsonl(path) if path.is_file() else []
    return [Result(**{**line, "dev": tuple(map(tuple, line["dev"]))}) for line in lines]


def add(path: Path, results: Iterable[Result]) -> None:
    """Add results to a file, which is sorted, so that new results only add lines."""
    by_key = {result.key: result for result in [*read(path), *results]}
    path.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_jsonl(path, [asdict(by_key[key]) for key in sorted(by_key)])


class Results:
    """All results, with a look-up by their fields. Results on text with errors are separate."""

    def __init__(self, results: Iterable[Result], plan: Plan) -> None:
        results = list(results)
        self.all = [result for result in results if not result.noise]
        self.noisy = [result for result in results if result.noise]
        self.plan = plan

    def of(self, **wanted: object) -> list[Result]:
        """Return the results that have these values, such as task="ner", ordered by seed."""
        found = (
            result
            for result in self.all
            if all(getattr(result, name) == value for name, value in wanted.items())
        )
        return sorted(found, key=lambda result: result.seed)

    @property
    def sets(self) -> list[tuple[str, str]]:
        """The pairs (task, data set) of all results, with tasks in the order of `METRICS`."""
        order = list(METRICS)
        found = {(result.task, result.data) for result in self.all}
        return sorted(found, key=lambda pair: (order.index(pair[0]), pair[1]))

    @property
    def trained_sets(self) -> list[tuple[str, str]]:
        """The pairs of `sets` with a training."""
        return [pair for pair in self.sets if self.plan.trained_on(*pair) is None]

    def label(self, task: str, data: str) -> str:
        """Return the label of a set: "ner, WNUT17", or "qa, SubjQA \u2192 XQuAD" if the training was on another set."""
        sets = filter(None, [self.plan.trained_on(task, data), data])
        shown = " \u2192 ".join(self.plan.names.get(name, name) for name in sets)
        return f"{task}, {shown}"

    def label_with_metric(self, task: str, data: str) -> str:
        """Return the label of a set with its metric, such as "ner, WNUT17 (F1)"."""
        return f"{self.label(task, data)} ({METRICS[task][1]})"


def mean(results: Iterable[Result]) -> float:
    """Return the mean of the scores."""
    return statistics.mean(result.score for result in results)


def fewer_errors(score: float, baseline: float) -> float:
    """Return the percentage of the baseline's errors that are avoided; both scores are in percent, and below 100."""
    return 100 * (score - baseline) / (100 - baseline)
