"""The shipped configs of all trainable components, made small, and examples for each component."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config, load_model_from_config
from spacy.vocab import Vocab
from thinc.api import Config

CONFIGS = Path(__file__).parent.parent / "configs"
NAMES = sorted(path.stem.removesuffix("_elmo") for path in CONFIGS.glob("*_elmo.cfg"))

LISTENER = "spacy-elmo.ElmoListener.v1"

# "Paris" is a town in one and a singer in another.
_SENTENCES: list[tuple[list[str], dict[str, Any]]] = [
    (
        ["Anna", "met", "Bob", "in", "Paris", ".", "It", "rained", "!"],
        {
            "lemmas": ["Anna", "meet", "Bob", "in", "Paris", ".", "it", "rain", "!"],
            "tags": ["NNP", "VBD", "NNP", "IN", "NNP", ".", "PRP", "VBD", ":"],
            "pos": ["PROPN", "VERB", "PROPN", "ADP", "PROPN", "PUNCT", "PRON", "VERB", "PUNCT"],
            "morphs": ["", "Tense=Past", "", "", "", "", "Person=3", "Tense=Past", ""],
            "heads": [1, 1, 1, 4, 1, 1, 7, 7, 7],
            "deps": ["nsubj", "ROOT", "obj", "case", "obl", "punct", "nsubj", "ROOT", "punct"],
            "entities": ["U-PER", "O", "U-PER", "O", "U-LOC", "O", "O", "O", "O"],
            "spans": {"sc": [(0, 4, "PER"), (16, 21, "LOC"), (0, 12, "MEETING")]},
            "cats": {"travel": 1.0, "music": 0.0},
            "links": {(0, 4): {"NIL": 1.0}, (9, 12): {"NIL": 1.0}, (16, 21): {"town": 1.0}},
        },
    ),
    (
        ["Paris", "sang", "in", "Rome", "."],
        {
            "lemmas": ["Paris", "sing", "in", "Rome", "."],
            "tags": ["NNP", "VBD", "IN", "NNP", "."],
            "pos": ["PROPN", "VERB", "ADP", "PROPN", "PUNCT"],
            "morphs": ["", "Tense=Past", "", "", ""],
            "heads": [1, 1, 3, 1, 1],
            "deps": ["nsubj", "ROOT", "case", "obl", "punct"],
            "entities": ["U-PER", "O", "O", "U-LOC", "O"],
            "spans": {"sc": [(0, 5, "PER"), (14, 18, "LOC")]},
            "cats": {"travel": 0.0, "music": 1.0},
            "links": {(0, 5): {"singer": 1.0}, (14, 18): {"NIL": 1.0}},
        },
    ),
    (
        ["The", "bank", "in", "Rome", "is", "old"],
        {
            "lemmas": ["the", "bank", "in", "Rome", "be", "old"],
            "tags": ["DT", "NN", "IN", "NNP", "VBZ", "JJ"],
            "pos": ["DET", "NOUN", "ADP", "PROPN", "AUX", "ADJ"],
            "morphs": ["Definite=Def", "", "", "", "Tense=Pres", ""],
            "heads": [1, 5, 3, 1, 5, 5],
            "deps": ["det", "nsubj", "case", "nmod", "cop", "ROOT"],
            "entities": ["O", "O", "O", "U-LOC", "O", "O"],
            "spans": {"sc": [(12, 16, "LOC")]},
            "cats": {"travel": 1.0, "music": 0.0},
            "links": {(12, 16): {"NIL": 1.0}},
        },
    ),
]
TEXTS = ["Anna met Bob in Paris . It rained !", "Eve sang", "Paris is in Rome .", ""]


def examples(nlp: Language) -> list[Example]:
    """Make examples with annotations for every component of `NAMES`."""
    return [
        Example.from_dict(Doc(nlp.vocab, words=words), annotations)
        for words, annotations in _SENTENCES
    ]


def write_knowledge_base(folder: Path) -> None:
    """Write a knowledge base with a town and a singer, both called Paris."""
    knowledge = InMemoryLookupKB(Vocab(), entity_vector_length=3)
    knowledge.add_entity("town", 10, [1, 0, 0])
    knowledge.add_entity("singer", 10, [0, 1, 0])
    knowledge.add_alias("Paris", ["town", "singer"], [0.5, 0.5])
    knowledge.to_disk(folder)


def filled(name: str) -> Config:
    """Return a shipped config with the values that spaCy fills in, as `spacy train` uses it."""
    return pipeline(load_config(CONFIGS / f"{name}.cfg", interpolate=False)).config


def config(name: str, weights: Path, folder: Path, **elmo: Any) -> Config:
    """Return a shipped config with a tiny biLM and small layers around it.

    Args:
        name: one of `NAMES`.
        weights: weights file of the biLM.
        folder: an empty folder, for other files that the component needs, such as a knowledge base.
        elmo: options of the elmo component.
    """
    shipped = filled(f"{name}_elmo")
    shipped["components"]["elmo"].update(weights=str(weights), **elmo)
    if "kb" in shipped["paths"]:
        shipped["paths"]["kb"] = str(folder / "kb")
        write_knowledge_base(folder / "kb")
    return make_small(shipped)


def make_small(config: Config) -> Config:
    """Reduce the networks and thresholds of a config, so that a few sentences are enough."""
    for block in blocks(config["components"]):
        if "rows" in block:
            block["rows"] = [50] * len(block["rows"])
        for size, small in (("depth", 1), ("hidden_width", 16), ("length", 64)):
            if size in block:
                block[size] = small
        if isinstance(block.get("width"), int) and block.get("@architectures") != LISTENER:
            block["width"] = 16
        for threshold in ("min_action_freq", "min_tree_freq"):
            if threshold in block:
                block[threshold] = 1
    return config


def blocks(block: Any) -> Iterator[dict[str, Any]]:
    """Yield a block of a config and all blocks inside it."""
    if isinstance(block, Mapping):
        yield block
        for inner in block.values():
            yield from blocks(inner)


def pipeline(config: Config) -> Language:
    """Create the pipeline of a config, as `spacy train` does before it initializes it."""
    return load_model_from_config(config, auto_fill=True)
