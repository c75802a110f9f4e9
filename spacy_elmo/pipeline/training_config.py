"""Functions that list the configs in this package, add components with a listener to a pipeline, and add elmo to a
config for `spacy train`."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.util import combine_score_weights, load_config
from thinc.api import Config

_PACKAGE = Path(__file__).parents[1]


def shipped_configs() -> dict[str, Path]:
    """Return a dict from the name of each config that comes with this package to the path of its file, sorted
    by name."""
    # In an installed package the folder is inside the package, in a checkout next to it. An import of
    # `spacy_elmo.configs` could find the folder of another checkout that is installed as editable.
    inside = _PACKAGE / "configs"
    folder = inside if inside.is_dir() else _PACKAGE.parent / "configs"
    return {path.stem: path for path in sorted(folder.glob("*.cfg"))}


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
        default_config = nlp.get_factory_meta(name).default_config
        shipped = _block(name)
        settings = shipped or copy.deepcopy(default_config or {})
        model = settings.get("model")
        if isinstance(model, dict) and "tok2vec" in model:
            recipe = (shipped or _block("ner"))["model"]["tok2vec"]
            recipe["embed"]["include_static_vectors"] = vectors
            model["tok2vec"] = recipe if accurate else recipe["input"]
        nlp.add_pipe(name, config=settings)


def onto(nlp: Language, source: str, elmo: str, components: list[str], **options: Any) -> Config:
    """Return a config that trains new components (see `add_listening`, also for `options`) on a trained pipeline.

    All components of the pipeline, whose name or folder is `source`, are sourced and frozen, also `elmo`, so they
    predict the same as before, but for the sentences of a new `senter`, which they may read.
    """
    present = list(nlp.component_names)
    add_listening(nlp, components, **options)
    # Entities cannot cross the borders of sentences, so `ner` comes directly after elmo. Then `senter`, because other
    # components could read sentences. Others come after the last trained component, because it could read what they
    # predict.
    start = present.index(elmo) + 1
    end = max(n for n, x in enumerate(present, 1) if isinstance(nlp.get_pipe(x), TrainablePipe))
    firsts = {"ner": (start, 0), "senter": (start, 1)}
    places = {name: firsts.get(name, (end, 2)) for name in components}
    pipeline = present.copy()
    for name in sorted(reversed(components), key=lambda x: places[x], reverse=True):
        pipeline.insert(places[name][0], name)
    config, filled = nlp.default_config.copy(), nlp.config.interpolate()
    config["nlp"], config["components"] = filled["nlp"], filled["components"]
    config["nlp"]["pipeline"] = pipeline
    config["components"].update({name: {"source": source} for name in present})
    old, new = (
        combine_score_weights(
            [nlp.get_pipe_meta(name).default_score_weights or {} for name in names]
        )
        for names in (present, components)
    )
    config["training"].update(
        # spaCy would count the scores of the frozen components, too.
        score_weights=dict.fromkeys(old) | new,
        frozen_components=present,
        # In training, frozen components do not run unless they are listed here.
        annotating_components=present[:start],
    )
    copied = {"tokenizer": source, "vocab": source}
    config["initialize"]["before_init"] = {"@callbacks": "spacy.copy_from_base_model.v1", **copied}
    return config


def with_elmo(config: Config, weights: str) -> Config:
    """Return the config of a pipeline with `elmo` as its first component, and a listener in place of each `tok2vec`.

    A `tok2vec` or transformer component that nothing reads any more is removed.

    Args:
        config: a config for `spacy train`, with its variables unresolved.
        weights: the option `weights` of the component.
    """
    config = config.copy()
    components = config["components"]
    for block in components.values():
        _replace_tok2vec(block.get("model", {}))
    if not re.search("(?<!Elmo)Listener", str(components)):
        for name in list(components):
            if re.search("tok2vec|transformer", components[name].get("factory", "")):
                del components[name]
                config.get("initialize", {}).get("components", {}).pop(name, None)
    components["elmo"] = {"factory": "elmo", **components.get("elmo", {}), "weights": weights}
    pipeline = [name for name in config["nlp"]["pipeline"] if name in components and name != "elmo"]
    config["nlp"]["pipeline"] = ["elmo", *pipeline]
    training = config.get("training", {})
    for key in {"frozen_components", "annotating_components"} & training.keys():
        training[key] = [name for name in training[key] if name in components]
    return config


def _replace_tok2vec(block: dict[str, Any]) -> None:
    for key, value in block.items():
        if key == "tok2vec" and "@architectures" in value:
            block[key] = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "elmo"}
        elif isinstance(value, dict):
            _replace_tok2vec(value)


def _block(name: str) -> dict[str, Any]:
    """Return the settings of a component from the config for it in this package; empty if there is no such config."""
    path = shipped_configs().get(f"{name}_elmo")
    if path is None:
        return {}
    config = load_config(path).interpolate()
    return {key: value for key, value in config["components"][name].items() if key != "factory"}
