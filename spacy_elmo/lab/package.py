"""Packages of weights for pip. When a package is installed, `weights = NAME` of the component `elmo` loads its file."""

from __future__ import annotations

import dataclasses
import json
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

import srsly
import torch

from ..bilm.spelling import Spelling
from ..bilm.weights import Weights
from ..files import atomic_folder
from ..pipeline.pipeline_meta import corpus_sources
from ..weight_names import ENTRY_POINTS, bundled_names

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_v[0-9]+")
_CREATIVE_COMMONS = re.compile(r"CC0-1\.0|CC-BY(-NC)?(-SA|-ND)?-(2\.0|2\.5|3\.0|4\.0)")
_TRAINING_FIELDS = (
    "language", "tokenizer", "casing", "licence", "author", "corpus", "tokens_seen",
)  # fmt: skip
_SCORE_FIELDS = ("task", "data", "metric", "without", "with", "seeds")

PYPROJECT = Template("""\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "$version"
description = $description
readme = "README.md"
license = "$licence"
dependencies = $requirements

[project.entry-points.$group]
$name = "$entry"

[tool.setuptools]
packages = ["$module"]
package-data = {$module = $files}
""")
"""pyproject.toml of a package of weights, or of a pipeline in models/."""
_MODULE = Template('''\
"""The biLM $name for spacy-elmo. spacy-elmo finds it through the entry point in pyproject.toml."""

from pathlib import Path

BILM = {
    "language": "$language",
    "path": Path(__file__).with_name("$name.safetensors"),
}
''')
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


def write_package(
    weights: Weights,
    name: str,
    out: Path,
    *,
    version: str | None = None,
    head: bool = False,
    force: bool = False,
) -> Path:
    """Write a Python package with a weights file (in float16, without the softmax), a README and an entry point.

    Args:
        weights: the biLM; its card must contain a language and a licence.
        name: the name that users write as `weights = NAME`, such as `la_elmo_mini_v1`: the name of the package, and
            the version of the model.
        version: version of the package; None: that at the end of `name`, where v1 becomes 1.0.0.
        head: also write the weights with the head (softmax) to `head_file(name, out)`, in float16. Users need this
            file to continue the pretraining.

    Returns:
        The package's folder, such as `out / "la_elmo_mini"`.
    """
    module, _, model_version = name.rpartition("_v")
    _check(weights, name)
    if head and weights.build_head() is None:
        raise ValueError("The weights have no head to write: leave out `--head`")
    fields: dict[str, str] = {
        "name": name,
        "module": module,
        "distribution": module.replace("_", "-"),
        "version": version or f"{model_version}.0.0",
        "description": rf'"A biLM for spacy-elmo: weights = \"{name}\", language {weights.card["language"]}"',
        "requirements": '["spacy-elmo"]',
        "group": ENTRY_POINTS,
        "entry": f"{module}:BILM",
        "files": '["*.safetensors"]',
        "language": weights.card["language"],
        "licence": licence_expression(str(weights.card["licence"])),
    }
    readme = model_card(name, weights.card, weights.config.spelling)
    folder, with_head = out / module, head_file(name, out)
    for result in (folder, with_head) if head else (folder,):
        if result.exists() and not force:
            raise FileExistsError(f"{result} exists; to replace it, set force (`--force`)")
    out.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as partial:
        (partial / module).mkdir()
        (partial / "pyproject.toml").write_text(PYPROJECT.substitute(fields), encoding="utf8")
        (partial / module / "__init__.py").write_text(_MODULE.substitute(fields), encoding="utf8")
        (partial / "README.md").write_text(readme, encoding="utf8")
        _in_float16(weights.without_head()).save(partial / module / f"{name}.safetensors")
    if head:
        _in_float16(weights).save(with_head)
    return folder


def head_file(name: str, out: Path) -> Path:
    """Return the path of the file with the weights and the head, which is next to the package folder."""
    return out / f"{name}_with_head.safetensors"


def model_card(name: str, card: Mapping[str, Any], spelling: Spelling) -> str:
    """Return the README of a package of weights, a model card for Hugging Face.

    Args:
        card: the card of the weights. `limits` is a list of sentences. `evaluation` is a list of test scores: each has
            a `task` (a task name of Hugging Face), `data`, `metric`, `without` and `with` (the score in % without
            ELMo, and of the same pipeline with ELMo) and `seeds` (the number of random seeds).
        spelling: the rule by which the biLM changes the spelling of words before it reads them.
    """
    scores = card.get("evaluation") or []
    for score in scores:
        if missing := [field for field in _SCORE_FIELDS if field not in score]:
            raise ValueError(f"A score in evaluation of the card lacks {missing}: {score}")
    perplexity = card.get("perplexity")
    return _README.substitute(
        metadata=srsly.yaml_dumps(_metadata(name, card, scores, perplexity)),
        distribution=name.rpartition("_v")[0].replace("_", "-"),
        name=name,
        language=card["language"],
        limits=_list("\n## Limits\n\n", card.get("limits") or []),
        training="\n".join(_training_rows(card, spelling)),
        sources=_list(
            "\nSources of the text:\n\n",
            [", ".join(source.values()) for source in corpus_sources(card.get("sources"))],
        ),
        evaluation=_evaluation(scores, perplexity),
    )


def training_words(card: Mapping[str, Any] | None) -> int:
    """Return the number of training words of a model and of the models that its training started from."""
    return card.get("tokens_seen", 0) + training_words(card.get("init")) if card else 0


def _in_float16(weights: Weights) -> Weights:
    tensors = {key: tensor.to(torch.float16) for key, tensor in weights.tensors.items()}
    return dataclasses.replace(weights, tensors=tensors)


def _check(weights: Weights, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a name for packaged weights. Use lower-case words joined by underscores, with the"
            " version of the model at the end, such as la_elmo_mini_v1"
        )
    if name in bundled_names():
        raise ValueError(f"{name!r} is the name of a bundled biLM: choose another one")
    if missing := [field for field in ("language", "licence") if not weights.card.get(field)]:
        raise ValueError(
            f"The card of the weights has no {' and no '.join(missing)}, which users of a package must know. Set them"
            " with `--lang` and `--licence`"
        )
    # The language becomes a part of a Python module.
    if not re.fullmatch("[a-z]{2,3}", str(weights.card["language"])):
        raise ValueError(
            f"language = {weights.card['language']!r} in the card is not a code of two or three letters; set one with"
            " `--lang`"
        )


def _creative_commons(licence: str) -> str | None:
    """Return the SPDX name of a Creative Commons licence, such as CC-BY-SA-4.0; None for any other licence."""
    name = re.sub(r"[^A-Z0-9.]+", "-", licence.upper()).strip("-")
    return name if _CREATIVE_COMMONS.fullmatch(name) else None


def licence_expression(licence: str) -> str:
    """Return the SPDX expression that pyproject.toml requires."""
    named = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", licence).strip("-")
    return _creative_commons(licence) or named


def _metadata(
    name: str,
    card: Mapping[str, Any],
    scores: list[dict[str, Any]],
    perplexity: Mapping[str, Any] | None,
) -> dict[str, Any]:
    licence = str(card["licence"])
    known = _creative_commons(licence)
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


def _evaluation(scores: list[dict[str, Any]], perplexity: Mapping[str, Any] | None) -> str:
    parts = []
    if scores:
        parts += [
            "Test scores of the same pipeline without and with these vectors, frozen, in %; means of the seeds:",
            "| data | metric | without ELMo | with ELMo | seeds |\n|---|---|---:|---:|---:|\n"
            + "\n".join(
                f"| {_cell(score['data'])} | {_cell(score['metric'])} | {score['without']:.1f} |"
                f" {score['with']:.1f} | {score['seeds']} |"
                for score in scores
            ),
        ]
    if perplexity:
        parts.append(
            f"Held-out perplexity, mean of both directions: {perplexity['mean']:.1f}"
            f" ({perplexity['targets']:,} targets, {perplexity['vocab_size']:,} classes,"
            f" {perplexity['unk_share']:.1%} of the targets `<UNK>`)."
        )
    return "\n## Evaluation\n\n" + "\n\n".join(parts) + "\n" if parts else ""


def _training_rows(card: Mapping[str, Any], spelling: Spelling) -> list[str]:
    """Return the lines of the table on training, one for each known entry of the card."""
    rows = {}
    for field in _TRAINING_FIELDS:
        if value := card.get(field):
            text = f"{value:,}" if isinstance(value, int) else value
            rows[field.replace("_", " ")] = (
                text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
            )
    if words := training_words(card.get("init")):
        rows["tokens seen by the initial weights"] = f"{words:,}"
    if teacher := card.get("teacher"):
        text = ", ".join(str(teacher[field]) for field in ("name", "licence") if teacher.get(field))
        rows["teacher"] = text or "unknown"
    rules: list[str] = [spelling.form] if spelling.form else []
    for character, text in spelling.replace:
        shown = f"becomes {''.join(map(_visible, text))}" if text else "is dropped"
        rules.append(f"{_visible(character)} {shown}")
    if rules:
        rows["spelling before reading"] = ", ".join(rules)
    return [f"| {name} | {_cell(text)} |" for name, text in rows.items()]


def _visible(character: str) -> str:
    """Return the Unicode name of a character that cannot be seen alone, such as a combining accent."""
    if character.isprintable() and not unicodedata.combining(character):
        return character
    return unicodedata.name(character, f"U+{ord(character):04X}").lower()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _list(heading: str, items: list[str]) -> str:
    lines = [f"* {' '.join(str(item).split())}\n" for item in items]
    return heading + "".join(lines) if lines else ""
