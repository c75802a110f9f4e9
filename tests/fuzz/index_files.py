"""Search indexes: exact and hnsw indexes of sentences, and indexes of words."""

import functools
import json
from pathlib import Path

import numpy as np
import spacy
from spacy.tokens import Doc

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.digest import with_digests
from spacy_elmo.lab.contexts.occurrence_index import OCCURRENCES, OccurrenceIndex
from spacy_elmo.lab.contexts.write_occurrences import write_occurrences
from spacy_elmo.lab.search.index import SearchIndex
from spacy_elmo.lab.search.index_files import SENTENCES, IndexFormat
from spacy_elmo.pipeline.store.extensions import install_extensions
from tests import pipelines, tiny
from tests.fuzz.bytes_and_values import damaged_bytes, damaged_json, damaged_text
from tests.fuzz.containers import damaged_npy
from tests.fuzz.target import Target

_LINES = ["the cat sleeps .", "a dog barks and sleeps .", "the river runs in the rain ."]


@functools.cache
def _docs() -> list[Doc]:
    install_extensions()
    vocab, random = spacy.blank("en").vocab, np.random.default_rng(0)
    docs = []
    for line in _LINES * 4:
        doc = Doc(vocab, words=line.split())
        doc._.elmo_layers = random.standard_normal((3, len(doc), 8)).astype(np.float32)
        docs.append(doc)
    return docs


def search_index(method: str, *, repeats: int = 1) -> SearchIndex:
    """Return an index of some Docs."""
    index = SearchIndex(method=method, about={"source": "x"})
    for number, doc in enumerate(_docs() * repeats):
        index.add(f"d{number}", [doc[:2], doc[2:]])
    return index


def make_index(folder: Path, method: str) -> None:
    """Write a search index."""
    search_index(method).to_disk(folder / "index")


def load_index(folder: Path) -> object:
    """Load an index and search it."""
    index = SearchIndex.from_disk(folder / "index")
    try:
        hits = [index.search(doc[1:3], 5) for doc in _docs()[:3]]
    except ValueError as error:
        # With right digests, the index may be a whole one of another biLM.
        raise ValueError(f"{folder}: {error}") from error
    return hits, index.about, index.layer


def make_word_index(folder: Path) -> None:
    """Write an index of words."""
    weights, text = folder / "w.safetensors", folder / "a.txt"
    Weights.from_bilm(tiny.bilm(tiny.config()), card={"language": "en"}).save(weights)
    text.write_text("\n".join(_LINES), "utf8")
    sum(write_occurrences(folder / "index", pipelines.blank(weights), str(text), about={}))
    weights.unlink()
    text.unlink()


def load_word_index(folder: Path) -> object:
    """Open an index of words, and read all of it."""
    index = OccurrenceIndex(folder / "index")
    words = {word for line in _LINES for word in line.split()}
    uses = {word: (index.count(word), index.find(word)) for word in words}
    return uses, index.centre, index.tokens, index.sentences, index.about


def seal_index(folder: Path, kind: IndexFormat) -> None:
    """Correct the digests of an index."""
    folder = folder / "index"
    settings = json.loads((folder / "index.json").read_text("utf8"))
    settings.pop("digests")
    sealed = with_digests(settings, folder / "index.json", kind.files)
    (folder / "index.json").write_text(json.dumps(sealed), "utf8")


_INDEX = {"index/index.json": damaged_json, "index/spans.jsonl": damaged_text}
_EXACT = _INDEX | {"index/vectors": damaged_npy}
_WORDS = {
    "index/index.json": damaged_json,
    **{
        f"index/{name}": damaged_text if name.endswith(".jsonl") else damaged_npy
        for name in OCCURRENCES.files
    },
}

TARGETS = (
    Target("index-exact", functools.partial(make_index, method="exact"), load_index, _EXACT, digests=True),
    Target(
        "index-exact-sealed", functools.partial(make_index, method="exact"), load_index, _EXACT,
        digests=True, seal=functools.partial(seal_index, kind=SENTENCES),
    ),
    # Not sealed: usearch trusts its graph, so an index from a stranger is not safe; see SECURITY.md.
    Target(
        "index-hnsw", functools.partial(make_index, method="hnsw"), load_index,
        _INDEX | {"index/vectors": damaged_bytes}, digests=True,
    ),
    Target("index-words", make_word_index, load_word_index, _WORDS, digests=True),
    Target(
        "index-words-sealed", make_word_index, load_word_index, _WORDS,
        digests=True, seal=functools.partial(seal_index, kind=OCCURRENCES),
    ),
)  # fmt: skip
