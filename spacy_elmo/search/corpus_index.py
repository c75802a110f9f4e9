"""A corpus to an index, and a text to the query for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..corpora.items import corpus_files, shards
from ..corpora.pipelines import elmo_of, identity, load_pipeline
from ..pipeline.reading.sequences import spans_of
from .index import SearchIndex


def add_corpus(
    index: SearchIndex, nlp: Language, text: str, *, tokenized: bool = False
) -> Iterator[int]:
    """Take in the sentences of a corpus, as elmo reads them (its `get_spans`).

    The Docs are the items of `embed.corpus.shards`, read by the pipeline from its tokenizer to its elmo. They
    are called by file and number, from 1: "letters.txt:12" is the twelfth line.

    Args:
        text: file, directory or glob pattern, as of `corpus_files`.
        tokenized: texts are words separated by spaces.

    Yields:
        How many tokens were read, now and then.

    Raises:
        OSError, ValueError: as of `corpus_files`, `shards` and `elmo_of`; there is no word in the text.
    """
    _, elmo = elmo_of(nlp)
    get_spans = elmo.model.attrs["options"].get_spans
    not_run = _after_elmo(nlp)
    for file in corpus_files(text):
        number = 0
        for shard in shards([file], tokenized=tokenized):
            items = (i if isinstance(i, str) else Doc(nlp.vocab, words=i) for i in shard.items)
            docs = list(nlp.pipe(items, disable=not_run))
            for spans in spans_of(docs, get_spans):
                number += 1
                index.add(f"{file}:{number}", spans)
            yield sum(map(len, docs))
    if not len(index):
        raise ValueError(f"No word in the text of {text!r}; nothing to index")


def origin(nlp: Language, source: str, *, lang: str | None, tokenized: bool) -> dict[str, Any]:
    """What `query_reader` needs to know of how a corpus is read, in JSON types: `SearchIndex.about`.

    Args:
        source, lang, tokenized: with which `load_pipeline` gave the pipeline.
    """
    path = Path(source)
    lasting = str(path.absolute()) if path.exists() else source
    return {"source": lasting, "lang": lang, "tokenized": tokenized, "pipeline": identity(nlp)}


def query_reader(index: SearchIndex, source: str | None = None) -> Callable[[str], Doc]:
    """Texts to Docs with vectors, by the pipeline with which the corpus of an index was read.

    Args:
        index: with `about` as of `origin`.
        source: where this pipeline is now, if it is somewhere else.

    Raises:
        OSError, ValueError: as of `load_pipeline`.
        ValueError: it is another pipeline; or nothing is known of the index's.
    """
    about = index.about
    if not about.keys() >= {"source", "lang", "tokenized", "pipeline"}:
        raise ValueError(
            "The index does not say how its text was read: search it from Python, with SearchIndex.search"
        )
    tokenized = about["tokenized"]
    nlp, _ = load_pipeline(source or about["source"], lang=about["lang"], tokenized=tokenized)
    if identity(nlp) != about["pipeline"]:
        raise ValueError(
            f"{source or about['source']} is another pipeline, or has changed: its vectors do not compare with those of"
            " the index. Give the same with --pipeline, or make the index again"
        )
    not_run = _after_elmo(nlp)

    def read(text: str) -> Doc:
        return nlp(Doc(nlp.vocab, words=text.split()) if tokenized else text, disable=not_run)

    return read


def _after_elmo(nlp: Language) -> list[str]:
    """The components that stand after it."""
    name, _ = elmo_of(nlp)
    return nlp.pipe_names[nlp.pipe_names.index(name) + 1 :]
