"""Readers of corpora: documents (lines, records, treebank sentences, Docs of a DocBin)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from ..text.passages import TEXT_READERS
from ..text.reading import kind, lines, text_files
from .conllu import FORM, read_conllu
from .senses import SenseInstance, is_annotated, read_senses

CHARACTERS_PER_BATCH = 1 << 16
"""Approximate number of characters in a batch of documents. All layers of the original ELMo take 160 MB
for that many characters of English."""


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
    """Return the sorted paths of the files of a corpus: `.conllu`, and the types that `text_files` supports."""
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
    """
    for file in corpus_files(source):
        if senses and kind(file) == ".jsonl" and is_annotated(file):
            for number, (words, instances) in enumerate(read_senses([file]), 1):
                yield Document(words, f"{file}:{number}", instances)
            continue
        for number, text in enumerate(_READERS.get(kind(file), _lines)(file), 1):
            words_or_text = text.split() if tokenized and isinstance(text, str) else text
            yield Document(words_or_text, f"{file}:{number}")


def make_docs(
    nlp: Language, texts: Iterable[str | Iterable[str]], disable: Collection[str]
) -> Iterator[Doc]:
    """Process texts, or the words of tokenized documents, with a pipeline without the components `disable`."""
    inputs = (text if isinstance(text, str) else Doc(nlp.vocab, list(text)) for text in texts)
    return nlp.pipe(inputs, disable=disable)


def _lines(file: Path) -> Iterator[str]:
    return (line.strip() for _, line in lines(file))


def _sentences(file: Path) -> Iterator[list[str]]:
    return ([columns[FORM] for columns in sentence.words] for sentence in read_conllu(file))


_READERS = {**TEXT_READERS, ".conllu": _sentences}
