"""The scores of finished runs."""

from __future__ import annotations

import json
import re
import runpy
import statistics
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import srsly

from spacy_elmo.files import atomic_file

# This program has the metric of each task.
_TABLE = Path(__file__).parents[2] / "projects" / "compare" / "score_table.py"
_SCORE_TABLE = runpy.run_path(str(_TABLE))
METRIC_NAMES: dict[str, str] = {
    task: metric.name for task, metric in _SCORE_TABLE["METRICS"].items()
}
fewer_errors = _SCORE_TABLE["fewer_errors"]
percent = _SCORE_TABLE["percent"]

_DATASET = re.compile(r"(?P<name>.+?)(-(?P<share>\d+)pct)?(-noise(?P<noise>\d+))?")


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
    """Words per second in prediction; None in the scores of older reports."""

    def file(self, folder: Path) -> Path:
        """Return the file in metrics/SIZE to which a run writes this score. It may not exist."""
        share = f"-{self.share}pct" if self.share != 100 else ""
        noise = f"-noise{self.noise}" if self.noise else ""
        return (
            folder / f"{self.data}{share}{noise}" / f"{self.task}_{self.variant}-{self.seed}.json"
        )


def read_results(folder: Path, planned: Container[Path]) -> list[Result]:
    """Return the results in metrics/SIZE.

    Args:
        planned: the files of planned runs. Other files are ignored.

    Raises:
        ValueError: there are no results, or a file was not written by a run.
    """
    results = []
    for (dataset, task, config), by_seed in _SCORE_TABLE["read_scores"](folder).items():
        for seed, score in by_seed.items():
            path = folder / dataset / f"{config}-{seed}.json"
            if path not in planned:
                continue
            record = record_of(path)
            name = _DATASET.fullmatch(dataset)
            assert name is not None
            results.append(
                Result(
                    task=task,
                    data=name["name"],
                    share=int(name["share"] or 100),
                    variant=config.removeprefix(f"{task}_"),
                    seed=seed,
                    score=score,
                    minutes=record["minutes"],
                    documents=record["documents"],
                    dev=tuple((step, 100 * dev) for step, dev in record["dev"]),
                    noise=int(name["noise"] or 0),
                    speed=srsly.read_json(path).get("speed"),
                )
            )
    return results


def record_of(path: Path) -> dict[str, Any]:
    """Return the record of the run in a file of scores.

    Raises:
        ValueError: the file was not written by `experiments.training`.
    """
    try:
        record: dict[str, Any] | None = json.loads(path.read_text("utf8")).get("run")
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON ({error}); remove it to repeat its run") from error
    if record is None or not {"minutes", "documents", "dev"} <= record.keys():
        raise ValueError(
            f'{path} has no complete entry "run", so experiments.training has not written it; remove it'
        )
    return record


class Results:
    """All results, with a look-up by their fields. Results on text with errors are separate."""

    def __init__(
        self,
        results: Iterable[Result],
        trained_on: Mapping[tuple[str, str], tuple[str, str]] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Store the results.

        Args:
            results: the results, in any order.
            trained_on: for each (task, data set) that is only scored on, the set of the training; see
                `Plan.trained_on`.
            names: display names of data sets; see `Plan.names`.
        """
        results = list(results)
        self.all = [result for result in results if not result.noise]
        self.noisy = [result for result in results if result.noise]
        self._names = names or {}
        self._trained_on = trained_on or {}

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
        """The pairs (task, data set) of all results, with tasks in the order of `METRIC_NAMES`."""
        order = list(METRIC_NAMES)
        found = {(result.task, result.data) for result in self.all}
        return sorted(found, key=lambda pair: (order.index(pair[0]), pair[1]))

    @property
    def trained_sets(self) -> list[tuple[str, str]]:
        """The pairs of `sets` with a training."""
        return [pair for pair in self.sets if pair not in self._trained_on]

    def label(self, task: str, data: str) -> str:
        """Return the label of a set: "ner, WNUT17", or "qa, SubjQA \u2192 XQuAD" if the training was on another set."""
        sets = [data]
        if (task, data) in self._trained_on:
            sets.insert(0, self._trained_on[task, data][1])
        shown = " \u2192 ".join(self._names.get(name, name) for name in sets)
        return f"{task}, {shown}"

    def label_with_metric(self, task: str, data: str) -> str:
        """Return the label of a set with its metric, such as "ner, WNUT17 (F1)"."""
        return f"{self.label(task, data)} ({METRIC_NAMES[task]})"


def read_lines(path: Path) -> list[Result]:
    """Read the results of a file that `write_lines` has written."""
    lines = srsly.read_jsonl(path)
    return [Result(**{**line, "dev": tuple(map(tuple, line["dev"]))}) for line in lines]


def write_lines(results: Iterable[Result], path: Path) -> None:
    """Write results as lines of JSON. They are sorted, so that new results only add lines.

    Args:
        path: the file, which is replaced if it exists.
    """
    ordered = sorted(
        results,
        key=lambda each: (each.task, each.data, each.share, each.noise, each.variant, each.seed),
    )
    with atomic_file(path) as file:
        srsly.write_jsonl(file, map(asdict, ordered))


def mean(results: Iterable[Result]) -> float:
    """Return the mean of the scores."""
    return statistics.mean(result.score for result in results)


def updates_needed(baseline: Result, elmo: Result) -> tuple[int, int | None]:
    """Return the step with the best dev score of the baseline, and the first step at which ELMo reaches this score, or
    None."""
    best_step, best = max(baseline.dev, key=lambda judged: (judged[1], -judged[0]))
    return best_step, next((step for step, score in elmo.dev if score >= best), None)
