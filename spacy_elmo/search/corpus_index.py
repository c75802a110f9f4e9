"""Indexes of the sentences of a corpus, and the pipeline for their queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..corpora.docs import read_docs
from ..corpora.pipelines import elmo_and_later, find_elmo, fingerprint, load_pipeline
from ..pipeline.encode.spans import spans_of
from .index import SearchIndex


def add_corpus(
    index: SearchIndex, nlp: Language, text: str, *, tokenized: bool = False
) -> Iterator[int]:
    """Add the sentences of a corpus to an index: the spans that elmo processes (its `get_spans`).

    The pipeline processes the Docs of `read_docs` from its tokenizer to its elmo.

    Args:
        text: see `read_docs`.
        tokenized: texts are words separated by spaces.

    Yields:
        The number of tokens added since the previous yield.

    Raises:
        OSError, ValueError: see `read_docs` and `find_elmo`; the text has no words.
    """
    _, elmo = find_elmo(nlp)
    get_spans = elmo.model.attrs["options"].get_spans
    for shard in read_docs(nlp, text, disable=elmo_and_later(nlp)[1:], tokenized=tokenized):
        for (name, _), spans in zip(
            shard, spans_of([doc for _, doc in shard], get_spans), strict=True
        ):
            index.add(name, spans)
        yield sum(len(doc) for _, doc in shard)
    if not len(index):
        raise ValueError(f"The text of {text!r} has no words; there is nothing to index")


def corpus_source(
    nlp: Language, source: str, *, lang: str | None, tokenized: bool
) -> dict[str, Any]:
    """Return the source of an index in JSON types, for `SearchIndex.about` and `query_pipeline`.

    Args:
        source, lang, tokenized: the arguments with which `load_pipeline` has loaded the pipeline.
    """
    path = Path(source)
    return {
        "source": str(path.absolute()) if path.exists() else source,
        "lang": lang,
        "tokenized": tokenized,
        "pipeline": fingerprint(nlp),
    }


def index_pipeline(about: Mapping[str, Any], source: str | None = None) -> Language:
    """Load the pipeline that has processed the corpus of an index.

    Args:
        about: metadata of the index, by `corpus_source`.
        source: place of this pipeline, if it was moved.

    Raises:
        OSError, ValueError: see `load_pipeline`.
        ValueError: it is another pipeline, or the index does not name its pipeline.
    """
    if not about.keys() >= {"source", "lang", "tokenized", "pipeline"}:
        raise ValueError(
            "The index does not name the pipeline of its text: search it from Python, with SearchIndex.search"
        )
    source = source or about["source"]
    nlp, _ = load_pipeline(source, lang=about["lang"], tokenized=about["tokenized"])
    if about["pipeline"] != fingerprint(nlp):
        raise ValueError(
            f"{source} is another pipeline, or has changed: its vectors cannot be compared with those of the index."
            " Name the pipeline of the index, or make the index again"
        )
    return nlp


def query_pipeline(index: SearchIndex, source: str | None = None) -> Callable[[str], Doc]:
    """Return a function from a text to a Doc with vectors, by the pipeline that has processed the corpus of an index.

    Args:
        index, source: see `index_pipeline`, which gets the index's `about`.

    Raises:
        OSError, ValueError: see `index_pipeline`.
    """
    nlp = index_pipeline(index.about, source)
    tokenized = index.about["tokenized"]
    disabled = elmo_and_later(nlp)[1:]

    def process(text: str) -> Doc:
        return nlp(Doc(nlp.vocab, words=text.split()) if tokenized else text, disable=disabled)

    return process
