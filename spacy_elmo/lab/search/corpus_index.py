"""Functions that add a corpus to a search index, and load the pipeline of an index for queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ...pipeline.encode.spans import spans_of
from ...weight_names import known_names
from ..corpora.documents import read_docs
from ..corpora.pipelines import elmo_and_later, find_elmo, load_pipeline, origin
from .index import SearchIndex


def add_corpus(
    index: SearchIndex, nlp: Language, text: str, *, tokenized: bool = False
) -> Iterator[int]:
    """Add the sentences of a corpus to a search index. The option `get_spans` of the component `elmo`
    determines the sentences.

    The components after `elmo` do not run.

    Args:
        text: a file, a folder or a glob pattern.
        tokenized: True if the texts are already tokenized, with spaces between the tokens.

    Yields:
        The number of tokens processed since the previous yield.

    Raises:
        ValueError: the text has no words, or the pipeline does not have exactly one elmo component.
        OSError, ValueError: the text cannot be read (see `read_docs`).
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
        raise ValueError(f"The text {text!r} contains no words, so there is nothing to index")


def corpus_source(
    nlp: Language, source: str, *, lang: str | None, tokenized: bool
) -> dict[str, Any]:
    """Return metadata of an index, in JSON types. `index_pipeline` needs this metadata to load the pipeline
    again.

    Args:
        source, lang, tokenized: the arguments with which `load_pipeline` loaded the pipeline.
    """
    path = Path(source)
    # `load_pipeline` also prefers the name to a folder with this name in the working directory.
    is_name = source in known_names() or spacy.util.is_package(source)
    return {
        "source": str(path.absolute()) if path.exists() and not is_name else source,
        "lang": lang,
        "tokenized": tokenized,
        "pipeline": origin(nlp),
    }


def index_pipeline(about: Mapping[str, Any], source: str | None = None) -> Language:
    """Load the pipeline with which an index was made.

    Args:
        about: metadata of the index, as returned by `corpus_source`.
        source: new location of the pipeline, if the pipeline was moved.

    Raises:
        OSError, ValueError: see `load_pipeline`.
        ValueError: the loaded pipeline is not the pipeline of the index, or `about` names no pipeline.
    """
    if not about.keys() >= {"source", "lang", "tokenized", "pipeline"}:
        raise ValueError(
            "The index does not name its pipeline, so it cannot process queries. Use SearchIndex.search in Python"
        )
    source = source or about["source"]
    nlp, _ = load_pipeline(source, lang=about["lang"], tokenized=about["tokenized"])
    if about["pipeline"] != origin(nlp):
        raise ValueError(
            f"{source} is not the pipeline of the index, or has changed, so its vectors cannot be compared with the"
            " vectors in the index. Give the pipeline of the index, or make the index again"
        )
    return nlp


def query_pipeline(index: SearchIndex, source: str | None = None) -> Callable[[str], Doc]:
    """Load the pipeline with which an index was made. Return a function that converts the text of a query to
    a Doc with ELMo vectors.

    Args:
        source: new location of the pipeline, if the pipeline was moved.

    Raises:
        OSError, ValueError: see `index_pipeline`.
    """
    nlp = index_pipeline(index.about, source)
    tokenized = index.about["tokenized"]
    disabled = elmo_and_later(nlp)[1:]

    def process(text: str) -> Doc:
        return nlp(Doc(nlp.vocab, words=text.split()) if tokenized else text, disable=disabled)

    return process
