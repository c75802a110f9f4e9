"""Annotation of plain text, or of the words and sentences of CoNLL-U files, as CoNLL-U files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from ..files import atomic_file, check_output_file, remove_partial
from ..text.passages import TEXT_READERS, batches
from ..text.reading import is_compressed, kind, lines
from .conllu import Sentence, conllu_sentences, make_doc, read_conllu, with_metadata
from .documents import CHARACTERS_PER_BATCH, corpus_files

CHARACTERS_PER_DOC = 10_000
"""Largest number of characters in a Doc. A longer paragraph is cut, if possible behind a sentence."""
_CUTS = [re.compile(r"[.!?…؟۔।։።][^\w\s]*\s|[。！？]"), re.compile(r"\n"), re.compile(r"\s")]
"""Places to cut a paragraph, the best first: behind a sentence, a line, a word."""


class Passage(NamedTuple):
    """A text that becomes one Doc, or a sentence of CoNLL-U."""

    content: str | Sentence
    comments: list[str]
    """Comments of its first sentence."""
    space_after: bool
    """True if whitespace or the end of the text follows. For CoNLL-U, the last word says it."""

    def __len__(self) -> int:
        """Number of characters."""
        return len(self.content)


def output_files(source: str, out: Path, *, force: bool) -> dict[Path, Path]:
    """Return {text file: CoNLL-U file to write} for the files that are not annotated yet.

    Args:
        source: a text file; or a folder or a glob pattern.
        out: the file to write; or, for a folder or a glob pattern, the folder, in which `letters.txt` becomes
            `letters.conllu`. A file that is there is complete, and is kept.
        force: replace existing files.
    """
    files = corpus_files(source)
    for file in files:
        if kind(file) in TEXT_READERS:
            raise ValueError(f"{file}: only plain text and CoNLL-U (.conllu) can be annotated")
    if any(out.resolve() in (file, file.parent) for file in map(Path.resolve, files)):
        raise ValueError(
            f"{out} has the texts themselves, which would be replaced. Choose another output"
        )
    if Path(source).is_file():
        check_output_file(out, force=force)
        return {files[0]: out}
    outputs = {file: out / f"{_name(file)}.conllu" for file in files}
    for file, other in itertools.pairwise(sorted(files, key=_name)):
        if outputs[file] == outputs[other]:
            raise ValueError(
                f"{file} and {other} would both become {outputs[file]}. Rename one of them"
            )
    out.mkdir(parents=True, exist_ok=True)
    remove_partial(out)
    return {file: path for file, path in outputs.items() if force or not path.exists()}


def _name(file: Path) -> str:
    return file.with_suffix("").stem if is_compressed(file) else file.stem


def annotate(nlp: Language, file: Path, out: Path) -> int:
    """Annotate a file, and return the number of sentences. Memory holds a batch of paragraphs.

    Args:
        nlp: a pipeline. What it does not annotate is "_".
        file: a text, in which an empty line ends a paragraph, and other line breaks are spaces. Or CoNLL-U, whose
            words, multiword tokens, sentences and comments are kept.
        out: the CoNLL-U file, which is written completely or not at all.
    """
    name = re.sub(r"\s+", "_", _name(file))
    passages: Iterable[Passage]
    if kind(file) == ".conllu":
        passages = (Passage(sentence, sentence.comments, False) for sentence in read_conllu(file))
    else:
        passages = _paragraphs(file, name)
    n_sentences = 0
    with atomic_file(out) as partial, partial.open("w", encoding="utf8", newline="\n") as stream:
        for batch in batches(passages, CHARACTERS_PER_BATCH, len):
            # Otherwise, the vocabulary of the pipeline would grow with the text.
            with nlp.memory_zone():
                inputs = ((_input(nlp, passage.content), passage) for passage in batch)
                for doc, (content, comments, space_after) in nlp.pipe(inputs, as_tuples=True):
                    if not doc.has_annotation("SENT_START"):
                        Sentencizer()(doc)
                    # A component may have found other sentences than the file has.
                    sentences = doc.sents if isinstance(content, str) else [doc[:]]
                    for text, rows in conllu_sentences(doc, sentences, space_after=space_after):
                        n_sentences += 1
                        header = with_metadata(comments, f"{name}-{n_sentences}", text)
                        stream.write(normalize("NFC", "\n".join([*header, *rows, "", ""])))
                        comments = []
    return n_sentences


def _input(nlp: Language, content: str | Sentence) -> str | Doc:
    return content if isinstance(content, str) else make_doc(nlp.vocab, content)


def _paragraphs(file: Path, name: str) -> Iterator[Passage]:
    text, comments, is_line_start = "", [f"# newdoc id = {name}", "# newpar"], True
    # An empty line ends the last paragraph.
    for line in itertools.chain((line for _, line in lines(file, CHARACTERS_PER_DOC)), "\n\n"):
        is_end = is_line_start and not line.strip()
        is_line_start = line.endswith("\n")
        text = (text + line).lstrip()
        while len(text) > CHARACTERS_PER_DOC or (is_end and text):
            cut = _cut(text)
            piece, text = text[:cut], text[cut:]
            space_after = piece[-1].isspace() or text[:1].isspace()
            text = text.lstrip()
            yield Passage(normalize("NFC", piece.rstrip()), comments, space_after)
            comments = []
        if is_end:
            comments = comments or ["# newpar"]


def _cut(text: str) -> int:
    """Return the length of the part of a paragraph that becomes a Doc."""
    if len(text) <= CHARACTERS_PER_DOC:
        return len(text)
    for pattern in _CUTS:
        if ends := [match.end() for match in pattern.finditer(text, 0, CHARACTERS_PER_DOC)]:
            return ends[-1]
    return CHARACTERS_PER_DOC
