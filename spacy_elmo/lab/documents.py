"""Readers of corpora: documents (lines, records, treebank sentences, Docs of a DocBin), word senses and CoNLL-U."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..text.documents import TEXT_READERS, json_lines
from ..text.files import kind, lines, text_files

CHARACTERS_PER_BATCH = 1 << 16
"""Approximate number of characters in a batch of documents. All layers of the original ELMo take 160 MB
for that many characters of English."""
FORM, UPOS = 1, 3
"""Indices of the columns of a CoNLL-U file with the word and its universal part-of-speech tag."""
_KEY = re.compile(r"\S+%[1-5]:\d\d:\d\d:\S*:\d*")
_ADJECTIVE, _SATELLITE = "%3", "%5"


class SenseInstance(NamedTuple):
    """One or several consecutive words of a sentence that are annotated as one entry of WordNet."""

    start: int
    """Index of the first annotated word in the sentence."""
    end: int
    """Index of the last annotated word in the sentence, plus 1."""
    senses: tuple[str, ...]
    """WordNet keys of the correct senses, such as `bank%1:17:01::`. Training uses only the first key."""


class SenseSentence(NamedTuple):
    """The words of a sentence, and the annotated words and phrases with their senses."""

    words: list[str]
    instances: list[SenseInstance]


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
        if senses and kind(file) == ".jsonl" and _is_annotated(file):
            for number, (words, instances) in enumerate(read_senses([file]), 1):
                yield Document(words, f"{file}:{number}", instances)
            continue
        for number, text in enumerate(_READERS.get(kind(file), _lines)(file), 1):
            words_or_text = text.split() if tokenized and isinstance(text, str) else text
            yield Document(words_or_text, f"{file}:{number}")


def batches(documents: Iterable[Document], characters: int) -> Iterator[list[Document]]:
    """Group consecutive documents. A batch ends with the document that brings it to that many characters."""
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


def make_docs(
    nlp: Language, texts: Iterable[str | Iterable[str]], disable: Collection[str]
) -> Iterator[Doc]:
    """Process texts, or the words of tokenized documents, with a pipeline without the components `disable`."""
    inputs = (text if isinstance(text, str) else Doc(nlp.vocab, list(text)) for text in texts)
    return nlp.pipe(inputs, disable=disable)


def _lines(file: Path) -> Iterator[str]:
    return (line.strip() for _, line in lines(file))


def _sentences(file: Path) -> Iterator[list[str]]:
    return ([columns[FORM] for columns in sentence] for sentence in conllu_sentences(file))


def _is_annotated(file: Path) -> bool:
    first = next((line for _, line in lines(file) if line.strip()), "null")
    try:
        record = json.loads(first)
    except json.JSONDecodeError:
        return False  # the reader of the file gives a better message
    return isinstance(record, dict) and "sense" in record


def read_senses(files: Iterable[Path]) -> Iterator[SenseSentence]:
    """Yield a sentence with annotated senses for each record of JSONL files.

    A record contains two lists of equal length: the tokens in the field `tokens`, and in the field `sense`, a
    key of WordNet 3.0 (`bank%1:17:01::`) or null for each token. A token of several words ("primary
    election") is split into words. If several senses of a token are correct, the optional field `gold_all`
    maps the index of the token to all correct keys: `{"7": [key, key]}`.
    """
    for file in files:
        yield from json_lines(file, _annotated)


def _annotated(record: Any) -> SenseSentence:
    fields: dict[str, Any] = record if isinstance(record, dict) else {}
    tokens, senses = fields.get("tokens"), fields.get("sense")
    alternatives = fields.get("gold_all", {})
    if not (
        isinstance(tokens, list)
        and all(isinstance(token, str) and token.strip() for token in tokens)
        and isinstance(senses, list)
        and len(senses) == len(tokens)
        and isinstance(alternatives, dict)
    ):
        raise ValueError(
            'expected {"tokens": [strings], "sense": [a key or null for each token]}, but got '
            f"{json.dumps(record):.100}"
        )
    words: list[str] = []
    instances = []
    for number, (token, sense) in enumerate(zip(tokens, senses, strict=True)):
        start = len(words)
        words += token.split()
        if sense is not None:
            keys = alternatives.get(str(number), [sense])
            if not (isinstance(keys, list) and keys):
                raise ValueError(
                    f"gold_all of token {number} must be a list of keys, but is {keys!r:.100}"
                )
            for key in keys:
                if not isinstance(key, str) or not _KEY.fullmatch(key):
                    raise ValueError(f"{key!r} is not a WordNet sense key, such as bank%1:17:01::")
            instances.append(SenseInstance(start, len(words), tuple(keys)))
    return SenseSentence(words, instances)


def entry_of(key: str) -> str:
    """Return the lexicon entry (lemma and part of speech) of a WordNet sense key: `bank%1` for
    `bank%1:17:01::`.

    WordNet has two codes for adjectives, 3 and 5. The entry always contains 3.
    """
    entry = key.partition(":")[0]
    return entry.removesuffix(_SATELLITE) + _ADJECTIVE if entry.endswith(_SATELLITE) else entry


def read_first_senses(file: Path) -> dict[str, str]:
    """Read WordNet's file `index.sense`. Return a dict from each entry (lemma and part of speech, see
    `entry_of`) to the key of its first sense.
    """
    first_senses = {}
    for number, line in lines(file):
        fields = line.split()
        if len(fields) != 4 or not _KEY.fullmatch(fields[0]):
            raise ValueError(
                f"{file}, line {number}: expected a line of WordNet's index.sense (sense key, offset, sense number and"
                f" count), but got {line.strip():.100}"
            )
        if fields[2] == "1":
            first_senses[entry_of(fields[0])] = fields[0]
    return first_senses


def conllu_sentences(file: Path) -> Iterator[list[list[str]]]:
    """Yield the sentences of a CoNLL-U file. A sentence is a list of syntactic words. A word is the list of
    the ten columns of its line.

    Multiword tokens (ID "3-4") and empty nodes ("5.1") are left out. The file can be compressed as .gz, .xz
    or .zst.
    """
    rows: list[list[str]] = []
    for number, line in lines(file):
        row = line.rstrip("\r\n")
        if not row.strip():
            if rows:
                yield rows
            rows = []
        elif not row.startswith("#"):
            columns = row.split("\t")
            # The first of the ten columns is the ID.
            if len(columns) != 10 or not columns[0][0:1].isdigit() or not columns[FORM]:
                raise ValueError(
                    f"{file}, line {number} is not CoNLL-U: expected ten columns separated by tabs, starting with a"
                    f" number and a word, but got {row:.100}"
                )
            if columns[0].isdigit():
                rows.append(columns)
    if rows:
        yield rows


_READERS = {**TEXT_READERS, ".conllu": _sentences}
