"""Reader that processes a corpus with a pipeline, and yields the Docs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from .items import corpus_files, read_shards


class CorpusDoc(NamedTuple):
    """A Doc of a corpus, and a name that tells where the text of the Doc is."""

    name: str
    """Path of the file and number of the Doc in the file, from 1. For example, the Doc of line 12 of
    letters.txt has the name "letters.txt:12"."""
    doc: Doc


def read_docs(
    nlp: Language, text: str, *, disable: Collection[str], tokenized: bool = False
) -> Iterator[list[CorpusDoc]]:
    """Process the items of a corpus (lines, records, sentences) with a pipeline. Each item becomes a Doc.

    Args:
        text: a file, a folder or a glob pattern.
        disable: names of the components that do not run.
        tokenized: True if the texts are already tokenized, with spaces between words.

    Yields:
        A list with the Docs of consecutive items, in the order of the corpus.

    Raises:
        OSError, ValueError: see `corpus_files` and `read_shards`.
    """
    for file in corpus_files(text):
        count = 0
        for shard in read_shards([file], tokenized=tokenized):
            items = (i if isinstance(i, str) else Doc(nlp.vocab, words=i) for i in shard.items)
            docs = enumerate(nlp.pipe(items, disable=disable), count + 1)
            yield [CorpusDoc(f"{file}:{number}", doc) for number, doc in docs]
            count += len(shard.items)
