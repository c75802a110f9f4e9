"""Report of a run: one HTML page that shows `log.jsonl` and `config.cfg`. The page needs no other file and no
network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import torch
from confection import Config

from ...bilm.config import BiLMConfig
from ...bilm.head import Head
from ...bilm.model import BiLM
from ...bilm.tensors import on_meta_device
from ...files import atomic_write
from ..config import PretrainConfig
from . import chart

Row = Mapping[str, Any]
"""A row of `log.jsonl`, with the fields of `Progress`."""

_MB = 1e6


def write_report(out: Path) -> Path:
    """Atomically write `report.html` for the run in the folder `out`, from all rows of the training log.

    Raises:
        OSError: `log.jsonl` or `config.cfg` is missing, or the disk is full.
        ValueError: the config cannot be read.
    """
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text("utf8").splitlines()]
    config = PretrainConfig.of(Config().from_disk(out / "config.cfg"))
    page = out / "report.html"
    atomic_write(page, report(rows, config).encode("utf8"))
    return page


def report(rows: Sequence[Row], config: PretrainConfig) -> str:
    """Return the HTML page of the report. The page shows the latest perplexity and speed, charts over the
    number of training words, the model card and the settings.

    Args:
        rows: the rows of the training log, at least one.
    """
    # Values of the card and paths may contain markup characters, so they are escaped.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(Path(__file__).with_name("report.html").read_text("utf8"))
    best = next((row["dev"] for row in reversed(rows) if row["best"]), None)
    return template.render(
        name=config.card.get("name", "biLM"),
        figures=_figures(rows, best),
        charts=_charts(rows),
        card=_card(config, best),
        settings=_settings(config),
        chart=chart,
    )


def _figures(rows: Sequence[Row], best: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """Return the main numbers of the run, such as the best perplexity, each as (name, value, remark)."""
    last = rows[-1]
    of_steps = f" of {last['steps']:,}" if last["steps"] else ""
    figures = []
    if best is not None:
        figures += [
            (
                "Held-out perplexity",
                f"{best['mean']:,.1f}",
                f"forward {best['forward']:,.1f}, backward {best['backward']:,.1f};"
                f" full softmax over {best['vocab_size']:,} classes",
            ),
            (
                "Without <UNK> targets",
                f"{best['mean_known']:,.1f}",
                f"{best['unk_share']:.1%} of {best['targets']:,} targets are <UNK>",
            ),
        ]
    return [
        *figures,
        (
            "Training words",
            chart.short(last["tokens"]),
            f"{last['epoch']:.2f} epochs, {last['step']:,}{of_steps} steps",
        ),
        (
            "Minutes",
            f"{last['minutes']:,.1f}",
            f"of training steps, {_speed(last):,.0f} words/s",
        ),
    ]


def _speed(row: Row) -> float:
    return row["tokens"] / max(row["minutes"] * 60, 1e-9)


def _charts(rows: Sequence[Row]) -> list[chart.Chart]:
    scored = [row for row in rows if row["dev"] is not None]
    trained = [row for row in rows if row["step"]]

    def perplexities(number: int) -> str:
        dev = scored[number]["dev"]
        return f"forward {dev['forward']:,.1f}, backward {dev['backward']:,.1f}, {_position(scored[number])}"

    def row_chart(title: str, unit: str, field: str, **options: bool) -> chart.Chart:
        return chart.line_chart(
            title,
            unit,
            [row["tokens"] for row in trained],
            {field: [row[field] for row in trained]},
            lambda number: f"{trained[number][field]:,.4g}, {_position(trained[number])}",
            **options,
        )

    return [
        chart.line_chart(
            "Held-out perplexity",
            "full softmax, logarithmic",
            [row["tokens"] for row in scored],
            {side: [row["dev"][side] for row in scored] for side in ("forward", "backward")},
            perplexities,
            log=True,
        ),
        row_chart("Training loss", "nats per target, sampled softmax if the run samples", "loss"),
        row_chart("Speed", "words per second", "tokens_per_second", from_zero=True),
        row_chart("Learning rate", "", "learn_rate", from_zero=True),
        row_chart("Gradient norm", "before clipping, logarithmic", "grad_norm", log=True),
    ]


def _position(row: Row) -> str:
    return f"step {row['step']:,}, {chart.short(row['tokens'])} words"


def _card(config: PretrainConfig, best: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    shape = config.bilm
    with on_meta_device():
        network = _parameter_count(BiLM(shape))
        head = _parameter_count(Head(best["vocab_size"], shape.projection)) if best else 0
    rows = [
        (
            "network",
            f"{shape.layers} layers of {shape.dim:,} cells per direction, projection {shape.projection:,}:"
            f" vectors of {shape.width:,} numbers, layers 0 to {shape.layers}",
        ),
        ("input", _input(shape)),
        ("parameters", f"{network:,}" + (f", and {head:,} in the head" if head else "")),
        (
            "size",
            f"{4 * (network + head) / _MB:,.1f} MB with the head in float32,"
            f" {2 * network / _MB:,.1f} MB without it in float16",
        ),
    ]
    # A prepared corpus has its own tokenizer.
    if config.paths.corpus is None:
        rows.append(("tokenizer", config.prepare.description))
    return rows + [(name, _shown(value)) for name, value in config.card.items()]


def _parameter_count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _input(shape: BiLMConfig) -> str:
    widths = [width for width, _ in shape.filters]
    return (
        f"UTF-8 bytes of a word, at most {shape.max_characters - 2}; {shape.n_filters:,} filters of"
        f" {min(widths)} to {max(widths)} bytes; highway layers: {shape.highways}"
    )


def _settings(config: PretrainConfig) -> dict[str, list[tuple[str, str]]]:
    """Return {section: [(name of a setting, value)]} for all settings, including default values."""
    sections = {**config.model_dump(exclude={"card"}), "model": config.bilm.to_dict()}
    return {
        section: [(key, _shown(value)) for key, value in values.items()]
        for section, values in sections.items()
    }


def _shown(value: object) -> str:
    """Return a setting as it is written in a `.cfg` file. A string is returned without quotation marks."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
