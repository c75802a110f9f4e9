"""Report of a run: one HTML page that shows `log.jsonl` and `config.cfg`. The page needs no other file and no
network."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import torch

from ..bilm.head import Head
from ..bilm.model import BiLM
from ..bilm.weights import on_meta_device
from ..files import atomic_write
from .config import PretrainConfig

Row = Mapping[str, Any]
"""A row of `log.jsonl`, with the fields of `Progress`."""


def write_report(out: Path) -> None:
    """Atomically write `report.html` for the run in the folder `out`, from its log and config."""
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text("utf8").splitlines()]
    page = report(rows, PretrainConfig.read(out / "config.cfg"))
    atomic_write(out / "report.html", page.encode("utf8"))


def report(rows: Sequence[Row], config: PretrainConfig) -> str:
    """Return the HTML page of the report: a summary, the curve and the table of the held-out perplexity, the
    model card and the settings.

    Args:
        rows: the rows of the training log, at least one.
    """
    # Values of the card and paths may contain markup characters, so they are escaped.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(Path(__file__).with_suffix(".html").read_text("utf8"))
    evaluated = [row for row in rows if row["dev"] is not None]
    return template.render(
        name=config.card.get("name", "biLM"),
        summary=_summary(rows, config),
        rows=evaluated,
        **_curves(evaluated),
        settings={
            section: {key: _shown(value) for key, value in values.items()}
            for section, values in {
                "card": config.card,
                **config.model_dump(exclude={"card"}),
                "model": config.bilm.to_dict(),
            }.items()
        },
    )


def _shown(value: object) -> str:
    """Return a setting as in a `.cfg` file, but a string without quotation marks."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _summary(rows: Sequence[Row], config: PretrainConfig) -> list[tuple[str, str]]:
    """Return the main numbers of the run, each with its name."""
    last = rows[-1]
    best = next((row["dev"] for row in reversed(rows) if row["best"]), None)
    with on_meta_device():
        modules: list[torch.nn.Module] = [BiLM(config.bilm)]
        if best is not None:
            modules.append(Head(best["vocab_size"], config.bilm.projection))
    parameters = [sum(p.numel() for p in module.parameters()) for module in modules]
    of_steps = f" of {last['total_steps']:,}" if last["total_steps"] else ""
    summary = [
        ("Training words", f"{last['tokens']:,}; {last['epoch']:.2f} epochs, {last['step']:,}{of_steps} steps"),
        ("Minutes", f"{last['minutes']:,.1f} of training steps"),
        ("Parameters", f"{parameters[0]:,}" + "".join(f", and {n:,} in the head" for n in parameters[1:])),
    ]  # fmt: skip
    if best is not None:
        summary += [
            (
                "Best held-out perplexity",
                f"{best['mean']:,.1f}: forward {best['forward']:,.1f}, backward {best['backward']:,.1f}; full softmax"
                f" over {best['vocab_size']:,} classes",
            ),
            (
                "Without <UNK> targets",
                f"{best['mean_known']:,.1f}; {best['unk_share']:.1%} of {best['targets']:,} targets are <UNK>",
            ),
        ]
    return summary


def _curves(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the curves of the perplexity for the template: {direction: points} in a drawing of 640 x 240
    units, and the lowest and the highest perplexity. Infinite values are left out."""
    values = {
        side: [(row["tokens"], row["dev"][side]) for row in rows if math.isfinite(row["dev"][side])]
        for side in ("forward", "backward")
    }
    drawn = [value for points in values.values() for _, value in points]
    if not drawn:
        return {"curves": {}, "lowest": None, "highest": None}
    lowest, highest = min(drawn), max(drawn)
    width = max(rows[-1]["tokens"], 1)
    height = math.log(highest / lowest) or 1.0
    curves = {
        side: " ".join(
            f"{48 + 592 * tokens / width:.1f},{10 + 200 * math.log(highest / value) / height:.1f}"
            for tokens, value in points
        )
        for side, points in values.items()
    }
    return {"curves": curves, "lowest": lowest, "highest": highest}
