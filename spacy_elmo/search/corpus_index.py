"""Indexes of the sentences of a corpus, and the pipeline for their queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..corpora.items import corpus_files, read_shards
from ..corpora.pipelines import elmo_and_later, find_elmo, fingerprint, load_pipeline
from ..pipeline.reading.sequences import spans_of
from .index import SearchIndex


def add_corpus(
    index: SearchIndex, nlp: Language, text: str, *, tokenized: bool = False
) -> Iterator[int]:
    """Add the sentences of a corpus to an index: the spans that elmo reads (its `get_spans`).

    The Docs are the items of `read_shards`, processed by the pipeline from its tokenizer to its elmo. Their names are
    made of file and number, counted from 1: "letters.txt:12" is the twelfth line.

    Args:
        text: file, directory or glob pattern, see `corpus_files`.
        tokenized: texts are words separated by spaces.

    Yields:
        The number of tokens added since the last one.

    Raises:
        OSError, ValueError: see `corpus_files`, `read_shards` and `find_elmo`; the text has no words.
    """
    _, elmo = find_elmo(nlp)
    get_spans = elmo.model.attrs["options"].get_spans
    disabled = elmo_and_later(nlp)[1:]
    for file in corpus_files(text):
        number = 0
        for shard in read_shards([file], tokenized=tokenized):
            items = (i if isinstance(i, str) else Doc(nlp.vocab, words=i) for i in shard.items)
            docs = list(nlp.pipe(items, disable=disabled))
            for spans in spans_of(docs, get_spans):
                number += 1
                index.add(f"{file}:{number}", spans)
            yield sum(map(len, docs))
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


def query_pipeline(index: SearchIndex, source: str | None = None) -> Callable[[str], Doc]:
    """Return a function from a text to a Doc with vectors, by the pipeline that has processed the corpus of an index.

    Args:
        index: its `about` is that of `corpus_source`.
        source: place of this pipeline, if it was moved.

    Raises:
        OSError, ValueError: see `load_pipeline`.
        ValueError: it is another pipeline, or the index does not name its pipeline.
    """
    about = index.about
    if not about.keys() >= {"source", "lang", "tokenized", "pipeline"}:
        raise ValueError(
            "The index does not name the pipeline of its text: search it from Python, with SearchIndex.search"
        )
    tokenized = about["tokenized"]
    nlp, _ = load_pipeline(source or about["source"], lang=about["lang"], tokenized=tokenized)
    if fingerprint(nlp) != about["pipeline"]:
        raise ValueError(
            f"{source or about['source']} is another pipeline, or has changed: its vectors cannot be compared with"
            " those of the index. Set the pipeline of the index with --pipeline, or make the index again"
        )
    disabled = elmo_and_later(nlp)[1:]

    def process(text: str) -> Doc:
        return nlp(Doc(nlp.vocab, words=text.split()) if tokenized else text, disable=disabled)

    return process
