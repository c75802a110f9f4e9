"""Reader of the documents of a corpus: lines, records, sentences of a treebank, or Docs of a DocBin."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from ...text.documents import docbin_words, json_lines
from ...text.files import kind, lines, text_files
from .conllu import FORM, conllu_sentences
from .senses import SenseInstance, read_senses

CHARACTERS_PER_BATCH = 1 << 16
"""Approximate number of characters in a batch of documents. For 13,000 English words, which have so many
characters, all layers of the original ELMo take 160 MB."""


@dataclass(frozen=True)
class Document:
    """A piece of a corpus that becomes one Doc: a line, a record, a sentence of a treebank, or a Doc."""

    text: str | list[str]
    """The text, or its words if it is already tokenized."""
    name: str
    """Path of the file and number of the document in the file, from 1, such as "letters.txt:12"."""
    senses: list[SenseInstance] | None = None
    """Annotated words with their senses. None if the file is not annotated, or if the senses were not read."""

    def __len__(self) -> int:
        """Number of characters, and one more, so that a million blank lines have a size."""
        return 1 + (len(self.text) if isinstance(self.text, str) else sum(map(len, self.text)))


def corpus_files(source: str) -> list[Path]:
    """Return the sorted paths of the files of a corpus: `.conllu`, and the types that `text_files` supports.

    Args:
        source: a file, a folder or a glob pattern.

    Raises:
        FileNotFoundError, ValueError: see `text_files`.
    """
    return text_files(source, more=(".conllu",))


def read_documents(
    source: str, *, tokenized: bool = False, senses: bool = False
) -> Iterator[Document]:
    """Yield the documents of a corpus in order.

    The type of file determines the documents:

    - `.jsonl`: each record is a document, with a list of words (`tokens`) or a text (`text`).
    - `.spacy` (a DocBin): each Doc is a document, as a list of words. The whole file is in memory.
    - `.conllu`: each sentence is a document, as a list of syntactic words. Multiword tokens (ID "3-4") and
      empty nodes ("5.1") are left out.
    - Any other file: each line is a document. This includes blank lines.

    All files except `.spacy` can be compressed as .gz, .xz or .zst.

    Args:
        source: a file, a folder or a glob pattern.
        tokenized: True if the texts are already tokenized, with spaces between words.
        senses: also read the senses of a `.jsonl` file whose first record has a field `sense` (see
            `read_senses`).

    Raises:
        FileNotFoundError: there are no such files.
        ValueError: a file cannot be read. The message names the file and the line.
    """
    for file in corpus_files(source):
        if senses and kind(file) == ".jsonl" and _is_annotated(file):
            for number, (words, instances) in enumerate(read_senses([file]), 1):
                yield Document(words, f"{file}:{number}", instances)
            continue
        for number, text in enumerate(_READERS.get(kind(file), _lines)(file), 1):
            words_or_text = text.split() if tokenized and isinstance(text, str) else text
            yield Document(words_or_text, f"{file}:{number}")


def batches(documents: Iterable[Document], characters: int) -> Iterator[list[Document]]:
    """Group consecutive documents. A batch ends with the document that brings it to so many characters."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document)
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def read_docs(
    nlp: Language, source: str, *, disable: Collection[str], tokenized: bool = False
) -> Iterator[list[tuple[str, Doc]]]:
    """Process the documents of a corpus with a pipeline. Yield lists of the names and the Docs of consecutive
    documents.

    Args:
        source, tokenized: see `read_documents`.
        disable: names of the components that do not run.
    """
    for batch in batches(read_documents(source, tokenized=tokenized), CHARACTERS_PER_BATCH):
        docs = make_docs(nlp, (document.text for document in batch), disable)
        yield [(document.name, doc) for document, doc in zip(batch, docs, strict=True)]


def make_docs(
    nlp: Language, texts: Iterable[str | Iterable[str]], disable: Collection[str]
) -> Iterator[Doc]:
    """Process texts, or the words of tokenized documents, with a pipeline without the components `disable`."""
    inputs = (text if isinstance(text, str) else Doc(nlp.vocab, list(text)) for text in texts)
    return nlp.pipe(inputs, disable=disable)


def _lines(file: Path) -> Iterator[str]:
    return (line.strip() for _, line in lines(file, "strict"))


def _records(file: Path) -> Iterator[str | list[str]]:
    return json_lines(file, _record, "strict")


def _record(record: object) -> str | list[str]:
    fields = record if isinstance(record, dict) else {}
    tokens, text = fields.get("tokens"), fields.get("text")
    if isinstance(tokens, list) and all(isinstance(token, str) and token for token in tokens):
        "".join(tokens).encode()  # raises ValueError for an unpaired surrogate
        return tokens
    if tokens is None and isinstance(text, str):
        text.encode()
        return text
    raise ValueError(
        'expected {"text": a string} or {"tokens": a list of strings, none empty}, but got '
        f"{json.dumps(record):.100}"
    )


def _sentences(file: Path) -> Iterator[list[str]]:
    return ([columns[FORM] for columns in sentence] for sentence in conllu_sentences(file))


def _is_annotated(file: Path) -> bool:
    first = next((line for _, line in lines(file, "strict") if line.strip()), "null")
    try:
        record = json.loads(first)
    except json.JSONDecodeError:
        return False  # the reader of the file gives a better message
    return isinstance(record, dict) and "sense" in record


_READERS: dict[str, Callable[[Path], Iterator[str | list[str]]]] = {
    ".jsonl": _records,
    ".spacy": docbin_words,
    ".conllu": _sentences,
}
