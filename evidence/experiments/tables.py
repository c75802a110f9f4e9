"""The tables of the report, as Markdown. Each is empty if there is no such result."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly

from spacy_elmo.lab.contexts import Occurrence

from .results import METRICS, Result, Results, fewer_errors, mean
from .variants import own_variant

RIVALS = ("baseline", "vectors", "elmo", "elmo_vectors", "elmo_tuned")
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


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a caption, with columns of numbers aligned to the right; empty if there are no rows.

    "-" is a missing number.
    """
    if not rows:
        return ""
    digits = set("0123456789-")
    alignment = [
        "---:" if all(cell[:1] in digits for cell in column) else "---"
        for column in zip(*rows, strict=True)
    ]
    lines = [[cell.replace("|", "\\|") for cell in line] for line in (columns, alignment, *rows)]
    return f"*{caption}*\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tasks(results: Results) -> str:
    """Return the scores of each set without ELMo, with ELMo and with its rivals (table 1 of the paper)."""
    shown = [name for name in RIVALS if results.of(variant=name, share=100)]
    rows = []
    for task, data in results.sets:
        scored = {n: results.of(task=task, data=data, variant=n, share=100) for n in shown}
        baseline, elmo = scored.get("baseline"), scored.get("elmo")
        if baseline:
            fewer = f"{fewer_errors(mean(elmo), mean(baseline)):.1f}%" if elmo else "-"
            rows.append(
                [results.label(task, data), METRICS[task][1], *map(_score, scored.values()), fewer]
            )
    return table(
        "Test scores in percent, ± standard deviation (n seeds), without ± of one seed; the last column is the share of"
        " the baseline's errors that elmo removes",
        ["task and data", "metric", *shown, "fewer errors"],
        rows,
    )


def gains(results: Results) -> str:
    """Return sentences on the sets where ELMo helps more than seeds differ."""
    statements: dict[str, list[str]] = {
        "Every seed with ELMo is above every seed without it (with three on either side, chance alone does that once in"
        " twenty sets) on": [],
        "Every seed with ELMo is below every seed without it on": [],
        "Seeds with and without ELMo overlap, so that nothing is decided, on": [],
        "With a single seed, so that chance cannot be ruled out, ELMo is above the baseline on": [],
        "With a single seed ELMo is not above the baseline on": [],
    }
    above, below, overlap, higher, lower = statements.values()
    for task, data in results.sets:
        baseline, elmo = (
            [result.score for result in results.of(task=task, data=data, variant=name, share=100)]
            for name in ("baseline", "elmo")
        )
        if not (baseline and elmo):
            continue
        if min(len(baseline), len(elmo)) == 1:
            names = higher if statistics.mean(elmo) > statistics.mean(baseline) else lower
        elif min(elmo) > max(baseline):
            names = above
        else:
            names = below if max(elmo) < min(baseline) else overlap
        names.append(results.label(task, data))
    return " ".join(f"{text}: {'; '.join(names)}." for text, names in statements.items() if names)


def weighting(results: Results) -> str:
    """Return the scores for each weighting of the layers (table 2 of the paper)."""
    what = (
        "the layers that are read and how they are weighted (λ stands against the loss of the component: that of srl is"
        " the mean over the tokens, that of spaCy's ner a sum, so that λ = 1 is weaker there than in the paper)"
    )
    return _first_seed(results, WEIGHTINGS, what)


def place(results: Results) -> str:
    """Return the scores for each position of ELMo in the model (table 3 of the paper)."""
    what = (
        "the place of ELMo: beside what the window encoder reads or writes. In ner the encoder stands for the paper's"
        " LSTM, so these are its input and output; elsewhere what it writes is read by an LSTM, so that is the paper's"
        " input, and its output was not tried"
    )
    return _first_seed(results, PLACES, what)


def _first_seed(results: Results, variants: dict[str, str], what: str) -> str:
    rows = []
    for task, data in results.sets:
        scored = {
            name: results.of(task=task, data=data, variant=name, share=100, seed=0)
            for name in variants
        }
        # elmo and the baseline are also in other tables, so a row needs a variant that only this table has.
        if any(scored[name] for name in variants if name not in RIVALS):
            if (own := own_variant(task)) in scored:
                scored[own] = results.of(task=task, data=data, variant="elmo", share=100, seed=0)
            rows.append([results.label(task, data), *map(_score, scored.values())])
    caption = f"Test scores in percent by {what}; seed 0"
    return table(caption, ["task and data", *variants.values()], rows)


def shares(results: Results) -> str:
    """Return the scores for each share of the training data (figure 1 of the paper)."""
    of_parts = [result for result in results.all if result.share != 100]
    shown = [name for name in RIVALS if any(result.variant == name for result in of_parts)]
    rows = []
    for task, data in results.sets:
        of_set = results.of(task=task, data=data)
        used = sorted({result.share for result in of_set})
        # A small share often has fewer seeds. All rows use only these seeds.
        seeds = {result.seed for result in of_set if result.share == used[0]}
        for share in used if used != [100] else []:
            scored = [
                [r for r in of_set if (r.variant, r.share) == (name, share) and r.seed in seeds]
                for name in shown
            ]
            documents = next((result.documents for each in scored for result in each), 0)
            size = [f"{share} %", f"{documents:,}"]
            rows.append([results.label(task, data), *size, *map(_score, scored)])
    return table(
        "Test scores in percent by the share of the training documents, ± standard deviation (n seeds), without ± of"
        " seed 0",
        ["task and data", "training data", "documents", *shown],
        rows,
    )


def noise(results: Results) -> str:
    """Return the scores on text with errors and on the same text without errors."""
    shown = [name for name in RIVALS if any(result.variant == name for result in results.noisy)]
    rows = []
    for task, data in results.sets:
        of_set = [r for r in [*results.all, *results.noisy] if (r.task, r.data) == (task, data)]
        amounts = sorted({result.noise for result in of_set})
        for amount in amounts if amounts != [0] else []:
            scored = (
                [r for r in of_set if (r.variant, r.noise, r.share) == (name, amount, 100)]
                for name in shown
            )
            rows.append([results.label(task, data), f"{amount} %", *map(_score, scored)])
    return table(
        "Test scores in percent, ± standard deviation (n seeds), by the share of the words that have an error like"
        " those of optical character recognition; the pipelines were trained on text without these",
        ["task and data", "words with errors", *shown],
        rows,
    )


def updates(results: Results) -> str:
    """Return the number of updates after which ELMo reaches the best dev score of the baseline."""
    rows = []
    for task, data in results.trained_sets:
        for baseline in results.of(task=task, data=data, variant="baseline", share=100):
            for elmo in results.of(
                task=task, data=data, variant="elmo", share=100, seed=baseline.seed
            ):
                best, score = max(baseline.dev, key=lambda judged: (judged[1], -judged[0]))
                needed = next((step for step, reached in elmo.dev if reached >= score), None)
                cells = [str(baseline.seed), f"{best:,}{' (end)' * (best == baseline.dev[-1][0])}"]
                cells.append("never" if needed is None else f"{needed:,}")
                fewer = needed is not None and needed <= best and best
                cells.append(f"{1 - needed / best:.0%}" if fewer else "-")
                rows.append([results.label(task, data), *cells])
    return table(
        "The step at which the baseline is best on dev, by the score that chooses its best step, and the first at which"
        " elmo is as good there; as coarse as the steps that are judged, ten to fifteen in a run. (end): the last step,"
        " so that a longer run might be better still",
        ["task and data", "seed", "baseline's best", "elmo as good at", "fewer updates"],
        rows,
    )


def minutes(results: Results) -> str:
    """Return the minutes of the runs and the speed of their pipelines."""
    rows = []
    for task, data in results.trained_sets:
        scored = [
            results.of(task=task, data=data, variant=name, share=100)
            for name in ("baseline", "elmo")
        ]
        if all(scored):
            cells = [f"{statistics.median(r.minutes for r in each):.1f}" for each in scored]
            rows.append([results.label(task, data), *cells, *map(_median_speed, scored)])
    return table(
        "Minutes of one core for a run, its scoring included, and words that its pipeline predicts per second of the"
        " clock on one core, beside other runs (-: not kept); medians of the seeds",
        ["task and data", "baseline", "elmo", "baseline, words/s", "elmo, words/s"],
        rows,
    )


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


def senses(folder: Path) -> str:
    """Return the scores of word senses in each layer (table 5 of the paper), from `spacy elmo probe --out`."""
    found = _read(folder / "word-sense.json")
    if found is None:
        return ""
    files = {Path(name).stem: scores for name, scores in found["files"].items()}
    columns: Mapping[str, Any] = {**files, "all": found}
    rows = [
        [f"layer {layer}", *(_percent(scores["layers"][layer]) for scores in columns.values())]
        for layer in range(len(found["layers"]))
    ]
    baselines = {
        "most_frequent": "most frequent sense in training",
        "first": "first sense of WordNet",
    }
    for key, name in baselines.items():
        if found[key]:
            rows.append([name, *(_percent(scores[key]) for scores in columns.values())])
    unseen = "have no answer here; the paper gives them the first sense"
    if found["first"]:
        unseen = "get the first sense, as in the paper"
    return table(
        f"Word senses by nearest neighbour: F1 in percent, {found['instances']:,} words, of which"
        f" {found['ambiguous']:,} have several senses in training; words that do not occur in training {unseen}",
        ["vectors", *columns],
        rows,
    )


def tags(folder: Path) -> str:
    """Return the scores of parts of speech in each layer (table 6 of the paper), from `spacy elmo probe --out`."""
    found = _read(folder / "part-of-speech.json")
    if found is None:
        return ""
    rows = [[f"layer {layer}", _percent(share)] for layer, share in enumerate(found["layers"])]
    rows.append(["most frequent tag", _percent(found["most_frequent"])])
    return table(
        f"Parts of speech by a linear classifier: accuracy in percent, {found['words']:,} words,"
        f" {found['tags']} tags",
        ["vectors", "accuracy"],
        rows,
    )


def neighbors(folder: Path) -> str:
    """Return the nearest use of each query's word in each layer (table 4 of the paper), from `neighbors --out`."""
    found = _read(folder / "neighbors.json")
    if found is None:
        return ""
    rows = [
        [_excerpt(query), view, f"{near['cosine']:.2f}", _excerpt(near)]
        for query in found["queries"]
        for view, (near, *_) in query["neighbors"].items()
    ]
    sources = dict.fromkeys(use["source"].rpartition(":")[0] for use in found["occurrences"])
    caption = f"Of {len(found['occurrences']):,} uses in {', '.join(sources)}, the one with the most similar vector"
    return table(caption, ["sentence", "vectors", "cosine", "nearest use"], rows)


def _excerpt(record: dict[str, Any]) -> str:
    names = (field.name for field in dataclasses.fields(Occurrence))
    return Occurrence(**{name: record[name] for name in names}).excerpt()


def _read(path: Path) -> Any:
    return srsly.read_json(path) if path.is_file() else None


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
