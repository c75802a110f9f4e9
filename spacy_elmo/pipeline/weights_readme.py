"""Function that writes the README of a package of weights. The README is a model card for Hugging Face."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from string import Template
from typing import Any

import srsly

from ..bilm.words.spelling import Spelling
from .pipeline_meta import corpus_sources

_CREATIVE_COMMONS = re.compile(r"CC0-1\.0|CC-BY(-NC)?(-SA|-ND)?-(2\.0|2\.5|3\.0|4\.0)")
_TRAINING_FIELDS = (
    "language",
    "tokenizer",
    "casing",
    "licence",
    "author",
    "corpus",
    "tokens_seen",
)
_SCORE_FIELDS = {
    "task": str,
    "data": str,
    "metric": str,
    "without": float,
    "with": float,
    "seeds": int,
}
"""Type of each field of a test score. The entry `evaluation` in the card of a weights file is a list of such
scores."""

_README = Template("""\
---
$metadata---

# $distribution

`$name` is a bidirectional LSTM language model (biLM) over characters for spacy-elmo. It gives each token a vector that
depends on its sentence.

## Use

In the folder of this file, `python -m pip install .` installs the weights.

```python
import spacy

nlp = spacy.blank("$language")
nlp.add_pipe("elmo", config={"weights": "$name"})
```

`doc._.elmo` then has a vector for each token.
$limits
## Training

| | |
|---|---|
$training
$sources$evaluation""")


def model_card(name: str, card: Mapping[str, Any], spelling: Spelling) -> str:
    """Return the README of a package of weights, with metadata for Hugging Face and sections on use, limits,
    training and evaluation.

    Args:
        name: the name that users write as `weights = NAME`, such as la_elmo_mini_v1.
        card: the card of the weights. The entry `limits` is a list of sentences. The entry `evaluation` is a
            list of test scores. Each score is a dict with the keys `task` (a task name of Hugging Face),
            `data`, `metric`, `without` (the score without ELMo, in percent), `with` (the score of the same
            pipeline with ELMo) and `seeds` (the number of random seeds).
        spelling: the rule by which the biLM changes the spelling of words before it reads them.

    Raises:
        ValueError: `limits` or `evaluation` is not in this format.
    """
    scores = _scores(card)
    perplexity = _perplexity(card)
    return _README.substitute(
        metadata=srsly.yaml_dumps(_metadata(name, card, scores, perplexity)),
        distribution=name.rpartition("_v")[0].replace("_", "-"),
        name=name,
        language=card["language"],
        limits=_list("\n## Limits\n\n", _limits(card)),
        training="\n".join([*_training_rows(card), *_spelling_row(spelling)]),
        sources=_list("\nSources of the text:\n\n", _sources(card)),
        evaluation=_evaluation(scores, perplexity),
    )


def training_words(card: object) -> int:
    """Return the number of training words of a model and of the models that its training started from.

    Args:
        card: the card of the weights. Anything but a mapping counts as 0 words.
    """
    if not isinstance(card, Mapping):
        return 0
    return card.get("tokens_seen", 0) + training_words(card.get("init"))


def creative_commons(licence: str) -> str | None:
    """Return the SPDX name of a Creative Commons licence, such as CC-BY-SA-4.0. For any other licence, return
    None."""
    name = re.sub(r"[^A-Z0-9.]+", "-", licence.upper()).strip("-")
    return name if _CREATIVE_COMMONS.fullmatch(name) else None


def _metadata(
    name: str,
    card: Mapping[str, Any],
    scores: list[dict[str, Any]],
    perplexity: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the metadata of the model card as a dict, with the test scores in the entry `model-index`."""
    licence = str(card["licence"])
    known = creative_commons(licence)
    results = [
        _result(score["task"], score["data"], score["metric"], score["with"]) for score in scores
    ]
    if perplexity:
        value = round(perplexity["mean"], 1)
        results.append(_result("text-generation", "held-out text", "perplexity", value))
    return {
        "language": str(card["language"]),
        **({"license": known.lower()} if known else {"license": "other", "license_name": licence}),
        "library_name": "spacy-elmo",
        "pipeline_tag": "feature-extraction",
        "tags": ["spacy", "elmo"],
        **({"model-index": [{"name": name, "results": results}]} if results else {}),
    }


def _result(task: str, data: str, metric: str, value: float) -> dict[str, Any]:
    kind = re.sub(r"\W+", "-", data.lower()).strip("-")
    return {
        "task": {"type": task},
        "dataset": {"type": kind, "name": data},
        "metrics": [{"type": metric.lower(), "value": value}],
    }


def _scores(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Check and return the test scores in the entry `evaluation` of the card (see `model_card`)."""
    scores = card.get("evaluation") or []
    if not isinstance(scores, list):
        raise ValueError(f"evaluation of the card is {scores!r}: it must be a list of scores")
    for score in scores:
        wrong = [
            field
            for field, kind in _SCORE_FIELDS.items()
            if not isinstance(score, dict)
            or not isinstance(score.get(field), (int, float) if kind is float else kind)
        ]
        if wrong:
            raise ValueError(
                f"A score in evaluation of the card is {score!r}, without a valid {', '.join(wrong)}. A score needs"
                f" {', '.join(_SCORE_FIELDS)}"
            )
    return scores


def _limits(card: Mapping[str, Any]) -> list[str]:
    limits = card.get("limits") or []
    if not isinstance(limits, list):
        raise ValueError(f"limits of the card is {limits!r}: it must be a list of sentences")
    return [str(limit) for limit in limits]


def _perplexity(card: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the entry `perplexity` (results on held-out text), which `pretrain` writes into the card; None
    if the card has no complete entry."""
    perplexity = card.get("perplexity")
    needed = ("mean", "targets", "unk_share", "vocab_size")
    if isinstance(perplexity, Mapping) and all(
        isinstance(perplexity.get(field), int | float) for field in needed
    ):
        return perplexity
    return None


def _evaluation(scores: list[dict[str, Any]], perplexity: Mapping[str, Any] | None) -> str:
    """Return the README's section on evaluation; an empty string if there are no scores and no perplexity."""
    parts = []
    if scores:
        rows = [
            f"| {_cell(score['data'])} | {_cell(score['metric'])} | {score['without']:.1f} |"
            f" {score['with']:.1f} | {score['seeds']} |"
            for score in scores
        ]
        parts += [
            "Test scores of the same pipeline without and with these vectors, frozen, in %; means of the seeds:",
            "\n".join(
                [
                    "| data | metric | without ELMo | with ELMo | seeds |",
                    "|---|---|---:|---:|---:|",
                    *rows,
                ]
            ),
        ]
    if perplexity:
        parts.append(
            f"Held-out perplexity, mean of both directions: {perplexity['mean']:.1f}"
            f" ({perplexity['targets']:,} targets, {perplexity['vocab_size']:,} classes,"
            f" {perplexity['unk_share']:.1%} of the targets `<UNK>`)."
        )
    return "\n## Evaluation\n\n" + "\n\n".join(parts) + "\n" if parts else ""


def _training_rows(card: Mapping[str, Any]) -> list[str]:
    """Return the lines of the README's table on training, one line for each known entry of the card."""
    rows = []
    for field in _TRAINING_FIELDS:
        if value := card.get(field):
            if isinstance(value, int):
                text = f"{value:,}"
            else:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            rows.append(_row(field.replace("_", " "), text))
    if words := training_words(card.get("init")):
        rows.append(_row("tokens seen by the initial weights", f"{words:,}"))
    if isinstance(teacher := card.get("teacher"), Mapping):
        text = ", ".join(str(teacher[field]) for field in ("name", "licence") if teacher.get(field))
        rows.append(_row("teacher", text or "unknown"))
    return rows


def _spelling_row(spelling: Spelling) -> list[str]:
    """Return a list with one table line about the biLM's spelling rule; an empty list if the rule changes no
    word."""
    rules: list[str] = [spelling.form] if spelling.form else []
    for character, text in spelling.replace:
        shown = "".join(map(_visible, text))
        rules.append(
            f"{_visible(character)} becomes {shown}"
            if text
            else f"{_visible(character)} is dropped"
        )
    return [_row("spelling before reading", ", ".join(rules))] if rules else []


def _visible(character: str) -> str:
    """Return the character if it is visible without other characters. Otherwise, return its Unicode name, for
    example for a combining accent."""
    is_visible = character.isprintable() and not unicodedata.combining(character)
    return (
        character if is_visible else unicodedata.name(character, f"U+{ord(character):04X}").lower()
    )


def _row(name: str, text: str) -> str:
    return f"| {name} | {_cell(text)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _sources(card: Mapping[str, Any]) -> list[str]:
    """Return one line of text for each source of the biLM's training text."""
    return [", ".join(source.values()) for source in corpus_sources(card.get("sources"))]


def _list(heading: str, items: list[str]) -> str:
    """Return a heading and a Markdown list of the items; an empty string if there are no items."""
    lines = [f"* {' '.join(item.split())}\n" for item in items]
    return heading + "".join(lines) if lines else ""
