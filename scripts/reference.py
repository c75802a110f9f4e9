"""Write docs/reference.md, the page of options, from the docstrings of the functions that spaCy finds by name.

python -m scripts.reference

setup.cfg names the functions. A table has a row for each option that the docstring describes under `Args:`, and for
each field of a class in `FIELDS`; the names of other options follow the table. The defaults are those that spaCy and
the commands use. In a docstring, the path of a page (docs/speed.md#anchor) and the name of a section become links.
"""

import configparser
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe
from spacy.language import Language

from scripts.docs_site import title_of
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.pipeline.factory_options import ElmoOptions
from spacy_elmo.pipeline.listen.scalar_mix import MixOptions
from spacy_elmo.pretraining.config import Paths, Prepare, Training

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference.md"
INTRODUCTION = """# Options

Each table lists the options of a config block with their defaults. The config must set *required* options.
"""
GROUPS = {
    "factories": ("Components", "The block of a component names it: `factory = NAME`."),
    "architectures": ("Architectures", "A block of a model names one with `@architectures`."),
    "misc": ("Span getters", "The block `get_spans` of an `elmo` names one with `@misc`."),
    "augmenters": ("Augmenters", "`[corpora.train.augmenter]` names one with `@augmenters`."),
    "callbacks": ("Callback", "`[nlp.after_pipeline_creation]` names it with `@callbacks`."),
    "tokenizers": ("Tokenizer", "`[nlp.tokenizer]` names it with `@tokenizers`."),
}
"""Kind of functions -> title and first sentence of their part of the page."""
FIELDS = {"elmo": ElmoOptions, "spacy-elmo.ElmoListener.v1": MixOptions}
"""Function -> the class whose fields are options of it, too."""
SECTIONS = {"[paths]": Paths, "[prepare]": Prepare, "[model]": BiLMConfig, "[training]": Training}
"""Sections of a pretraining config."""

_DOCSTRINGS = griffe.load("spacy_elmo", search_paths=[ROOT])


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for kind, (title, sentence) in GROUPS.items():
        parts.append(f"## {title}\n\n{sentence}\n")
        parts += [section(name, function) for name, function in registered(kind)]
    parts.append(
        "## Pretraining\n\nThe sections of a pretraining config. The complete configs in [configs](../configs) explain"
        " the values that they set.\n"
    )
    for name, options in SECTIONS.items():
        text = paragraphs(docstring(options).value)[0]
        parts.append(f"### `{name}`\n\n{text}\n\n{table(of_fields(options))}")
    text = "\n".join(parts)
    for name in re.findall(r"^### (`.*`)$", text, re.MULTILINE):
        anchor = re.sub(r"[^\w-]", "", name).lower()
        text = re.sub(rf"(?<!#)(?<!# ){re.escape(name)}", f"[{name}](#{anchor})", text)
    return re.sub(r"(?<![\w/])((?:docs|projects)/[\w/]+\.md)(#[\w-]+)?", _link, text)


def registered(kind: str) -> list[tuple[str, Callable[..., Any]]]:
    """Return the names and the functions of a kind; first those of the pipeline, then those of other components."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf8")
    lines = setup["options.entry_points"][f"spacy_{kind}"].strip().splitlines()
    entries = [re.split(r" = |:", line) for line in lines]
    entries.sort(key=lambda entry: ".components." in entry[1])
    return [(name, getattr(import_module(module), function)) for name, module, function in entries]


def section(name: str, function: Callable[..., Any]) -> str:
    """Return the section of a function: the text of its docstring, and its options."""
    text, described = "", {}
    for part in docstring(function).parse("google"):
        if part.kind is griffe.DocstringSectionKind.text:
            text += part.value + "\n\n"
        elif part.kind is griffe.DocstringSectionKind.parameters:
            described = {each.name: each.description for each in part.value}
    defaults = (
        Language.get_factory_meta(name).default_config
        if Language.has_factory(name)
        else {name: p.default for name, p in inspect.signature(function).parameters.items()}
    )
    rows = {option: (defaults[option], meaning) for option, meaning in described.items()}
    if name in FIELDS:
        rows |= of_fields(FIELDS[name])
    others = ", ".join(f"`{option}`" for option in defaults if option not in rows)
    parts = [f"### `{name}`", "\n\n".join(paragraphs(text))]
    parts += [table(rows).rstrip()] if rows else []
    parts += [f"Other options: {others}."] if others else []
    return "\n\n".join(parts) + "\n"


def of_fields(options: type) -> dict[str, tuple[Any, str]]:
    """Return the default and the meaning of each field of a class: the first paragraph of the field's docstring."""
    members = _DOCSTRINGS[_path(options)].all_members
    return {
        name: (default, paragraphs(members[name].docstring.value)[0])
        for name, default in _defaults(options)
    }


def _defaults(options: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(options, "model_fields"):
        yield from ((name, field.default) for name, field in options.model_fields.items())
    else:
        yield from ((field.name, field.default) for field in fields(options))


def docstring(thing: Any) -> griffe.Docstring:
    """Return the docstring of a function or a class."""
    return _DOCSTRINGS[_path(thing)].docstring


def _path(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}".removeprefix("spacy_elmo.")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a docstring. Lines of a list stay, other lines are joined."""
    return [re.sub(r"\n(?!- )\s*", " ", part) for part in text.strip().split("\n\n")]


def table(rows: Mapping[str, tuple[Any, str]]) -> str:
    """Return the table of some options with their defaults and meanings."""
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for name, (default, meaning) in rows.items():
        text = " ".join(meaning.split()).removesuffix(".").replace("|", "\\|")
        lines.append(f"| `{name}` | {shown(default)} | {text[0].upper()}{text[1:]} |")
    return "\n".join(lines) + "\n"


def shown(default: Any) -> str:
    """Return a default as the page shows it: a block of a config by the function that it names."""
    if default in (MISSING, inspect.Parameter.empty):
        return "*required*"
    if isinstance(default, dict):
        (default,) = (value for name, value in default.items() if name.startswith("@"))
    return f"`{json.dumps(default)}`"


def _link(found: re.Match[str]) -> str:
    path, anchor = found[1], found[2] or ""
    return f"[{title_of(ROOT / path)}]({os.path.relpath(ROOT / path, PAGE.parent)}{anchor})"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf8")


if __name__ == "__main__":
    main()
