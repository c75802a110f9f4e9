"""The tables of the report."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .results import METRIC_NAMES, Result, Results, fewer_errors, mean, percent, updates_needed
from .variants import own_variant

RIVALS = ("baseline", "vectors", "pretrain", "elmo", "elmo_vectors")
WEIGHTINGS = {
    "baseline": "baseline",
    "elmo_top": "top layer",
    "elmo_average": "average",
    "elmo_l2_1": "mix, λ = 1",
    "elmo_l2_0001": "mix, λ = 0.001",
    "elmo": "mix, λ = 0",
}
PLACES = {
    "baseline": "baseline",
    "elmo_input": "before the encoder",
    "elmo_both": "before and after",
    "elmo_output": "after it",
}
_PROJECT = Path(__file__).parents[1]


class Table(NamedTuple):
    """A table of texts with a caption and column names."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def numeric(self) -> list[bool]:
        """True for each column that has only numbers. "-" is a missing number."""
        columns = zip(*self.rows, strict=True)
        return [all(cell[:1] in set("0123456789-") for cell in column) for column in columns]

    def markdown(self) -> str:
        """Return the table as Markdown, with numbers aligned to the right."""
        alignment = ["---:" if numeric else "---" for numeric in self.numeric]
        lines = [self.columns, alignment, *self.rows]
        escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
        body = "\n".join("| " + " | ".join(line) + " |" for line in escaped)
        return f"*{self.caption}*\n\n{body}"


def tasks(results: Results) -> Table | None:
    """Return the scores of each set without ELMo, with ELMo and with its rivals (table 1 of the paper).

    It is None if no baseline has a result.
    """
    shown = [name for name in RIVALS if results.of(variant=name, share=100)]
    rows = []
    for task, data in results.sets:
        by_variant = {
            name: results.of(task=task, data=data, variant=name, share=100) for name in shown
        }
        if not by_variant.get("baseline"):
            continue
        row = [
            results.label(task, data),
            METRIC_NAMES[task],
            *(_score(scored) for scored in by_variant.values()),
        ]
        elmo, baseline = by_variant.get("elmo"), by_variant["baseline"]
        row.append(percent(fewer_errors(mean(elmo), mean(baseline)) if elmo else None))
        rows.append(row)
    caption = (
        "Test scores in percent, ± standard deviation (n seeds), without ± of one seed; the last column is the share of"
        " the baseline's errors that elmo removes"
    )
    columns = ["task and data", "metric", *shown, "fewer errors"]
    return Table(caption, columns, rows) if rows else None


def weighting(results: Results) -> Table | None:
    """Return the scores for each weighting of the layers (table 2 of the paper); None if there is no such result."""
    what = (
        "the layers that are read and how they are weighted (λ stands against the loss of the component: that of srl is"
        " the mean over the tokens, that of spaCy's ner a sum, so that λ = 1 is weaker there than in the paper)"
    )
    return _first_seed(results, WEIGHTINGS, what)


def place(results: Results) -> Table | None:
    """Return the scores for each position of ELMo in the model (table 3 of the paper); None if there is no such
    result."""
    what = (
        "the place of ELMo: beside what the window encoder reads or writes. In ner the encoder stands for the paper's"
        " LSTM, so these are its input and output; elsewhere what it writes is read by an LSTM, so that is the paper's"
        " input, and its output was not tried"
    )
    return _first_seed(results, PLACES, what)


def _first_seed(results: Results, variants: dict[str, str], what: str) -> Table | None:
    rows = []
    for task, data in results.sets:
        by_variant = {
            name: results.of(task=task, data=data, variant=name, share=100, seed=0)
            for name in variants
        }
        # elmo and the baseline are also in other tables, so a row needs a variant that only this table has.
        if any(by_variant[name] for name in variants if name not in RIVALS):
            own = own_variant(task, _PROJECT)
            if own in by_variant:
                by_variant[own] = results.of(
                    task=task, data=data, variant="elmo", share=100, seed=0
                )
            rows.append([results.label(task, data), *map(_score, by_variant.values())])
    caption = f"Test scores in percent by {what}; seed 0"
    return Table(caption, ["task and data", *variants.values()], rows) if rows else None


def shares(results: Results) -> Table | None:
    """Return the scores for each share of the training data (figure 1 of the paper); None if there is no such
    result."""
    of_parts = [result for result in results.all if result.share != 100]
    shown = [name for name in RIVALS if any(result.variant == name for result in of_parts)]
    rows = []
    for task, data in results.sets:
        of_set = results.of(task=task, data=data)
        used = sorted({result.share for result in of_set})
        if used == [100]:
            continue
        # A small share often has fewer seeds. All rows use only these seeds.
        seeds = {result.seed for result in of_set if result.share == used[0]}
        for share in used:
            scored = [
                [
                    result
                    for result in of_set
                    if (result.variant, result.share) == (name, share) and result.seed in seeds
                ]
                for name in shown
            ]
            documents = next((result.documents for scores in scored for result in scores), 0)
            size = [f"{share} %", f"{documents:,}"]
            rows.append([results.label(task, data), *size, *(_score(scores) for scores in scored)])
    columns = ["task and data", "training data", "documents", *shown]
    caption = (
        "Test scores in percent by the share of the training documents, ± standard deviation (n seeds), without ± of"
        " seed 0"
    )
    return Table(caption, columns, rows) if rows else None


def noise(results: Results) -> Table | None:
    """Return the scores on text with errors and on the same text without errors; None if there is no such result."""
    shown = [name for name in RIVALS if any(result.variant == name for result in results.noisy)]
    rows = []
    for task, data in results.sets:
        of_set = [r for r in [*results.all, *results.noisy] if (r.task, r.data) == (task, data)]
        amounts = sorted({result.noise for result in of_set})
        for amount in amounts if amounts != [0] else []:
            found = [
                [r for r in of_set if (r.variant, r.noise, r.share) == (name, amount, 100)]
                for name in shown
            ]
            cells = map(_score, found)
            rows.append([results.label(task, data), f"{amount} %", *cells])
    caption = (
        "Test scores in percent, ± standard deviation (n seeds), by the share of the words that have an error like"
        " those of optical character recognition; the pipelines were trained on text without these"
    )
    return Table(caption, ["task and data", "words with errors", *shown], rows) if rows else None


def updates(results: Results) -> Table | None:
    """Return the number of updates after which ELMo reaches the best dev score of the baseline; None if no set has
    both results."""
    rows = []
    for task, data in results.trained_sets:
        pairs = [
            (baseline, elmo)
            for baseline in results.of(task=task, data=data, variant="baseline", share=100)
            for elmo in results.of(
                task=task, data=data, variant="elmo", share=100, seed=baseline.seed
            )
        ]
        for baseline, elmo in pairs:
            best, needed = updates_needed(baseline, elmo)
            reached, fewer = "never", "-"
            if needed is not None:
                reached = f"{needed:,}"
                fewer = f"{1 - needed / best:.0%}" if needed <= best and best else "-"
            last = " (end)" if best == baseline.dev[-1][0] else ""
            cells = [str(baseline.seed), f"{best:,}{last}", reached, fewer]
            rows.append([results.label(task, data), *cells])
    caption = (
        "The step at which the baseline is best on dev, by the score that chooses its best step, and the first at which"
        " elmo is as good there; as coarse as the steps that are judged, ten to fifteen in a run. (end): the last step,"
        " so that a longer run might be better still"
    )
    columns = ["task and data", "seed", "baseline's best", "elmo as good at", "fewer updates"]
    return Table(caption, columns, rows) if rows else None


def minutes(results: Results) -> Table | None:
    """Return the minutes of the runs and the speed of their pipelines; None if no set has both results."""
    rows = []
    for task, data in results.trained_sets:
        scored = {
            name: results.of(task=task, data=data, variant=name, share=100)
            for name in ("baseline", "elmo")
        }
        if all(scored.values()):
            cells = [statistics.median(r.minutes for r in scores) for scores in scored.values()]
            speeds = [_median_speed(scores) for scores in scored.values()]
            rows.append([results.label(task, data), *(f"{cell:.1f}" for cell in cells), *speeds])
    caption = (
        "Minutes of one core for a run, its scoring included, and words that its pipeline predicts per second of the"
        " clock on one core, beside other runs (-: not kept); medians of the seeds"
    )
    columns = ["task and data", "baseline", "elmo", "baseline, words/s", "elmo, words/s"]
    return Table(caption, columns, rows) if rows else None


def _median_speed(results: Sequence[Result]) -> str:
    """Return the median speed, rounded to two digits, because other runs at the same time may halve the speed of a
    seed."""
    speeds = [result.speed for result in results if result.speed is not None]
    return f"{float(f'{statistics.median(speeds):.2g}'):,.0f}" if speeds else "-"


def _score(scored: Sequence[Result]) -> str:
    if not scored:
        return "-"
    if len(scored) == 1:
        return f"{mean(scored):.1f}"
    deviation = statistics.stdev(result.score for result in scored)
    return f"{mean(scored):.1f} ± {deviation:.1f} ({len(scored)})"
