"""Functions that list the configs for `spacy train` in this package, and add components with a listener to a
pipeline."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.util import load_config
from thinc.api import Config

_PACKAGE = Path(__file__).parents[1]


def shipped_configs() -> dict[str, Path]:
    """Return a dict from the name of each config that comes with this package to the path of its file, sorted
    by name.

    In a checkout, the files are in the checkout's folder `configs`, even if another version of the package is
    installed.
    """
    # In an installed package the folder is inside the package, in a checkout next to it. An import of
    # `spacy_elmo.configs` could find the folder of another checkout that is installed as editable.
    folders = (_PACKAGE / "configs", _PACKAGE.parent / "configs")
    folder = next((folder for folder in folders if folder.is_dir()), folders[0])
    return {path.stem: path for path in sorted(folder.glob("*.cfg"))}


def title(path: Path) -> str:
    """Return the title of a config file: the text of the comment at the top, up to the first colon or full
    stop."""
    comment = re.match(r"(# .*\n)+", path.read_text(encoding="utf8"))
    text = comment[0].replace("\n# ", " ").strip("# \n") if comment else ""
    return re.split(r"[:.](?=\s|$)", text)[0]


def add_listening(
    nlp: Language, components: Iterable[str], *, accurate: bool = False, vectors: bool = False
) -> None:
    """Add components with a listener to a pipeline that has an `elmo` component.

    Args:
        components: names of spaCy components, such as "ner". If this package comes with a config for a
            component, the component gets the settings of this config.
        accurate: give each component its own embedding x of the tokens, and an encoder whose input is x
            concatenated with the vectors of the `elmo` component. Otherwise, these vectors are the only
            input.
        vectors: include the static word vectors of the pipeline in the embedding x.

    Raises:
        ValueError: spaCy has no component with this name, or the component needs a knowledge base.
    """
    for name in components:
        if not nlp.has_factory(name):
            raise ValueError(
                f"spaCy has no component {name!r} for the language {nlp.lang!r}. It has for example ner, tagger, parser"
                " and textcat"
            )
        if name == "entity_linker":
            raise ValueError(
                f"{name} also needs a knowledge base and sentences. Use its shipped config, which explains how to make"
                " them: `--from entity_linker_elmo`"
            )
        settings = _settings(nlp, name)
        model = settings.get("model")
        if isinstance(model, dict) and "tok2vec" in model:
            recipe = _recipe(name)
            recipe["embed"]["include_static_vectors"] = vectors
            model["tok2vec"] = recipe if accurate else recipe["input"]
        nlp.add_pipe(name, config=settings)


def with_elmo(config: Config, weights: str) -> Config:
    """Return the config of a pipeline with `elmo` as its first component, and a listener in place of each `tok2vec`.

    A `tok2vec` component that nothing reads any more is removed.

    Args:
        config: a config for `spacy train`, with its variables unresolved.
        weights: the option `weights` of the component.
    """
    config = config.copy()
    components = config["components"]
    for block in components.values():
        _replace_tok2vec(block.get("model", {}))
    if not any("Tok2VecListener" in Config(block).to_str() for block in components.values()):
        components.pop("tok2vec", None)
    names = [name for name in config["nlp"]["pipeline"] if name in components]
    config["nlp"]["pipeline"] = ["elmo", *names]
    components["elmo"] = {"factory": "elmo", "weights": weights}
    return config


def _replace_tok2vec(block: dict[str, Any]) -> None:
    for key, value in block.items():
        if key == "tok2vec" and "@architectures" in value:
            block[key] = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "elmo"}
        elif isinstance(value, dict):
            _replace_tok2vec(value)


def _settings(nlp: Language, name: str) -> dict[str, Any]:
    """Return the settings of a component from the config for this component in the package. If there is no
    such config, return spaCy's default settings."""
    if name in _shipped_components():
        return _block(name)
    return copy.deepcopy(nlp.get_factory_meta(name).default_config or {})


def _recipe(name: str) -> dict[str, Any]:
    """Return the `tok2vec` block with ELMo from the config for this component in the package. If there is no
    such config, return the block from the config for `ner`."""
    return _block(name if name in _shipped_components() else "ner")["model"]["tok2vec"]


def _shipped_components() -> set[str]:
    names = shipped_configs()
    return {name.removesuffix("_elmo") for name in names if name.endswith("_elmo")} - {"multi"}


def _block(name: str) -> dict[str, Any]:
    config = load_config(shipped_configs()[f"{name}_elmo"]).interpolate()
    return {key: value for key, value in config["components"][name].items() if key != "factory"}
